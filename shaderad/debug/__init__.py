"""One thread of a kernel run as Python, for ``breakpoint()``, ``print`` and stepping."""

from shaderad.debug.thread import debug_kernel as debug_kernel
