"""A Python function on arrays -> its graph."""
