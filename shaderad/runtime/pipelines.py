"""What every runtime does about its pipelines, and about being closed.

Invariant: one pipeline a program, made at its first use, and one route told for each. Compilers
run outside of the lock of a runtime, in the child process.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from typing import Generic, TypeVar

from shaderad.diagnostics.progress import Work
from shaderad.lower.artifact import Code, Program
from shaderad.runtime import checks
from shaderad.runtime.guard import Guarded, guarded
from shaderad.runtime.interrupts import let_through, turn
from shaderad.runtime.protocol import Capabilities, Route

P = TypeVar("P")


class PipelineKeeper(Guarded, Generic[P]):
    """The half of a runtime that no library below it knows."""

    def __init__(self, capabilities: Capabilities) -> None:
        super().__init__(capabilities)
        self._pipelines: dict[Program, P] = {}
        self._routes: list[Route] = []
        self._first_runs: list[str] = []
        """Programs whose pipelines nobody has waited for yet."""

    def pipeline(self, program: Program) -> P:
        found = self._known(program)
        if found is None:
            # Not under the lock: it takes long, and an interrupt may come at any moment of it.
            with let_through():
                code, route = self.compiled(program)
            found = self._made(program, code, route)
        return found

    def prepare(self, program: Program) -> None:
        checks.check_program(self.capabilities, program)
        self.compiled(program)

    @guarded
    def _known(self, program: Program) -> P | None:
        found = self._pipelines.get(program)
        if found is None:
            checks.check_program(self.capabilities, program)
        return found

    @guarded
    def _made(self, program: Program, code: Code, route: Route) -> P:
        found = self._pipelines.get(program)  # Another thread may have been faster.
        if found is None:
            found = self._pipelines[program] = self.make_pipeline(program, code)
            self._routes.append(route)
            self._first_runs.append(program.name)
        return found

    @abstractmethod
    def compiled(self, program: Program) -> tuple[Code, Route]:
        """What the child process made of a program that passed the checks, and which way it goes.

        The device is not touched.
        """

    @abstractmethod
    def make_pipeline(self, program: Program, code: Code) -> P:
        """The pipeline of a program that passed the checks."""

    @contextmanager
    def first_runs(self) -> Generator[None]:
        """Waits inside of it may wait for drivers that compile at the first dispatch."""
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
        """Gives back what is left once the pipelines are gone."""
