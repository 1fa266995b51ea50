"""The common part of the functions that `sad.torch.wrap` and `sad.jax.wrap` return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self


class Wrapped:
    """A function on arrays as a function of another library's arrays.

    Copied as itself, and pickled with its function and the arguments that stay the same.
    """

    def __init__(self, function: Callable[..., Any], call: dict[str, Any]) -> None:
        self.function = function
        self.call = call
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __reduce__(self) -> Any:
        return type(self), (self.function, self.call)

    def __deepcopy__(self, memo: object) -> Self:
        return self
