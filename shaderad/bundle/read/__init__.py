"""A built folder -> kernels and graphs to call."""
