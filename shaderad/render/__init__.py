"""Rendering with gradients, written in kernels and array functions."""

# ruff: noqa: F403
from shaderad.render.antialiasing import *
from shaderad.render.cameras import *
from shaderad.render.files import *
from shaderad.render.meshes import *
from shaderad.render.rasterization import *
from shaderad.render.textures import *
