"""The text of uniforms, which are words of the constant buffer or device arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from shaderad.ir.nodes import Uniform
from shaderad.ir.types import (
    Kind,
    LocalArray,
    Pointer,
    Scalar,
    Struct,
    Type,
    leaves,
)
from shaderad.lower.bindings import Role, Word, WordKind
from shaderad.lower.entry.tags import EntryTags

if TYPE_CHECKING:
    from shaderad.lower.write.module import Module
    from shaderad.lower.write.names import IdentifierScope


class Uniforms:
    """The texts of the uniforms of one entry point."""

    def __init__(self, module: Module, tags: EntryTags) -> None:
        self._module = module
        self._tags = tags
        self._kept: dict[str, str] = {}

    def kept(
        self, uniforms: Iterable[Uniform], names: IdentifierScope
    ) -> list[tuple[str, str, str]]:
        """Type, name and text of a variable for each uniform that is a device array.

        From here on `value` is the variable, so that memory is read once.
        """
        variables: list[tuple[str, str, str]] = []
        for u in uniforms:
            if u.name in self._module.variant.device_uniforms:
                text, name = self.value(u), names.make(u.name)
                variables.append((self._module.types.spell(u.type), name, text))
                self._kept[u.name] = name
        return variables

    def value(self, u: Uniform) -> str:
        """The text of a uniform's value."""
        if u.name in self._kept:
            return self._kept[u.name]
        spelled = self._module.types.spell(u.type)
        if u.name in self._module.variant.device_uniforms:
            tag = self._tags.reader(Role.UNIFORM, u.name, u.type)
            return f"{spelled}.read<{tag}>(0)"
        words = iter(self._word(u, leaf.path, k) for k, leaf in enumerate(leaves(u.type)))
        return self._composed(u.type, words)

    def _word(self, u: Uniform, path: tuple[str | int, ...], index: int) -> str:
        name = "_".join((u.name, *map(str, path)))
        scalar = leaves(u.type)[index].scalar
        first = sum(2 if leaf.scalar.kind is Kind.DOUBLE else 1 for leaf in leaves(u.type)[:index])
        word = Word(WordKind.UNIFORM, u.name, first)
        if scalar.kind is Kind.DOUBLE:
            low = self._module.word(word, f"{name}_low")
            high = self._module.word(Word(WordKind.UNIFORM, u.name, first + 1), f"{name}_high")
            return f"doubleOf({low}, {high})"
        if scalar.kind is Kind.BOOL:
            return f"{self._module.word(word, name)} != 0"
        stored = "float" if scalar.kind is Kind.HALF else str(scalar)
        text = self._module.word(word, name, stored)
        return f"half({text})" if scalar.kind is Kind.HALF else text

    def _composed(self, t: Type, words: Iterator[str]) -> str:
        if isinstance(t, Scalar):
            return next(words)
        if isinstance(t, Pointer):
            return f"{self._module.types.spell(t)}({next(words)}, {next(words)})"
        if isinstance(t, Struct):
            parts = [self._composed(f, words) for _, f in t.fields]
        elif isinstance(t, LocalArray):
            parts = [self._composed(t.element, words) for _ in range(t.count)]
        else:
            parts = [next(words) for _ in leaves(t)]
        return f"{self._module.types.spell(t)}({', '.join(parts)})"
