"""The interface of a runtime, and the capabilities of a device as data.

Code above `runtime/` uses this protocol and reads `Capabilities`; it never asks which runtime it
has. Recorded commands run in the order of the calls that recorded them, and a dispatch never sees
a `write` that was recorded after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from shaderad.compiler.artifact import Program
from shaderad.runtime.idle_buffers import DeviceBuffer

Atomics = Literal["native", "compare-exchange", "exchange"]
"""The ways of adding a float to memory that threads share."""

Kind = Literal["discrete", "integrated", "virtual", "software", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The features and limits of an opened device."""

    runtime: str
    """`wgpu` or `slangpy`."""
    adapter: str
    kind: Kind
    api: str
    """`vulkan`, `d3d12`, `metal`, `cuda`."""
    driver: str
    """The driver and version that the runtime reports; part of the key of cached verdicts."""
    features: frozenset[str]
    """A subset of `lower.artifact.FEATURES`."""
    atomics: Atomics
    storage_buffer_limit: int
    """Storage buffers that one entry point may bind."""
    binding_bytes_limit: int
    """The bytes of one storage buffer that a shader can reach."""
    uniform_bytes_limit: int
    """The bytes of one constant buffer."""
    workgroup_count_limit: int
    """Workgroups along one dimension of a dispatch."""
    workgroup_threads_limit: int
    """Threads of one workgroup."""

    @property
    def is_parallel(self) -> bool:
        """True if threads of a workgroup run in parallel; software devices run them in turn."""
        return self.kind != "software"


@dataclass(frozen=True, slots=True)
class Route:
    """The code that a program reached the device as, and why."""

    program: str
    target: str
    """`spirv`, `wgsl`, or `slang` if the runtime compiles the text itself."""
    reason: str


class Pipeline(Protocol):
    """A program ready to be dispatched."""

    @property
    def program(self) -> Program: ...
    @property
    def native(self) -> Any: ...


class Runtime(Protocol):
    """One opened device. All methods may be called from any thread; one lock serialises them.

    Failures of the library below raise `DeviceError`, or `CompileError` from `pipeline`. A failure
    while recording drops all commands since the last submission. Once the device is lost, every
    call raises.
    """

    @property
    def capabilities(self) -> Capabilities: ...
    @property
    def native(self) -> Any:
        """`wgpu.GPUDevice` or `slangpy.Device`."""
        ...

    @property
    def is_lost(self) -> bool:
        """True if a call has found the device lost; all later calls fail."""
        ...

    def allocate(self, byte_count: int, *, zeroed: bool = True) -> DeviceBuffer:
        """Creates a buffer of `byte_count` bytes, zero-filled unless `zeroed` is false."""
        ...

    def wrap(self, native: Any) -> DeviceBuffer:
        """Wraps a buffer object of the runtime; the caller synchronises its content."""
        ...

    def write(self, buffer: DeviceBuffer, offset: int, data: bytes | memoryview) -> None:
        """Copies `data` to byte `offset` after all recorded commands; both are multiples of 4."""
        ...

    def read(self, requests: Sequence[tuple[DeviceBuffer, int, int]]) -> list[memoryview]:
        """Submits, waits, and returns the bytes of each (buffer, offset, byte count).

        Offsets and counts are multiples of 4. Several requests cost one round trip.
        """
        ...

    def zero(self, buffer: DeviceBuffer, offset: int = 0, byte_count: int | None = None) -> None:
        """Records zero-filling; without `byte_count`, up to the end."""
        ...

    def copy(
        self,
        source: DeviceBuffer,
        source_offset: int,
        destination: DeviceBuffer,
        destination_offset: int,
        byte_count: int,
    ) -> None:
        """Records a copy; the buffers differ, offsets and count are multiples of 4."""
        ...

    def pipeline(self, program: Program) -> Pipeline:
        """The pipeline of `program`, compiled (disk cache), vetted if needed, and cached."""
        ...

    def prepare(self, program: Program) -> None:
        """Compiles `program` into the disk cache for `pipeline`, without using the device."""
        ...

    def dispatch(
        self,
        pipeline: Pipeline,
        buffers: Mapping[int, DeviceBuffer],
        words: bytes,
        groups: tuple[int, int, int],
    ) -> None:
        """Records one dispatch.

        Args:
            pipeline: Of this runtime.
            buffers: The buffer of each READ and WRITE binding, by slot.
            words: The constant buffer: `program.parameter_words` in order, 4 bytes each.
            groups: Workgroups along x, y, z, each at most `workgroup_count_limit`; a 0 records
                nothing.
        """
        ...

    def submit(self) -> None:
        """Hands all recorded commands to the device as one submission."""
        ...

    def wait(self) -> None:
        """Submits and waits until the device has finished."""
        ...

    def routes(self) -> tuple[Route, ...]:
        """The routes of all programs so far, oldest first."""
        ...

    def close(self) -> None:
        """Drops recorded commands, and closes the device unless it was passed in; idempotent."""
        ...
