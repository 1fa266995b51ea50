"""What `gradcheck` compared, for people to read."""

from __future__ import annotations

from dataclasses import dataclass, field

from shaderad.diagnostics.wording import counted


@dataclass
class ArgumentReport:
    """What was compared for one argument."""

    name: str
    size: int
    comparisons: int = 0
    worst: float = 0.0
    """Largest difference, as a fraction of what was allowed."""


@dataclass
class Report:
    """What `gradcheck` compared. Where it did not raise, everything agreed."""

    function: str
    arguments: list[ArgumentReport] = field(default_factory=list[ArgumentReport])
    is_exempt: bool = False
    """A function in it has a derivative with ``check=False``: nothing was compared."""
    identity: str = "vjp agrees with jvp"

    def __repr__(self) -> str:
        if self.is_exempt:
            return f"gradcheck of {self.function}: exempt by backward_derivative(check=False)"
        lines = [f"gradcheck of {self.function}: {self.identity}"]
        lines += [
            f"  {one.name}: {counted(one.comparisons, 'comparison')} over "
            f"{counted(one.size, 'float')}, "
            f"worst at {one.worst:.0%} of the tolerance"
            for one in self.arguments
        ]
        return "\n".join(lines)
