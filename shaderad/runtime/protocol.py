"""What a runtime must do, and what its device can do as plain data.

Everything above `runtime/` speaks to this protocol and reads `Capabilities`; it never asks which
runtime it has. Recorded commands run in the order of the calls that recorded them, and a `write`
is never seen by a dispatch recorded before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from shaderad.lower.artifact import Program

Atomics = Literal["native", "compare-exchange", "exchange"]
"""How a float is added to memory that several threads share."""

Kind = Literal["discrete", "integrated", "virtual", "software", "unknown"]

SMALLEST_ALLOCATION = 16
"""Bytes. Binding a buffer of size 0 ends the process in wgpu-native."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What one opened device can do."""

    runtime: str
    """`wgpu` or `slangpy`."""
    adapter: str
    kind: Kind
    api: str
    """`vulkan`, `d3d12`, `metal`, `cuda`."""
    driver: str
    """Driver and version as far as the runtime tells; part of the key of cached verdicts."""
    features: frozenset[str]
    """Out of `lower.artifact.FEATURES`."""
    atomics: Atomics
    storage_buffer_limit: int
    """Buffers that one entry point may bind, constant buffer apart."""
    binding_bytes_limit: int
    """Bytes of one buffer that a shader can reach."""
    uniform_bytes_limit: int
    """Bytes of one constant buffer."""
    workgroup_count_limit: int
    """Workgroups along one dimension of a dispatch."""
    workgroup_threads_limit: int
    """Threads of one workgroup."""

    @property
    def is_parallel(self) -> bool:
        """Whether the threads of a group run side by side; processors run them in turn."""
        return self.kind != "software"


@dataclass(frozen=True, slots=True)
class Route:
    """Which way one program went to the device, and why."""

    program: str
    target: str
    """`spirv`, `wgsl`, or `slang` where the runtime compiles the text itself."""
    reason: str


class Buffer(Protocol):
    """Device memory. It is freed when the last reference is dropped."""

    @property
    def byte_count(self) -> int: ...
    @property
    def native(self) -> Any:
        """The runtime's own buffer, at least `SMALLEST_ALLOCATION` bytes long."""
        ...

    def shared(self) -> Any:
        """The same, for somebody else to hold: its memory will not serve anything else."""
        ...


class Pipeline(Protocol):
    """A program ready to be dispatched."""

    @property
    def program(self) -> Program: ...
    @property
    def native(self) -> Any: ...


class Runtime(Protocol):
    """One opened device. All methods may be called from any thread; one lock serialises them.

    Whatever fails below surfaces as `DeviceError`, or as `CompileError` from `pipeline`. After a
    failure in a recorded command, everything recorded since the last submission is dropped. Once
    the device is lost, every later call raises.
    """

    @property
    def capabilities(self) -> Capabilities: ...
    @property
    def native(self) -> Any:
        """`wgpu.GPUDevice` or `slangpy.Device`."""
        ...

    @property
    def is_lost(self) -> bool:
        """Whether a call has found the device gone; no later one will succeed."""
        ...

    def allocate(self, byte_count: int, *, zeroed: bool = True) -> Buffer:
        """Returns a buffer of `byte_count` bytes, zero-filled unless `zeroed` is given up."""
        ...

    def wrap(self, native: Any) -> Buffer:
        """Makes a `Buffer` of the runtime's own one; the caller keeps its content in order."""
        ...

    def write(self, buffer: Buffer, offset: int, data: bytes | memoryview) -> None:
        """Copies `data` at byte `offset`, after all that is recorded; both are multiples of 4."""
        ...

    def read(self, requests: Sequence[tuple[Buffer, int, int]]) -> list[memoryview]:
        """Submits, waits, and returns the bytes of each (buffer, offset, byte count).

        Offsets and counts are multiples of 4. Several requests cost one round trip.
        """
        ...

    def zero(self, buffer: Buffer, offset: int = 0, byte_count: int | None = None) -> None:
        """Records zero-filling; without `byte_count`, up to the end."""
        ...

    def copy(
        self,
        source: Buffer,
        source_offset: int,
        destination: Buffer,
        destination_offset: int,
        byte_count: int,
    ) -> None:
        """Records a copy; the buffers differ, offsets and count are multiples of 4."""
        ...

    def pipeline(self, program: Program) -> Pipeline:
        """Compiles `program` (disk cache), vets it where that is needed, keeps it by content."""
        ...

    def prepare(self, program: Program) -> None:
        """Fills the disk cache with what `pipeline` will look for, without touching the device.

        Any thread may call it.
        """
        ...

    def dispatch(
        self,
        pipeline: Pipeline,
        buffers: Mapping[int, Buffer],
        words: bytes,
        groups: tuple[int, int, int],
    ) -> None:
        """Records one dispatch.

        Args:
            pipeline: Of this runtime.
            buffers: By slot, one for each READ and WRITE binding.
            words: The constant buffer: `program.parameter_words` in order, 4 bytes each.
            groups: Workgroups along x, y, z, each at most `workgroup_count_limit`; callers
                split what is longer. Any 0 records nothing.
        """
        ...

    def submit(self) -> None:
        """Hands all recorded commands to the device as one submission."""
        ...

    def wait(self) -> None:
        """Submits and waits until the device has finished."""
        ...

    def routes(self) -> tuple[Route, ...]:
        """Which way each program went so far, oldest first."""
        ...

    def close(self) -> None:
        """Drops what is recorded, and the device unless it was handed in. Closing twice is fine."""
        ...
