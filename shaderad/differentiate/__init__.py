"""Functions at their arguments: pullbacks, tangents and the transforms made of them."""
