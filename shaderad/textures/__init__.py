"""Pictures -> textures on a device, with their mip chains."""
