"""Arrays on devices, and Python values that stand for them."""
