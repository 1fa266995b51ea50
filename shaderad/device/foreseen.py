"""Kernels -> their lowered programs, at once or, where they will be asked for, beside what goes on.

Invariant: work in the background does not touch the device, and fails in silence: whoever asks for
the programs has them lowered again, and is told.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from shaderad.runtime.process import let_through

if TYPE_CHECKING:
    from shaderad.ir import nodes
    from shaderad.lower.bindings import Lowered, Mode, Variant
    from shaderad.runtime import Runtime


def lowered_now(kernel: nodes.Kernel, mode: Mode, variant: Variant) -> Sequence[Lowered]:
    """The dispatches of one mode of a kernel."""
    # Imported here: a process that runs what was built before lowers nothing.
    from shaderad.lower.kernels import lower_kernel

    return lower_kernel(kernel, mode, variant)


class Foreseen:
    """The same, on their way, and what the compiler's cache will have of them."""

    def __init__(
        self, kernel: nodes.Kernel, mode: Mode, variant: Variant, runtime: Runtime
    ) -> None:
        self._found: Sequence[Lowered] | None = None
        self._thread = threading.Thread(
            target=self._run, args=(kernel, mode, variant, runtime), daemon=True
        )
        self._thread.start()

    def _run(self, kernel: nodes.Kernel, mode: Mode, variant: Variant, runtime: Runtime) -> None:
        with suppress(Exception):
            self._found = lowered_now(kernel, mode, variant)
            for one in self._found:
                runtime.prepare(one.program)

    def found(self) -> Sequence[Lowered] | None:
        """Waits for them; `None` where they cannot be made."""
        with let_through():
            self._thread.join()
        return self._found
