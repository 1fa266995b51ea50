"""Kernel bodies -> bodies that later stages can rely on, and what is known of them."""
