"""Kernels -> facts that every launch needs, and dispatches on a device; both computed once.

A variant of a kernel is lowered at its first use, or earlier in the background (`Foreseen`). Then
its programs compile in the background. Invariant: background work does not touch the device and
raises no error; after a failure, the first use lowers or compiles again, and raises.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakValueDictionary, ref

from shaderad.bodies.outputs import axes_of_launch
from shaderad.device.lines import AtUserLine
from shaderad.diagnostics.progress import Work
from shaderad.ir import types
from shaderad.ir.pointers import is_pooled
from shaderad.ir.types import Access
from shaderad.lower.bindings import Lowered, Mode, Site, Variant
from shaderad.runtime.process import call_in_children, let_through

if TYPE_CHECKING:
    from shaderad.bodies.outputs import Axis
    from shaderad.bodies.scattered import GroupCopy
    from shaderad.compiler.artifact import Program
    from shaderad.ir import nodes
    from shaderad.ir.sizes import Size
    from shaderad.runtime import Pipeline, Runtime
    from shaderad.runtime.base import Compilation


K = TypeVar("K")
V = TypeVar("V")


class WeakKeys(Generic[K, V]):
    """A dict that does not keep its keys, such as kernels and graphs, alive.

    `weakref.WeakKeyDictionary` has a Python function as its callback. If it is the first one to
    run after a garbage collection, an interrupt that arrived in the meantime is raised in it and
    lost.
    """

    def __init__(self) -> None:
        self._value_by_key: dict[ref[K], V] = {}
        self._dead: deque[ref[K]] = deque()
        self._note = self._dead.append

    def get(self, key: K) -> V | None:
        return self._value_by_key.get(ref(key))

    def setdefault(self, key: K, default: V) -> V:
        """The value of `key`; if it has none, stores and returns `default`."""
        while self._dead:
            self._value_by_key.pop(self._dead.popleft(), None)
        return self._value_by_key.setdefault(ref(key, self._note), default)

    def clear(self) -> None:
        self._value_by_key.clear()


class Stage:
    """One dispatch of a mode, compiled in the background; buffers and words are bound later."""

    __slots__ = ("__weakref__", "_begun", "_pipeline", "_runtime", "is_generated", "lowered",
                 "site_base")  # fmt: skip

    def __init__(
        self, lowered: Lowered, runtime: Runtime, site_base: int, *, is_generated: bool
    ) -> None:
        self.lowered = lowered
        self.site_base = site_base
        """The number of its first site in `Stages.sites`."""
        self._runtime = runtime
        self.is_generated = is_generated
        """True if no user wrote its kernel."""
        self._pipeline: Pipeline | None = None
        self._begun = runtime.begin(lowered.program)

    def begin(self) -> None:
        """Starts to compile again if that has failed."""
        if self._pipeline is None:
            self._begun = self._runtime.begin(self.lowered.program)

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline of the stage's program."""
        self.wait()
        assert self._pipeline is not None
        return self._pipeline

    def wait(self) -> None:
        """Waits for the compiler; returns at once if the pipeline exists.

        Raises:
            CompileError: The program does not compile. A generated one fails at the user's line.
        """
        if self._pipeline is None:
            # Generated kernels have no line of their own; the array functions that run them do.
            with AtUserLine() if self.is_generated else nullcontext():
                self._pipeline = self._runtime.pipeline(self.lowered.program)
            self._begun = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The part of a `Variant` that a launch decides; the device decides the rest."""

    mode: Mode
    bounds: str
    checks: str
    launch_shaped: frozenset[str]
    device_uniforms: frozenset[str]
    wanted: frozenset[str] = frozenset()
    accumulate: bool = False
    natural: frozenset[Size] = frozenset()
    """Conditions on indices that are true: see `bodies/ranges.py`."""
    with_results: bool = False
    absent: frozenset[str] = frozenset()
    """Results without cotangents, in a backward mode."""
    is_one_thread: bool = False
    """True for a launch of one thread; False for primals, whose code is the same for any launch."""
    group_threads: int = 0
    """The threads of a kernel of a plan that one workgroup runs; 0 for other kernels."""
    is_windowed: bool = False
    """True if an array is larger than a binding."""
    copies: tuple[GroupCopy, ...] = ()
    """Arrays of which workgroups may have copies, to which their threads add."""


def lowered_now(kernel: nodes.Kernel, mode: Mode, variant: Variant) -> Sequence[Lowered]:
    """The dispatches of one mode of a kernel."""
    # Imported here: a process that runs built kernels lowers nothing.
    from shaderad.lower.kernels import lower_kernel

    return lower_kernel(kernel, mode, variant)


class Foreseen:
    """The dispatches of one mode of a kernel, lowered and compiled in the background."""

    def __init__(
        self, kernel: nodes.Kernel, mode: Mode, variant: Variant, runtime: Runtime
    ) -> None:
        self._lowered: Sequence[Lowered] | None = None
        self._begun: list[Compilation | None] = []
        """The compilations; holding them keeps them running."""
        self._thread = threading.Thread(
            target=self._run, args=(kernel, mode, variant, runtime), daemon=True
        )
        self._thread.start()

    def _run(self, kernel: nodes.Kernel, mode: Mode, variant: Variant, runtime: Runtime) -> None:
        with suppress(Exception):
            self._lowered = lowered_now(kernel, mode, variant)
            for lowered in self._lowered:
                self._begun.append(runtime.begin(lowered.program))

    def lowered(self) -> Sequence[Lowered] | None:
        """Waits for the dispatches; `None` if lowering failed."""
        with let_through():
            self._thread.join()
        return self._lowered


class Stages:
    """The stages of a device by kernel and choice."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._renew_lock()
        call_in_children(self._renew_lock)
        self._by_kernel: WeakKeys[nodes.Kernel, dict[Choice, tuple[Stage, ...]]] = WeakKeys()
        self._foreseen: WeakKeys[nodes.Kernel, dict[Choice, Foreseen]] = WeakKeys()
        self._facts: WeakKeys[nodes.Kernel, KernelFacts] = WeakKeys()
        self.sites: list[tuple[str, Site]] = []
        """The kernel and place of each statement that reports or prints, by number."""
        self.by_program: WeakValueDictionary[Program, Stage] = WeakValueDictionary()

    def _renew_lock(self) -> None:
        """Replaces the lock in a forked process, where the thread that held it does not exist."""
        self._lock = threading.RLock()

    def clear(self) -> None:
        self._by_kernel.clear()
        self._foreseen.clear()

    def facts(self, kernel: nodes.Kernel) -> KernelFacts:
        """The facts of `kernel` that launches need."""
        return self._facts.get(kernel) or self._facts.setdefault(kernel, KernelFacts(kernel))

    def of(self, kernel: nodes.Kernel, choice: Choice) -> tuple[Stage, ...]:
        """The dispatches of `kernel` for `choice`, lowered once; they compile in the background."""
        by_choice = self._by_kernel.get(kernel)
        if by_choice is not None and choice in by_choice:
            for stage in by_choice[choice]:
                stage.begin()
            return by_choice[choice]
        with self._lock:
            by_choice = self._by_kernel.setdefault(kernel, {})
            if choice not in by_choice:
                with Work(kernel.name, "lowering"):
                    by_choice[choice] = self._lowered(kernel, choice)
            return by_choice[choice]

    def has(self, kernel: nodes.Kernel, mode: Mode) -> bool:
        """True if `kernel` has been run in `mode`."""
        return any(choice.mode is mode for choice in self._by_kernel.get(kernel) or ())

    def foresee(self, kernel: nodes.Kernel, choice: Choice) -> None:
        """Starts to lower and compile `kernel` for `choice` in the background."""
        with self._lock:
            by_choice = self._foreseen.setdefault(kernel, {})
            if choice not in by_choice:
                variant = self.variant(choice)
                by_choice[choice] = Foreseen(kernel, choice.mode, variant, self._runtime)

    def _lowered(self, kernel: nodes.Kernel, choice: Choice) -> tuple[Stage, ...]:
        # Generated kernels have no line of their own; the array functions that run them do.
        with nullcontext() if kernel.reported_name else AtUserLine():
            # Holding it keeps its compilations running.
            foreseen = self._foreseen.setdefault(kernel, {}).pop(choice, None)
            lowered = None if foreseen is None else foreseen.lowered()
            if lowered is None:
                lowered = lowered_now(kernel, choice.mode, self.variant(choice))
            return tuple(self.begun(dispatch, kernel.reported_name) for dispatch in lowered)

    def begun(self, lowered: Lowered, kernel: str) -> Stage:
        """Starts to compile a lowered program.

        Args:
            lowered: The program.
            kernel: The kernel that its reports name; empty for programs that are generated.
        """
        stage = Stage(lowered, self._runtime, len(self.sites), is_generated=not kernel)
        self.sites += [(kernel, site) for site in lowered.sites]
        self.by_program[lowered.program] = stage
        return stage

    def variant(self, choice: Choice) -> Variant:
        """The variant that `choice` is on this device."""
        capabilities = self._runtime.capabilities
        shape = capabilities.launch_shape
        return Variant(
            wanted=choice.wanted,
            bounds=choice.bounds,
            checks=choice.checks,
            launch_shaped=choice.launch_shaped,
            device_uniforms=choice.device_uniforms,
            accumulate=choice.accumulate,
            natural=choice.natural,
            with_results=choice.with_results,
            absent=choice.absent,
            is_one_thread=choice.is_one_thread,
            is_one_group=choice.group_threads > 0,
            is_windowed=choice.is_windowed and not choice.group_threads,
            # A window binds a part of an array, and a copy is added to all of it.
            copies=() if choice.is_windowed else choice.copies,
            workgroup=choice.group_threads or shape.workgroup,
            atomics=capabilities.atomics,
            group_atomics=capabilities.group_atomics,
            group_bytes=capabilities.group_bytes_limit,
            subgroups="subgroups" in capabilities.features,
            storage_buffer_limit=capabilities.storage_buffer_limit,
            shape=shape,
            host=f"`{capabilities.adapter}`",
            features=capabilities.features,
        )


class KernelFacts:
    """The arrays and uniforms of one kernel, grouped in the ways that a launch needs.

    It holds no reference to the kernel, so that a device drops the facts together with it.
    """

    def __init__(self, kernel: nodes.Kernel) -> None:
        self.read = tuple(b for b in kernel.buffers if b.access is Access.IN)
        self.written = tuple(b for b in kernel.buffers if b.access is not Access.IN)
        self.uniforms = kernel.uniforms
        self.pooled = tuple(b for b in self.read if b.is_pointed or is_pooled(b.type))
        """Arrays behind pointers, and arrays of structs that hold pointers; outer ones first."""
        self.resources = frozenset(
            b.name for b in self.read if isinstance(b.type, types.ResourceType)
        )
        """Textures and samplers."""
        self.element_types: dict[str, types.Type] = {b.name: b.type.element for b in kernel.buffers}
        self.element_types.update((u.name, u.type) for u in kernel.uniforms)
        inputs = (*self.read, *kernel.uniforms)
        self.differentiable = frozenset(x.name for x in inputs if types.is_differentiable(x.type))
        """Inputs and uniforms that hold floats."""
        self.differentiable_results = frozenset(
            b.name for b in self.written if types.is_differentiable(b.type)
        )
        self.is_prebuilt = kernel.is_built
        self._axes: tuple[tuple[Axis, ...], ...] | None = None
        self._names_in: dict[tuple[str, ...], frozenset[str]] = {}
        self.name_by_path = {item.path: item.name for item in (*kernel.buffers, *kernel.uniforms)}
        """The path of each array and uniform in the arguments."""

    def axes_of_launch(self, kernel: nodes.Kernel) -> tuple[tuple[Axis, ...], ...]:
        """For each Index, the axes of arrays that are as long as the launch."""
        if self._axes is None:
            built = kernel.built_axes
            self._axes = axes_of_launch(kernel) if built is None else built
        return self._axes

    def names_in(self, arguments: tuple[str, ...]) -> frozenset[str]:
        """The differentiable arrays and uniforms of the arguments with these names."""
        names = self._names_in.get(arguments)
        if names is None:
            names = self._names_in[arguments] = frozenset(
                name
                for path, name in self.name_by_path.items()
                if name in self.differentiable and path[0] in arguments
            )
        return names
