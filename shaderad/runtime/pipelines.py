"""The pipelines of a runtime, and closing it.

Invariant: each program has one pipeline, made at its first use, and one reported route. Compilers
run in the child process, outside of the lock of the runtime.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from typing import Generic, TypeVar

from shaderad.compiler.artifact import Code, Program
from shaderad.diagnostics.progress import Work
from shaderad.runtime import checks
from shaderad.runtime.guard import Guarded, guarded
from shaderad.runtime.interrupts import let_through, turn
from shaderad.runtime.protocol import Capabilities, Route

P = TypeVar("P")


class PipelineKeeper(Guarded, Generic[P]):
    """The base of runtimes: the parts that do not depend on wgpu or slangpy."""

    def __init__(self, capabilities: Capabilities) -> None:
        super().__init__(capabilities)
        self._pipelines: dict[Program, P] = {}
        self._routes: list[Route] = []
        self._first_runs: list[str] = []
        """Programs whose pipelines were made since the last wait."""

    def pipeline(self, program: Program) -> P:
        pipeline = self._cached(program)
        if pipeline is None:
            # Without the lock: compilation takes long and must be interruptible.
            with let_through():
                code, route = self.compiled(program)
            pipeline = self._added(program, code, route)
        return pipeline

    def prepare(self, program: Program) -> None:
        checks.check_program(self.capabilities, program)
        self.compiled(program)

    @guarded
    def _cached(self, program: Program) -> P | None:
        if program not in self._pipelines:
            checks.check_program(self.capabilities, program)
        return self._pipelines.get(program)

    @guarded
    def _added(self, program: Program, code: Code, route: Route) -> P:
        if program not in self._pipelines:  # else another thread was faster
            self._pipelines[program] = self.make_pipeline(program, code)
            self._routes.append(route)
            self._first_runs.append(program.name)
        return self._pipelines[program]

    @abstractmethod
    def compiled(self, program: Program) -> tuple[Code, Route]:
        """The code that the child process made of a checked program, and its route.

        Does not use the device.
        """

    @abstractmethod
    def make_pipeline(self, program: Program, code: Code) -> P:
        """Creates the pipeline of a checked program."""

    @contextmanager
    def first_runs(self) -> Generator[None]:
        """Shows progress during a wait: drivers may compile at the first dispatch."""
        names, self._first_runs = self._first_runs, []
        with Work(names[0], "first run") if names else nullcontext():
            yield

    def routes(self) -> tuple[Route, ...]:
        return tuple(self._routes)

    def close(self) -> None:
        with turn(self.lock):
            if self.is_closed:
                return
            self.settle()
            self.is_closed, self.is_sound = True, False
            if not self.is_out_of_reach:
                self.drop_recorded()
                self._pipelines.clear()
                self.release()

    @abstractmethod
    def release(self) -> None:
        """Frees the remaining resources after the pipelines."""
