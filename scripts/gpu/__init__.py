"""All that this machine's devices can run: checked, measured, and written to a report."""
