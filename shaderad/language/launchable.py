"""The interface of kernels to callers: decorated kernels, and built ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from shaderad.diagnostics.tracebacks import api_boundary

if TYPE_CHECKING:
    from shaderad.frontend.kernels import KernelSignature
    from shaderad.ir.nodes import Kernel


class Launchable(ABC):
    """A kernel that can be called."""

    bounds = "raise"
    """Default of the call keyword ``bounds``."""

    @api_boundary
    def __call__(self, *args: object, **kwargs: object) -> object:
        """Runs the kernel over ``dim``; returns the written arrays.

        See `shaderad.execute.call.call_kernel` for arguments and errors.
        """
        from shaderad.execute.call import call_kernel

        return call_kernel(self, args, kwargs)

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in messages."""

    @property
    @abstractmethod
    def signature(self) -> KernelSignature:
        """Parameters and types, without the body."""

    @abstractmethod
    def specialise(self, const_values: Mapping[str, object]) -> Kernel:
        """The typed kernel for values of its constants."""
