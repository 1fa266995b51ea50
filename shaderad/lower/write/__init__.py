"""Bodies, functions and types of the IR as Slang text."""
