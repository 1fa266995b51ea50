"""Sums over tiles of results: products, convolutions, their gradients, sums of columns."""
