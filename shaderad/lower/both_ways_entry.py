"""The entry point that goes through chunks of a row from both ends: shaders/both_ways.slang."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shaderad.ir.nodes import Function
from shaderad.ir.types import Tuple, Type
from shaderad.lower.arrays import write_cell
from shaderad.lower.bindings import Role
from shaderad.lower.entry_points import EntryWriter
from shaderad.lower.entry_scope import EntryScope
from shaderad.lower.operators import Operator
from shaderad.lower.pass_fold import Fold, note_needs
from shaderad.lower.piece import Piece


@dataclass(frozen=True, slots=True)
class Way:
    """One of the two scans."""

    operator: Operator
    finish: Function
    """What is made of what it finds."""
    befores: str
    """The array of what comes before each chunk, on the way that it goes."""


@dataclass(frozen=True, slots=True)
class BothWaysEntry:
    """Results from what lies on both sides of each element."""

    from_end: Way
    """Its elements are those of the kernel."""
    from_start: Way
    words: Mapping[str, str]
    """The size that each word holds: see lower/pass_sizes.py."""
    result: str
    function: Function
    """Takes what is found before an element, its index, what is found after it, and uniforms by
    name; gives the result and the element of the scan from the start."""
    restored: Function
    """Gives what the scan from the end goes on from, of what it finished into."""
    own_uniforms: frozenset[str]
    """What `function` takes and elements do not."""

    @property
    def writer(self) -> EntryWriter:
        ways = (self.from_end, self.from_start)
        functions = [f for way in ways for f in (way.operator.combine, way.finish)]
        functions += [self.restored, self.function]
        return EntryWriter(self._note_needs, self._write, tuple(functions), self.own_uniforms)

    def _note_needs(self, entry: EntryScope) -> None:
        end, start = self.from_end, self.from_start
        arrays, state = entry.module.arrays, start.operator.state
        note_needs(entry, end.operator, end.finish, [end.befores], {self.result: self._stored})
        for function in (start.operator.combine, start.finish, self.restored, self.function):
            entry.module.function(function)
        entry.module.stored_types.add(state)
        arrays.need_elements(Role.INPUT, start.befores, state)
        arrays.need(Role.OUTPUT, self.result, self._stored, write_cell(self._stored))

    @property
    def _stored(self) -> Type:
        result = self.function.result
        assert isinstance(result, Tuple), "the result and an element"
        return result.elements[0]

    def _write(self, entry: EntryScope) -> tuple[str, Piece, Piece]:
        end = self.from_end
        fold = Fold(entry, end.operator, self.words, end.finish)
        fold.open("Row : IBothWays")
        self._write_recurrence(fold)
        self._write_keeping(fold)
        self._write_scan(fold)
        return fold.close("both_ways", "bothWays")

    def _write_recurrence(self, fold: Fold) -> None:
        piece, teams = fold.entry.piece, fold.size("team_count")
        t = fold.entry.module.types.spell(self.from_end.finish.result)
        piece.add(f"typealias After = {t};")
        value = fold.read(self.from_end.befores, f"max({teams} - team, 2) - 2")
        piece.add(f"static {t} afterTeam(uint team) {{ return {fold.finished(value)}; }}")
        value = fold.finished("at(number)")
        piece.add(f"static {t} afterLast(uint number) {{ return {value}; }}")
        restored = fold.entry.module.function(self.restored)
        value = fold.finished(f"{fold.combine}({restored}(after), at(number))")
        piece.add(f"static {t} pulled(uint number, {t} after) {{ return {value}; }}")

    def _write_keeping(self, fold: Fold) -> None:
        """Results read while they are still to come."""
        entry, t = fold.entry, self._stored
        spelled = entry.module.types.spell(t)
        store = fold.store(self.result, t, "number", "after")
        entry.piece.add(f"static void keep(uint number, {spelled} after) {{ {store} }}")
        tag = entry.tags.reader(Role.OUTPUT, self.result, t)
        text = f"return {spelled}.read<{tag}>(number * {spelled}.wordCount);"
        entry.piece.add(f"static {spelled} kept(uint number) {{ {text} }}")

    def _write_scan(self, fold: Fold) -> None:
        entry, start = fold.entry, self.from_start
        piece, module = entry.piece, entry.module
        state = module.types.spell(start.operator.state)
        piece.add(f"typealias Before = {state};")
        tag = entry.tags.reader(Role.INPUT, start.befores, start.operator.state)
        text = f"return {state}.read<{tag}>((max(team, 1) - 1) * {state}.wordCount);"
        piece.add(f"static {state} beforeTeam(uint team) {{ {text} }}")
        text = f"return {module.function(start.operator.combine)}(left, right);"
        piece.add(f"static {state} joined({state} left, {state} right) {{ {text} }}")
        after = module.types.spell(self.from_end.finish.result)
        piece.open(f"static {state} write(uint number, {state} before, {after} after)")
        found = f"{module.function(start.finish)}(before)"
        call = fold.call(self.function, [found, "int(number)", "after"])
        piece.add(f"var found = {call};")
        piece.add(fold.store(self.result, self._stored, "number", "found.item0"))
        piece.add("return found.item1;")
        piece.close()
