"""The functions to wrap, with arguments of PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from tests.wrapped import functions
from tests.wrapped.functions import arrays_in, cases


def floats(*shape: int) -> torch.Tensor:
    """Numbers from 0.3 to 1.3 that require grad."""
    generator = torch.Generator().manual_seed(sum(shape))
    x = torch.rand(shape, generator=generator, dtype=torch.float64) + 0.3
    return x.requires_grad_()


def whole(content: list[int]) -> torch.Tensor:
    return torch.tensor(content, dtype=torch.int32)


def spots() -> dict[str, torch.Tensor]:
    return functions.spots(floats, whole)


CASES = cases(floats, whole)


def floats_in(tree: Any) -> list[torch.Tensor]:
    return [x for x in arrays_in(tree) if x.dtype.is_floating_point]
