"""Typed IR to Slang text, and Slang text to code of a target."""
