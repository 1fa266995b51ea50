"""The commands of wgpu since the last submission, and the pipelines that its dispatches set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shaderad.compiler.artifact import Program
from shaderad.runtime.base import Pipeline
from shaderad.runtime.wgpu_pipelines import lib

# Looked up once: every dispatch calls them.
SET_PIPELINE = lib.wgpuComputePassEncoderSetPipeline
SET_IMMEDIATES = lib.wgpuComputePassEncoderSetImmediates
SET_BIND_GROUP = lib.wgpuComputePassEncoderSetBindGroup
DISPATCH = lib.wgpuComputePassEncoderDispatchWorkgroups


class WgpuPipeline(Pipeline):
    """A compute pipeline and its bind group layout."""

    __slots__ = ("internal", "layout", "page_bytes", "run_ahead", "space")

    def __init__(
        self,
        program: Program,
        native: Any,
        serial: int,
        layout: Any,
        page_bytes: int,
        run_ahead: Callable[[], None],
    ) -> None:
        super().__init__(program, native, serial)
        self.internal = native._internal
        self.space = program.space
        self.layout = layout
        self.page_bytes = page_bytes
        """Bytes of the page that the words of a dispatch take; 0 if they are immediates."""
        self.run_ahead: Callable[[], None] | None = run_ahead
        """Runs the program in the child process; `None` after it has run or once it is useless."""

    @property
    def may_join_runs(self) -> bool:
        return not self.page_bytes and not self.space


class Recording:
    """The commands since the last submission."""

    __slots__ = ("compute", "encoder", "pipeline", "touched", "words_used")

    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder
        self.compute: Any = None
        self.pipeline: Any = None
        """The native pipeline that is set in the open pass."""
        self.touched: list[Sequence[int]] = []
        """Serials of the resources of each command."""
        self.words_used = 0

    def touches(self, serial: int) -> bool:
        """True if a command uses the buffer or texture."""
        return any(serial in serials for serials in self.touched)

    def compute_pass(self) -> Any:
        """The open compute pass, which consecutive dispatches share."""
        if self.compute is None:
            self.compute = self.encoder.begin_compute_pass()
        return self.compute

    def end_pass(self) -> Any:
        """Ends the open pass; returns the encoder for copies and clears."""
        if self.compute is not None:
            compute, self.compute, self.pipeline = self.compute, None, None
            compute.end()
        return self.encoder
