"""shaderad: Python kernels, readable Slang with gradients, on wgpu and slangpy."""
