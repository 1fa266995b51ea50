"""The report of `gradcheck`, readable as its ``repr``."""

from __future__ import annotations

from dataclasses import dataclass, field

from shaderad.diagnostics.wording import counted


@dataclass
class ArgumentReport:
    """Comparisons for one argument."""

    name: str
    size: int
    comparisons: int = 0
    worst: float = 0.0
    """Largest difference, as a fraction of the tolerance."""


@dataclass
class Report:
    """Comparisons that `gradcheck` made; all of them agreed."""

    function: str
    arguments: list[ArgumentReport] = field(default_factory=list[ArgumentReport])
    is_exempt: bool = False
    """True if a derivative with ``check=False`` is involved: nothing was compared."""
    identity: str = "vjp agrees with jvp"

    def __repr__(self) -> str:
        if self.is_exempt:
            return f"gradcheck of {self.function}: exempt by backward_derivative(check=False)"
        lines = [f"gradcheck of {self.function}: {self.identity}"]
        lines += [
            f"  {a.name}: {counted(a.comparisons, 'comparison')} over {counted(a.size, 'float')}, "
            f"worst at {a.worst:.0%} of the tolerance"
            for a in self.arguments
        ]
        return "\n".join(lines)
