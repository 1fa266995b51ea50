"""Programs as users write them; those of `real_kernels.py` have `kernel` and `inputs(size)`."""
