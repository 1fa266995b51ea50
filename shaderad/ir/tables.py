"""Tables with a row for each op, type rule or node class: a missing row fails at import."""

from __future__ import annotations

from collections.abc import Container, Iterable


def check_rows(
    table: Container[object], wanted: Iterable[object], but: Container[object] = ()
) -> None:
    """Checks, below a table, that it has a row for each of `wanted` except those in `but`.

    Raises:
        LookupError: Some of `wanted` have no row.
    """
    missing = [str(key) for key in wanted if key not in table and key not in but]
    if missing:
        raise LookupError(f"no row for {', '.join(missing)}")
