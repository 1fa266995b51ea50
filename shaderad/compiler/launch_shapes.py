"""The layout of work over the threads of a device: one row per kind of device.

A kind is a set of abilities, never a name: whether the threads of a workgroup run in parallel, how
many can read each other's registers, and how floats are added to memory. Only `launch_shape` looks
at them. `benchmarks/launch_shapes.py` compares each number with others on the current device; the
comments on the rows are its results.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

FEWEST_LANES = 4
"""Minimum threads of a wave, if a device has waves; some APIs do not report the number."""
MOST_THREADS = 1024
"""Maximum threads of a workgroup on every device that we know."""
TEAMS = (4, 8)
"""The sizes of teams that may share loads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The division of rows into parts."""

    longest_whole: int
    """Longer rows are cut."""
    chunk_length: int
    """Minimum elements of a part, until `chunk_limit` is reached."""
    chunk_limit: int
    """Maximum number of parts of all rows."""
    is_together: bool
    """True if threads of a workgroup may share rows and parts; else each thread takes one."""

    def __post_init__(self) -> None:
        for name in ("longest_whole", "chunk_length", "chunk_limit"):
            _check(self, name, getattr(self, name) >= 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchShape:
    """The numbers of one kind of device."""

    is_parallel: bool
    """True if threads of a workgroup run in parallel. Otherwise a processor runs them in turn: a
    loop over adjacent indices costs less than one thread per index, and barriers cost time."""
    workgroup: int
    """Threads of a workgroup."""

    # -- kernels of the user ------------------------------------------------------------------
    group_limit: int
    """Maximum workgroups of a dispatch, whose threads loop over the indices; 0 for one thread per
    index."""
    sum_group_limit: int
    """Maximum workgroups of a dispatch whose groups sum, with one atomic add each; at least 1."""
    adds_at_barriers: bool
    """True if a workgroup without waves sums additions of all its threads at one address."""
    held_additions: int
    """If an index makes at most this many additions to a gradient, a thread sums them over several
    indices before it adds to memory; 0 if each addition is atomic. Threads that meet at barriers
    never hold additions."""
    copied_words: int
    """Maximum words of the arrays that a workgroup copies to its own memory, where its threads add
    before one of them adds to memory; 0 if each addition goes to memory at once."""
    indices_per_copied_word: int
    """Minimum indices of such a workgroup for each word that it adds to memory."""
    fewest_copying_groups: int
    """Minimum workgroups of a dispatch with such copies."""

    # -- reductions and scans of rows ---------------------------------------------------------
    rows: Cut
    rows_of_large_elements: Cut
    """For totals that are too large for the memory of a workgroup."""
    held_words: int
    """Maximum words of a row that a thread holds in registers; 0 if rows are read again."""
    wave: int
    """Maximum lanes of a wave that fold their totals there; a power of two."""

    looks_back: bool
    """True if groups scan long rows in one pass, by the totals that they leave to each other; only
    on devices with 64-bit atomics."""

    # -- sorts of rows -------------------------------------------------------------------------
    shortest_by_digits: int
    """Minimum elements of rows that are sorted by digits, and not by merges; 0 if none are."""

    # -- sums over tiles, such as products ----------------------------------------------------
    tile_rows: int
    """Rows of results that one thread holds in registers, with four columns each."""
    lane_teams: tuple[int, ...]
    """The sizes of teams whose threads share their loads, if a wave has that many; the best first.
    Only sizes in `TEAMS`."""
    shares_in_groups: bool
    """True if threads of a workgroup share their loads in group memory when waves cannot."""
    enough_threads: int
    """Sums are cut into parts until there are this many threads."""
    stream: int
    """Elements of a part of a sum over columns, which shares no loads and is bound by memory."""
    shortest_stream: int
    """Minimum elements of a part of one column."""

    # -- loops that one workgroup runs --------------------------------------------------------
    loop_threads: tuple[int, int]
    """The fewest and the most threads of the workgroup; powers of two."""
    loop_step_cost: int
    """Maximum additions of a step for which one workgroup takes less time than a dispatch."""

    def __post_init__(self) -> None:
        """Refuses rows that would make kernels compute wrong results."""
        for name in ("workgroup", "loop_threads"):
            _check(self, name, all(1 <= n <= MOST_THREADS for n in _numbers(getattr(self, name))))
        at_least_zero = ("group_limit", "held_additions", "copied_words", "held_words")
        for name in (*at_least_zero, "shortest_by_digits"):
            _check(self, name, getattr(self, name) >= 0)
        # Groups add their sums after the loop over their indices, at barriers.
        at_least_one = ("sum_group_limit", "tile_rows", "enough_threads", "stream")
        for name in (*at_least_one, "shortest_stream", "indices_per_copied_word"):
            _check(self, name, getattr(self, name) >= 1)
        # Group memory is too small for one of these elements per thread.
        is_together = self.rows_of_large_elements.is_together
        _check(self, "rows_of_large_elements", not is_together)
        _check(self, "lane_teams", set(self.lane_teams) <= set(TEAMS))
        _check(self, "wave", self.wave >= 1 and self.wave & (self.wave - 1) == 0)
        fewest, most = self.loop_threads
        are_powers = all(n & (n - 1) == 0 for n in self.loop_threads)
        _check(self, "loop_threads", fewest <= most and are_powers)

    def on(self, *, lanes: int, thread_limit: int, has_long_atomics: bool = False) -> LaunchShape:
        """The shape on a device.

        Args:
            lanes: Threads of a wave.
            thread_limit: Maximum threads of a workgroup.
            has_long_atomics: True if the device has atomics of 64 bits.
        """
        workgroup = min(self.workgroup, thread_limit)
        teams = (t for t in self.lane_teams if t <= lanes and workgroup % t == 0)
        wave = self.wave
        while wave > max(1, lanes) or workgroup % wave:
            wave //= 2
        fewest, most = self.loop_threads
        while most > max(1, thread_limit):
            most //= 2
        return replace(
            self,
            workgroup=workgroup,
            lane_teams=tuple(teams),
            wave=wave,
            looks_back=self.looks_back and has_long_atomics,
            loop_threads=(min(fewest, most), most),
        )


def _numbers(value: int | tuple[int, ...]) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,)


def _check(row: Cut | LaunchShape, name: str, is_right: bool) -> None:
    if not is_right:
        raise ValueError(f"`{name}` of a launch shape is {getattr(row, name)!r}")


# A chunk is four loads of four per thread; not measured.
_CHUNKS_OF_GROUPS = Cut(longest_whole=8192, chunk_length=4096, chunk_limit=4096, is_together=True)
_CHUNKS_OF_THREADS = Cut(longest_whole=2048, chunk_length=512, chunk_limit=4096, is_together=False)

# Times relative to those with the number in the row, on one NVIDIA H200 through Vulkan. All except
# those of `workgroup` were measured with workgroups of 64. With 256, all 896 conformance cases
# passed.
_AT_ONCE = LaunchShape(
    is_parallel=True,
    workgroup=256,  # with it, to 64: streams 0.41, lookups 0.8, the rest 0.95 to 1.1
    group_limit=0,  # 32: 2.88, 4.27; 256: 1.20, 1.25; 1024: 0.97, 0.85
    sum_group_limit=1024,  # 32: 1.09; 128, 512: 1.0; 4096: 1.08
    adds_at_barriers=True,  # False: 1.03
    held_additions=0,  # 4, with group_limit 1024 to 8192: 1.0 for the gradient of a mesh
    copied_words=4096,  # 0, by a probe of 1,024 words and 1,056 groups: 22.9
    indices_per_copied_word=4,  # not measured
    fewest_copying_groups=16,  # not measured
    rows=_CHUNKS_OF_GROUPS,  # by threads: 1.32 to 3.97; others longer or shorter: 0.89 to 1.17
    rows_of_large_elements=_CHUNKS_OF_THREADS,
    held_words=64,  # not measured
    wave=64,  # not measured
    looks_back=True,  # not measured
    shortest_by_digits=8192,  # not measured
    tile_rows=8,  # 4: 0.90 to 1.28; 16: 0.81 to 1.01
    lane_teams=(8, 4),  # 4 alone: 0.87 to 0.97; none: 1.04 to 1.71
    shares_in_groups=True,  # False, without waves: 0.63 to 0.83
    enough_threads=8192,  # 1024: 0.95 to 3.10; 32768: 0.82 to 0.98
    stream=32768,  # 8192: 0.98, 0.99; 131072: 0.96, 0.99
    shortest_stream=32,  # 8: 0.93, 1.05; 128: 0.98, 0.99
    loop_threads=(32, 256),  # at least 128: 0.83, 1.04
    loop_step_cost=500_000,
)
# Times relative to those with the number in the row: of lavapipe on two cores, or, where noted, of
# SwiftShader, which has no waves.
_IN_TURN = LaunchShape(
    is_parallel=False,
    workgroup=64,  # 32 to 256: 0.89 to 0.97; SwiftShader 0.99
    group_limit=128,  # 0: 1.65, 2.13; 32 to 256: 1.01 to 1.11; 1024: 1.03, 1.15
    sum_group_limit=128,  # 32: 1.01; 512: 1.18; 1024: 1.36; 4096: 2.79
    adds_at_barriers=False,  # True on SwiftShader: 0.98
    held_additions=4,  # 0: 2.47 on a grid, 0.95 at random; 8: 1.00
    copied_words=0,
    indices_per_copied_word=4,
    fewest_copying_groups=16,
    rows=_CHUNKS_OF_THREADS,  # together: 2.2 to 7.1; others longer or shorter: 0.91 to 1.33
    rows_of_large_elements=_CHUNKS_OF_THREADS,
    held_words=0,
    wave=64,
    looks_back=False,
    shortest_by_digits=0,  # 1: 2.0 to 2.4
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


def launch_shape(
    *,
    is_parallel: bool,
    has_float_atomics: bool,
    lanes: int,
    thread_limit: int = MOST_THREADS,
    has_long_atomics: bool = False,
) -> LaunchShape:
    """The numbers for a device.

    Args:
        is_parallel: True if threads of a workgroup run in parallel.
        has_float_atomics: False if floats are added to memory by exchanges of words.
        lanes: Adjacent threads that can read each other's registers.
        thread_limit: Maximum threads of a workgroup.
        has_long_atomics: True if the device has atomics of 64 bits.
    """
    row = TABLE[kind_of(is_parallel=is_parallel, has_float_atomics=has_float_atomics)]
    return row.on(lanes=lanes, thread_limit=thread_limit, has_long_atomics=has_long_atomics)


# GPUs of one vendor prefer workgroups of 256. Until a second vendor is measured, portable code
# keeps 64 threads, which are whole waves on all GPUs.
_EVERYWHERE = replace(_AT_ONCE, workgroup=64)


def portable_shape(*, lanes: int, workgroup: int = _EVERYWHERE.workgroup) -> LaunchShape:
    """The numbers for devices that are unknown, such as those that run a build."""
    row = replace(_EVERYWHERE, workgroup=workgroup)
    return row.on(lanes=lanes, thread_limit=MOST_THREADS)


PORTABLE = portable_shape(lanes=1)
"""For unknown devices without waves."""
