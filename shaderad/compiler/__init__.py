"""Slang text -> compiled code, in a child process, cached on disk."""
