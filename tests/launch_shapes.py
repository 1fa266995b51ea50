"""Other numbers than those of `compiler.launch_shapes`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shaderad.compiler.launch_shapes import TABLE, Cut, LaunchShape, launch_shape


def shape_of(
    *, is_parallel: bool = True, has_float_atomics: bool = True, lanes: int = 1
) -> LaunchShape:
    """The row of a device."""
    return launch_shape(is_parallel=is_parallel, has_float_atomics=has_float_atomics, lanes=lanes)


def change_rows(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
    """Gives devices that are opened, and plans that are made, these numbers from now on."""
    for kind, row in TABLE.items():
        monkeypatch.setitem(TABLE, kind, replace(row, **fields))


CHOICES: dict[str, tuple[Any, ...]] = {
    "is_parallel": (False, True),
    "workgroup": (1, 12, 32, 64, 100, 256),
    "group_limit": (0, 1, 3, 128),
    "sum_group_limit": (1, 3, 128),
    "adds_at_barriers": (False, True),
    "held_additions": (0, 1, 4, 9),
    "copied_words": (0, 100, 4096),
    "indices_per_copied_word": (1, 4),
    "fewest_copying_groups": (0, 1, 16),
    "held_words": (0, 8, 64),
    "wave": (1, 4, 64),
    "looks_back": (False, True),
    "shortest_by_digits": (0, 1, 100),
    "tile_rows": (1, 3, 4, 8, 16),
    "lane_teams": ((), (4,), (8, 4), (4, 8)),
    "shares_in_groups": (False, True),
    "enough_threads": (1, 100, 8192),
    "stream": (1, 1000, 32768),
    "shortest_stream": (1, 32),
    "loop_threads": ((1, 1), (2, 64), (32, 256)),
    "loop_step_cost": (-1, 500_000, 10**9),
}
"""Numbers to draw rows of the table from."""


def drawn_cut(rng: np.random.Generator, *, may_be_together: bool) -> Cut:
    longest, length, limit = (int(n) for n in rng.choice([1, 3, 64, 2048], 3))
    is_together = may_be_together and bool(rng.integers(2))
    return Cut(
        longest_whole=longest, chunk_length=length, chunk_limit=limit, is_together=is_together
    )


def drawn_row(rng: np.random.Generator) -> LaunchShape:
    """A row that the table could have."""
    fields = {name: values[rng.integers(len(values))] for name, values in CHOICES.items()}
    return LaunchShape(
        rows=drawn_cut(rng, may_be_together=True),
        rows_of_large_elements=drawn_cut(rng, may_be_together=False),
        **fields,
    )
