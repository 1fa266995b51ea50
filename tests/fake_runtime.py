"""A runtime in NumPy memory whose programs are Python functions: tests without a device."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shaderad.compiler.artifact import BindingAccess, Program
from shaderad.runtime import Capabilities
from shaderad.runtime.command_runs import CommandRun, Frame

Shader = Callable[[dict[int, np.ndarray], np.ndarray, tuple[int, int, int]], None]

CAPABILITIES = Capabilities(
    runtime="fake",
    adapter="NumPy",
    kind="software",
    api="none",
    driver="none",
    features=frozenset({"float-atomics", "subgroups"}),
    formats=("spirv", "wgsl"),
    atomics="native",
    storage_buffer_limit=8,
    binding_bytes_limit=2**27,
    binding_alignment=256,
    buffer_bytes_limit=2**27,
    uniform_bytes_limit=2**14,
    workgroup_count_limit=65535,
    workgroup_threads_limit=256,
    group_bytes_limit=1 << 14,
    subgroup_size=1,
    texture_formats=frozenset({"rgba8unorm"}),
    filtered_formats=frozenset({"rgba8unorm"}),
    texture_extent_limits=(8192, 8192, 2048),
    texture_layer_limit=256,
    has_line_levels=False,
    texture_limit=16,
    sampler_limit=16,
)


@dataclass
class FakeBuffer:
    """Bytes."""

    byte_count: int
    native: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint8))


@dataclass(eq=False)
class FakePipeline:
    program: Program
    native: Any = None

    @property
    def storage_slots(self) -> list[int]:
        bindings = self.program.bindings
        return [b.slot for b in bindings if b.access is not BindingAccess.UNIFORM]


@dataclass
class Dispatched:
    """One dispatch as the runtime saw it."""

    name: str
    words: np.ndarray
    groups: tuple[int, int, int]


class FakeRuntime:
    """Runs ``shaders[program.name]`` on views of the bound buffers as 32-bit words."""

    capabilities = CAPABILITIES
    native = "fake device"
    is_lost = False
    has_large_buffers = False

    def __init__(self, shaders: Mapping[str, Shader]) -> None:
        self.shaders = shaders
        self.dispatched: list[Dispatched] = []
        self.read_count = 0

    def allocate(self, byte_count: int, *, zeroed: bool = True) -> FakeBuffer:
        size = max(16, -(-byte_count // 4) * 4)
        memory = np.full(size, 0 if zeroed else 0xCD, np.uint8)
        return FakeBuffer(byte_count, memory)

    def allocate_unset(self, byte_counts: Sequence[int]) -> list[FakeBuffer]:
        return [self.allocate(byte_count, zeroed=False) for byte_count in byte_counts]

    def together(self, record: Callable[..., Any], *args: Any) -> Any:
        return record(*args)

    def wrap(self, native: Any) -> FakeBuffer:
        return FakeBuffer(native.size, native)

    def write(self, buffer: FakeBuffer, offset: int, data: bytes | memoryview) -> None:
        raw = np.frombuffer(data, np.uint8)
        assert offset % 4 == 0
        assert raw.size % 4 == 0
        buffer.native[offset : offset + raw.size] = raw

    def read(self, requests: Sequence[tuple[FakeBuffer, int, int]]) -> list[memoryview]:
        self.read_count += 1
        assert all(offset % 4 == 0 and count % 4 == 0 for _, offset, count in requests)
        return [memoryview(b.native[o : o + n].tobytes()) for b, o, n in requests]

    def zero(self, buffer: FakeBuffer, offset: int = 0, byte_count: int | None = None) -> None:
        end = buffer.native.size if byte_count is None else offset + byte_count
        buffer.native[offset:end] = 0

    def copy(
        self, source: FakeBuffer, start: int, destination: FakeBuffer, to: int, count: int
    ) -> None:
        assert source is not destination
        assert start % 4 == to % 4 == count % 4 == 0
        destination.native[to : to + count] = source.native[start : start + count]

    def pipeline(self, program: Program) -> FakePipeline:
        return FakePipeline(program)

    def begin(self, program: Program) -> None:
        pass

    def warm_up(self, pipelines: Iterable[FakePipeline]) -> None:
        pass

    def dispatch(
        self,
        pipeline: FakePipeline,
        buffers: Mapping[int, FakeBuffer],
        words: bytes,
        groups: tuple[int, int, int],
        ranges: Mapping[int, tuple[int, int]] | None = None,
    ) -> None:
        self.check_dispatch(pipeline, buffers, words, groups)
        bound = [buffers[slot] for slot in pipeline.storage_slots]
        self.record_dispatch(pipeline, bound, words, groups, ranges)

    def check_dispatch(
        self,
        pipeline: FakePipeline,
        slots: Container[int],
        words: bytes,
        groups: tuple[int, int, int],
    ) -> None:
        assert len(words) % 4 == 0
        assert 0 < max(groups) <= CAPABILITIES.workgroup_count_limit
        assert all(slot in slots for slot in pipeline.storage_slots)

    def record_dispatch(
        self,
        pipeline: FakePipeline,
        buffers: Sequence[FakeBuffer],
        words: bytes,
        groups: tuple[int, int, int],
        ranges: Mapping[int, tuple[int, int]] | None,
    ) -> None:
        assert not ranges
        name = pipeline.program.name
        parameters = np.frombuffer(bytes(words), np.uint32)
        self.dispatched.append(Dispatched(name, parameters, groups))
        if name == "fill_words":
            first, end, _, word = parameters
            buffers[0].native.view(np.uint32)[first:end] = word
            return
        slots = pipeline.storage_slots
        memory = {k: b.native.view(np.uint32) for k, b in zip(slots, buffers, strict=True)}
        self.shaders[name](memory, parameters, groups)

    def new_run(self, commands: Sequence[Any], late: Sequence[Any]) -> CommandRun:
        return CommandRun(commands, late, 0)

    def record_run(self, run: CommandRun, frame: Frame) -> None:
        run.update_words(frame)
        run.record_each(self, frame)  # pyright: ignore

    def recorded(self, count: int) -> None: ...

    def submit(self) -> None: ...

    def wait(self) -> None: ...

    def routes(self) -> tuple[()]:
        return ()

    def close(self) -> None: ...
