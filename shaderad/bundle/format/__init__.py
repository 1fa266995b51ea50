"""The manifest of a build as data, and the rules that it obeys."""
