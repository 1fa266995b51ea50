"""The kernels of the rendering kit, in the kernel language."""
