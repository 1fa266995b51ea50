"""Observers of runtimes, and clocks that time their dispatches."""
