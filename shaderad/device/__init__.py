"""A device as users hold it, and what it keeps, reports and prints."""
