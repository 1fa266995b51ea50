"""Slang text -> compiled code, in a child process, kept on disk."""
