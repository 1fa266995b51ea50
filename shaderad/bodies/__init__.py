"""Passes and analyses of kernel bodies, before they are differentiated and lowered."""
