"""The names of arrays in the plans of a manifest."""

from __future__ import annotations

from collections.abc import Collection

from shaderad.lower.bindings import ROLES, Role


def result_names(inputs: Collection[str], count: int) -> list[str]:
    """Names for the results of a graph that differ from those of its inputs."""
    names = [f"result_{k}" for k in range(count)]
    return [f"{name}_" if name in inputs else name for name in names]


def plan_name(key: tuple[Role, str]) -> str:
    """The name of an input or output of a plan, such as ``x`` or ``x gradient``."""
    role, name = key
    return f"{name} {ROLES[role].noun}".strip()
