"""Loops in one kernel: in each thread, or in a workgroup whose threads meet between steps."""
