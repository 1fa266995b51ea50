"""Reductions and scans of rows, as dispatches."""
