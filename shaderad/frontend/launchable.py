"""What a call can launch: a kernel with its parameters, wherever its code comes from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from shaderad.diagnostics.tracebacks import api_boundary

if TYPE_CHECKING:
    from shaderad.frontend.kernels import KernelSignature
    from shaderad.ir.nodes import Kernel


class Launchable(ABC):
    """A kernel as callers see it."""

    bounds = "raise"
    """What an index out of range does where a call does not say."""

    @api_boundary
    def __call__(self, *args: object, **kwargs: object) -> object:
        """Runs the kernel over ``dim``; the written arrays are what it returns.

        See `shaderad.session.call.call_kernel` for the arguments and what they raise.
        """
        from shaderad.session.call import call_kernel

        return call_kernel(self, args, kwargs)

    @property
    @abstractmethod
    def name(self) -> str:
        """As messages call it."""

    @property
    @abstractmethod
    def signature(self) -> KernelSignature:
        """Parameters and types, without the body."""

    @abstractmethod
    def specialise(self, const_values: Mapping[str, object]) -> Kernel:
        """The kernel for the values of its constants."""
