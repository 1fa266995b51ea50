"""Typed IR -> Slang text -> compiled programs."""
