"""The one typed intermediate representation that every stage reads."""
