"""What every runtime does about its pipelines, and about being closed.

Invariant: one pipeline a program, made at its first use, and one route told for each.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

from shaderad.lower.artifact import Program
from shaderad.runtime import checks
from shaderad.runtime.guard import Guarded, guarded
from shaderad.runtime.protocol import Capabilities, Route

P = TypeVar("P")


class PipelineKeeper(Guarded, Generic[P]):
    """The half of a runtime that no library below it knows."""

    def __init__(self, capabilities: Capabilities) -> None:
        super().__init__(capabilities)
        self._pipelines: dict[Program, P] = {}
        self._routes: list[Route] = []

    @guarded
    def pipeline(self, program: Program) -> P:
        found = self._pipelines.get(program)
        if found is None:
            checks.check_program(self.capabilities, program)
            found, route = self.make_pipeline(program)
            self._pipelines[program] = found
            self._routes.append(route)
        return found

    @abstractmethod
    def make_pipeline(self, program: Program) -> tuple[P, Route]:
        """The pipeline of a program that passed the checks, and which way its code went."""

    def routes(self) -> tuple[Route, ...]:
        return tuple(self._routes)

    def close(self) -> None:
        with self.lock:
            if self.is_closed:
                return
            self.is_closed = True
            self.drop_recorded()
            self._pipelines.clear()
            self.release()

    @abstractmethod
    def release(self) -> None:
        """Gives back what is left once the pipelines are gone."""
