"""Loops over small arrays in one kernel, whose threads meet at barriers between steps."""
