"""The constant buffer of a dispatch: a size a word, or a word of a number that the host passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from shaderad.execute.schedule import GROUP_LIMIT, SITE_BASE, UniformWord
from shaderad.ir import sizes
from shaderad.ir.sizes import Shape, Size
from shaderad.lower.bindings import Lowered, Role, Word, WordKind


@dataclass(frozen=True, slots=True)
class SizedFacts:
    """The sources of the words of one dispatch."""

    dim: Shape
    thread_count: Size
    group_count: Size
    group_size: int
    shapes: Mapping[str, Shape]
    """Shapes of the kernel's arrays."""
    offsets: Mapping[tuple[Role, str], Size]
    """The start of an array in its bound buffer, in storage words."""
    uniforms: Mapping[str, Sequence[Size | UniformWord]]
    """The words of uniforms that are known; whoever runs the schedule passes those of others."""
    first_item: Size = 0
    """The first thread of a window."""


def sized_words(lowered: Lowered, facts: SizedFacts) -> tuple[Size | UniformWord, ...]:
    """All words in order."""
    return tuple(_VALUES[word.kind](word, facts) for word in lowered.words)


def _first_axis(facts: SizedFacts) -> Size:
    """Groups stand in rows of as many as the device takes along one axis."""
    return sizes.minimum(facts.group_count, sizes.symbol(GROUP_LIMIT))


def _tile(word: Word, facts: SizedFacts) -> Size:
    del word
    threads = sizes.multiply(sizes.maximum(1, facts.group_count), facts.group_size)
    return sizes.multiply(sizes.divide_up(facts.thread_count, threads), facts.group_size)


def _offset(word: Word, facts: SizedFacts) -> Size:
    assert word.role is not None, f"offset word of {word.name} has no role"
    return facts.offsets.get((word.role, word.name), 0)


def _uniform(word: Word, facts: SizedFacts) -> Size | UniformWord:
    words = facts.uniforms.get(word.name)
    return UniformWord(word.name, word.index) if words is None else words[word.index]


_VALUES: dict[WordKind, Callable[[Word, SizedFacts], Size | UniformWord]] = {
    WordKind.THREAD_COUNT: lambda word, facts: sizes.add(facts.first_item, facts.thread_count),
    WordKind.FIRST_ITEM: lambda word, facts: facts.first_item,
    WordKind.TILE: _tile,
    WordKind.GROUP_COUNT_X: lambda word, facts: _first_axis(facts),
    WordKind.DIM: lambda word, facts: facts.dim[word.index],
    WordKind.COUNT: lambda word, facts: sizes.product(facts.shapes[word.name]),
    WordKind.OFFSET: _offset,
    WordKind.SHAPE: lambda word, facts: facts.shapes[word.name][word.index],
    WordKind.UNIFORM: _uniform,
    WordKind.BITS: lambda word, facts: word.index,
    # Whoever records the dispatch writes its number there.
    WordKind.LAUNCH: lambda word, facts: 0,
    WordKind.SITE_BASE: lambda word, facts: sizes.symbol(SITE_BASE),
}
