"""Tables with a row for each op, type rule or node class: a missing row fails at import."""

from __future__ import annotations

from collections.abc import Container, Iterable


def check_rows(
    table: Container[object], wanted: Iterable[object], but: Container[object] = ()
) -> None:
    """Called below a table, with what it must have rows for, and what never comes there.

    Raises:
        LookupError: Some of `wanted` have no row.
    """
    missing = [str(key) for key in wanted if key not in table and key not in but]
    if missing:
        raise LookupError(f"no row for {', '.join(missing)}")
