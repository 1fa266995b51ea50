"""The kernels of `shaderad.render`, in the kernel language."""
