"""Sorts of rows, by digits or by merges, and searches for their extremes."""
