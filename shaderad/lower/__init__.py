"""Typed IR -> Slang text and what it binds."""
