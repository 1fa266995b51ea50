"""`sad.torch.wrap`: kernels, graphs and functions on arrays as functions of PyTorch's tensors."""

# ruff: noqa: F403
from __future__ import annotations

from importlib.util import find_spec

from shaderad.diagnostics import error

if find_spec("torch") is None:
    raise error("SR0624", name="torch", library="PyTorch")

from shaderad.torch.functions import *
from shaderad.torch.functions import __all__ as __all__
