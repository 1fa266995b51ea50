"""How work is laid out over the threads of a device: a row for each kind of device.

A kind is what a device can do, never its name: whether the threads of a workgroup run at once, how
many can read what the others hold, and how floats are added to memory. `launch_shape` is the one
place that asks. `benchmarks/launch_shapes.py` measures each number against others on the device at
hand; the rows say what it printed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

FEWEST_LANES = 4
"""The threads of a wave, at least, where there are waves; some APIs do not say how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How rows are cut into chunks."""

    longest_whole: int
    """Longer rows are cut."""
    chunk_length: int
    """Minimum elements of a chunk, as long as `chunk_limit` is not reached."""
    chunk_limit: int
    """Maximum chunks of all rows."""
    is_together: bool
    """True if a workgroup may work on a chunk together; else each thread takes one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchShape:
    """The numbers of one kind of device."""

    is_parallel: bool
    """True if threads of a workgroup run at once. Else a processor runs them in turn: a loop over
    adjacent indices in one thread costs less than as many threads, and each barrier costs time."""
    workgroup: int
    """Threads of a workgroup; reductions and scans of rows choose their own."""

    # -- kernels of the user ------------------------------------------------------------------
    group_limit: int
    """Workgroups of a dispatch, whose threads loop over the indices; 0: a thread an index."""
    sum_group_limit: int
    """Workgroups of a dispatch whose groups sum, with one atomic add each."""
    adds_at_barriers: bool
    """True if a workgroup without waves sums additions of all its threads at one address."""
    held_additions: int
    """Additions of an index to a gradient, up to which a thread sums for several indices what they
    add to the same elements; 0: each addition is an atomic one."""

    # -- reductions and scans of rows ---------------------------------------------------------
    rows: Cut
    rows_of_large_elements: Cut
    """For elements that are too large for the memory of a workgroup."""

    # -- sums over tiles, such as products ----------------------------------------------------
    tile_rows: int
    """Rows of the results of one thread, in registers, of four columns each."""
    lane_teams: tuple[int, ...]
    """How many threads share what they load, where as many are in a wave; the best first."""
    shares_in_groups: bool
    """True if threads of a workgroup share what they load in its memory, where no wave does."""
    enough_threads: int
    """Sums are cut into parts up to so many threads."""
    stream: int
    """Elements of a part of a sum over columns, which share nothing: memory limits it."""
    shortest_stream: int
    """Elements of a part of one column."""

    # -- loops that one workgroup runs --------------------------------------------------------
    loop_threads: tuple[int, int]
    """The fewest and the most threads of the workgroup."""
    loop_step_cost: int
    """Additions of a step, up to which one workgroup takes less time than a dispatch."""


_CHUNKS_OF_GROUPS = Cut(longest_whole=8192, chunk_length=1024, chunk_limit=4096, is_together=True)
_CHUNKS_OF_THREADS = Cut(longest_whole=2048, chunk_length=512, chunk_limit=4096, is_together=False)

# No GPU has run the benchmark yet, so these numbers have reasons in place of measurements: 64
# threads are whole waves on all GPUs, and 1,024 groups of them fill today's; a thread an index
# lets adjacent threads access adjacent elements; atomic adds of single threads are cheap, and those
# of one address are not; memory of a workgroup is nearer than buffers.
_AT_ONCE = LaunchShape(
    is_parallel=True,
    workgroup=64,
    group_limit=0,
    sum_group_limit=1024,
    adds_at_barriers=True,
    held_additions=0,
    rows=_CHUNKS_OF_GROUPS,
    rows_of_large_elements=_CHUNKS_OF_THREADS,
    tile_rows=8,
    lane_teams=(8, 4),
    shares_in_groups=True,
    enough_threads=8192,
    stream=32768,
    shortest_stream=32,
    loop_threads=(32, 256),
    loop_step_cost=500_000,
)
# Ratios of times to those with the number here: of lavapipe on two cores, and where it says so of
# SwiftShader, which has no waves.
_IN_TURN = LaunchShape(
    is_parallel=False,
    workgroup=64,  # 32 to 256: 0.89 to 0.97; SwiftShader 0.99
    group_limit=128,  # 0: 1.65, 2.13; 32 to 256: 1.01 to 1.11; 1024: 1.03, 1.15
    sum_group_limit=128,  # 32: 1.01; 512: 1.18; 1024: 1.36; 4096: 2.79
    adds_at_barriers=False,  # True on SwiftShader: 0.98
    held_additions=4,  # 0: 2.47 on a grid, 0.95 at random; 8: 1.00
    rows=_CHUNKS_OF_THREADS,  # together: 2.2 to 7.1; others longer or shorter: 0.91 to 1.33
    rows_of_large_elements=_CHUNKS_OF_THREADS,
    tile_rows=8,  # 4: 0.85 to 1.10; 16: 0.86 to 1.18; SwiftShader 1.28 to 1.32, 0.86 to 0.95
    lane_teams=(8, 4),  # 4 alone: 1.25 to 1.62; none: 2.49 to 3.40
    shares_in_groups=False,  # True, without waves: 1.37 to 1.95; SwiftShader 1.26 to 1.42
    enough_threads=2048,  # 8192: 0.98 to 1.16; 1024: 0.92 to 1.01
    stream=32768,  # 8192: 0.98, 1.00; 131072: 0.90, 0.99
    shortest_stream=32,  # 8: 1.04, 1.11; 128: 0.91, 1.63
    loop_threads=(32, 256),  # at most 64: 0.83 to 3.81; at least 128: 1.0 to 1.18
    loop_step_cost=500_000,  # never: 1.0 to 11; always: 0.92 to 1.31
)
AT_ONCE, IN_TURN, IN_TURN_BY_WORDS = "at once", "in turn", "in turn, floats added as words"
TABLE: dict[str, LaunchShape] = {
    AT_ONCE: _AT_ONCE,
    IN_TURN: _IN_TURN,
    # SwiftShader; 4: 0.61 on a grid, 1.22 at random.
    IN_TURN_BY_WORDS: replace(_IN_TURN, held_additions=0),
}


def kind_of(*, is_parallel: bool, has_float_atomics: bool) -> str:
    """The row of `TABLE` for a device."""
    if is_parallel:
        return AT_ONCE
    return IN_TURN if has_float_atomics else IN_TURN_BY_WORDS


def launch_shape(*, is_parallel: bool, has_float_atomics: bool, lanes: int) -> LaunchShape:
    """The numbers for a device on which `lanes` adjacent threads can read what the others hold."""
    row = TABLE[kind_of(is_parallel=is_parallel, has_float_atomics=has_float_atomics)]
    return replace(row, lane_teams=tuple(team for team in row.lane_teams if team <= lanes))


PORTABLE = launch_shape(is_parallel=True, has_float_atomics=False, lanes=1)
"""For devices that nobody could ask, such as those that run a build."""
