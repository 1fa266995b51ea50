"""Arrays on devices, and Python values given in their place."""
