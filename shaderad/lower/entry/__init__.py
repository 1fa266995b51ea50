"""Entry points: the threads around a body."""
