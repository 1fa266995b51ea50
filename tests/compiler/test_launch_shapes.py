"""Rows of the launch-shape table: what cannot be right is refused when a row is made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shaderad.compiler.launch_shapes import (
    AT_ONCE,
    PORTABLE,
    TABLE,
    launch_shape,
    portable_shape,
)
from shaderad.lower.targets import PROFILES

TOGETHER = replace(TABLE[AT_ONCE].rows_of_large_elements, is_together=True)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("workgroup", 0),
        ("workgroup", 2048),
        ("group_limit", -1),
        ("sum_group_limit", 0),
        ("held_additions", -1),
        ("copied_words", -1),
        ("indices_per_copied_word", 0),
        ("rows_of_large_elements", TOGETHER),
        ("tile_rows", 0),
        ("lane_teams", (16,)),
        ("lane_teams", (2,)),
        ("wave", 12),
        ("wave", 0),
        ("held_words", -1),
        ("enough_threads", 0),
        ("stream", 0),
        ("shortest_stream", 0),
        ("loop_threads", (64, 32)),
        ("loop_threads", (32, 100)),
        ("loop_threads", (0, 32)),
    ],
)
def test_rows_that_would_compute_wrong_results_are_refused(field: str, value: Any) -> None:
    for row in TABLE.values():
        with pytest.raises(ValueError, match=f"`{field}` of a launch shape"):
            replace(row, **{field: value})


@pytest.mark.parametrize("field", ["longest_whole", "chunk_length", "chunk_limit"])
def test_chunks_have_elements(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        replace(TABLE[AT_ONCE].rows, **{field: 0})


def test_a_shape_fits_the_device() -> None:
    shape = launch_shape(is_parallel=True, has_float_atomics=True, lanes=32, thread_limit=128)
    assert (shape.workgroup, shape.loop_threads) == (128, (32, 128))
    assert (shape.lane_teams, shape.wave) == ((8, 4), 32)
    tiny = launch_shape(is_parallel=True, has_float_atomics=True, lanes=32, thread_limit=20)
    assert (tiny.workgroup, tiny.loop_threads, tiny.lane_teams) == (20, (16, 16), (4,))
    assert tiny.wave == 4


def test_builds_keep_workgroups_of_64() -> None:
    assert TABLE[AT_ONCE].workgroup == 256
    assert PORTABLE.workgroup == 64
    assert {profile.launch_shape.workgroup for profile in PROFILES.values()} == {64}
    assert portable_shape(lanes=4, workgroup=6).lane_teams == ()
