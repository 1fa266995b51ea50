"""Facts and refusals about a kernel, before any Slang is written."""
