"""The entry point around a body: ``<kernel>_primal``, ``_bwd``, ``_fwd``, ``_winner``, ``_decode``.

Each reads what was hoisted, calls the body or its derivative, and stores what comes out. A module
whose threads sum something (uniform gradients, Add elements at fixed indices) runs a grid-stride
loop and adds once a group.
"""

from __future__ import annotations

from shaderad.ir.nodes import Buffer, Expr, Uniform
from shaderad.ir.types import (
    Access,
    Kind,
    LocalArray,
    Struct,
    Type,
    is_differentiable,
    scalars,
)
from shaderad.lower.arrays import Cell, read_cell, write_cell
from shaderad.lower.bindings import WORKGROUP_SIZE, Mode, Role, Word, WordKind
from shaderad.lower.entry_tags import EntryTags
from shaderad.lower.module import Module
from shaderad.lower.outputs import Resolved, Sum
from shaderad.lower.piece import Piece, field_name
from shaderad.lower.slang import FunctionWriter
from shaderad.lower.strategy import Hoisted
from shaderad.lower.uniforms import Uniforms

_INDEX = "index"


class EntryPoint:
    """Writes the entry point of one module and the tags that only it uses."""

    def __init__(self, module: Module, resolved: Resolved, body: str) -> None:
        self._module = module
        self._kernel = module.kernel
        self._resolved = resolved
        self._body = body
        self._piece = Piece()
        self._entry_tags = EntryTags(module)
        self._uniforms = Uniforms(module, self._entry_tags)
        self._own = [self._kernel.buffer(n) for n in resolved.own]
        self._float_own = [b for b in self._own if is_differentiable(b.type.element)]
        self._names = module.names.child()
        self._places: dict[str, str] = {}
        """The text of a hoisted element's number, by its name."""
        self._values: dict[str, str] = {}
        """The text of what is read once for all threads, by name."""
        for name in self._kernel.index_names:
            self._names.make(name, ("index", name))

    # -- what must be bound ---------------------------------------------------------------------

    def note_needs(self) -> None:
        """Tells the module's arrays what the entry point itself reads and writes."""
        mode, arrays = self._module.mode, self._module.arrays
        for u in self._kernel.uniforms:
            if u.name in self._module.variant.device_uniforms:
                arrays.need(Role.UNIFORM, u.name, u.type, read_cell(u.type))
        for u in self._wanted_uniforms():
            if mode is Mode.BACKWARD:
                arrays.need_gradient(u.name, u.type, is_summed=True)
            if mode is Mode.FORWARD:
                arrays.need(Role.TANGENT, u.name, u.type, read_cell(u.type))
        for b in self._own:
            t = b.type.element
            if mode in (Mode.PRIMAL, Mode.FORWARD):
                arrays.need(Role.OUTPUT, b.name, t, write_cell(t))
            if mode is Mode.FORWARD and is_differentiable(t):
                arrays.need(Role.OUTPUT_TANGENT, b.name, t, write_cell(t))
            if mode is Mode.BACKWARD and is_differentiable(t):
                arrays.need(Role.COTANGENT, b.name, t, read_cell(t))
        self._note_sums()

    def _note_sums(self) -> None:
        mode, arrays = self._module.mode, self._module.arrays
        for s in self._resolved.sums:
            if mode in (Mode.PRIMAL, Mode.FORWARD):
                arrays.need(Role.OUTPUT, s.buffer, s.type, arrays.float_cell(), fill_word=0)
            if mode is Mode.FORWARD:
                cell = arrays.float_cell()
                arrays.need(Role.OUTPUT_TANGENT, s.buffer, s.type, cell, fill_word=0)
            if mode is Mode.BACKWARD:
                arrays.need(Role.COTANGENT, s.buffer, s.type, Cell.READ)

    def _wanted_uniforms(self) -> list[Uniform]:
        wanted = self._module.variant.wanted
        return [u for u in self._kernel.uniforms if u.name in wanted and is_differentiable(u.type)]

    @property
    def is_reduction(self) -> bool:
        """Whether threads sum something over the whole dispatch."""
        if self._module.mode is Mode.BACKWARD:
            return bool(self._wanted_uniforms() or self._module.strategies.uniform)
        return self._module.mode is not Mode.WINNER and bool(self._resolved.sums)

    @property
    def is_single_group(self) -> bool:
        """Sums of doubles: there is no atomic add for them."""
        if self._module.mode is not Mode.BACKWARD:
            return False
        types = [u.type for u in self._wanted_uniforms()]
        types += [self._element(h.buffer) for h in self._module.strategies.uniform]
        return any(s.kind is Kind.DOUBLE for t in types for s in scalars(t))

    # -- text -----------------------------------------------------------------------------------

    def write(self) -> tuple[Piece, Piece]:
        """The tags and the entry point."""
        name = f"{self._body}_{self._module.mode.value}"
        self.name = self._module.names.make(name)
        for u in self._kernel.uniforms:
            if u.name in self._module.variant.device_uniforms:
                self._entry_tags.reader(Role.UNIFORM, u.name, u.type)
        piece = self._piece
        sums = self._sum_fields() if self.is_reduction else []
        if sums:
            piece.open("struct Sums")
            for field, spelled in sums:
                piece.add(f"{spelled} {field};")
            piece.close()
            piece.add()
        piece.add('[shader("compute")]')
        piece.add(f"[numthreads({WORKGROUP_SIZE}, 1, 1)]")
        piece.open(f"void {self.name}(uint3 group : SV_GroupID, uint laneIndex : SV_GroupIndex)")
        piece.add("lane = laneIndex;")
        count = self._word(WordKind.THREAD_COUNT, "thread_count")
        first = f"threadNumber(group, {self._word(WordKind.GROUP_COUNT_X, 'group_count_x')})"
        self._before_threads()
        if sums:
            piece.add("Sums sums = {};")
            stride = self._word(WordKind.STRIDE, "stride")
            piece.add(f"for (uint {_INDEX} = {first}; {_INDEX} < {count}; {_INDEX} += {stride})")
            piece.add("{")
        else:
            piece.add(f"uint {_INDEX} = {first};")
            piece.add(f"if ({_INDEX} >= {count})")
            piece.indented("return;")
        self._thread()
        if sums:
            piece.add("}")
            self._add_sums()
        if self._module.arrays.uses_report and self._module.report == "Report":
            piece.add("sendReport<Report>();")
        piece.close()
        return self._entry_tags.piece, piece

    def _before_threads(self) -> None:
        """Reads once what is the same for every thread."""
        if self._module.mode is not Mode.BACKWARD:
            return
        for h in self._module.strategies.uniform:
            self._places[h.name] = self._element_number(h)
            spelled = self._module.types.spell(self._element(h.buffer))
            tag = self._module.arrays.tag(h.buffer)
            value = self._names.make(h.name)
            self._values[h.name] = value
            self._piece.add(f"{spelled} {value} = read<{spelled}, {tag}>({self._places[h.name]});")
        for s in self._resolved.sums:
            tag = self._entry_tags.reader(Role.COTANGENT, s.buffer, s.type)
            spelled = self._module.types.spell(s.type)
            value = self._names.make(f"{s.name}_bar")
            self._values[s.name] = value
            self._piece.add(f"{spelled} {value} = read<{spelled}, {tag}>({self._sum_number(s)});")

    def _word(self, kind: WordKind, name: str, index: int = 0) -> str:
        return self._module.word(Word(kind, "", index), name)

    def _thread(self) -> None:
        if self._module.mode in (Mode.WINNER, Mode.BACKWARD, Mode.FORWARD) and self._has_extremes():
            self._piece.add(f"thread = {_INDEX};")
        self._indices()
        {
            Mode.PRIMAL: self._primal,
            Mode.WINNER: self._winner,
            Mode.BACKWARD: self._backward,
            Mode.FORWARD: self._forward,
        }[self._module.mode]()

    def _has_extremes(self) -> bool:
        return any(b.access in (Access.MIN, Access.MAX) for b in self._kernel.buffers)

    def _indices(self) -> None:
        """Index names from the thread's number, row-major over ``dim``."""
        names = self._kernel.index_names
        rest = _INDEX
        for axis, name in enumerate(names):
            inner = [self._word(WordKind.DIM, f"dim_{k}", k) for k in range(axis + 1, len(names))]
            step = " * ".join(inner)
            step = f"({step})" if len(inner) > 1 else step
            text = f"{rest} / {step}" if inner else rest
            self._piece.add(f"int {self._index_name(name)} = int({text});")
            if inner:
                rest = f"({_INDEX} % {step})" if axis == 0 else f"({rest} % {step})"

    def _index_name(self, name: str) -> str:
        return self._names.of(("index", name))

    # -- modes ----------------------------------------------------------------------------------

    def _primal(self) -> None:
        self._call_body(self._arguments())
        for b in self._own:
            self._store(b, "outputs", "write", "")
        for s in self._resolved.sums:
            self._piece.add(f"sums.{s.name} += outputs.{s.name};")

    def _winner(self) -> None:
        self._call_body(self._arguments())

    def _call_body(self, arguments: list[str]) -> None:
        call = f"{self._body}({', '.join(arguments)})"
        has_outputs = bool(self._own or self._resolved.sums)
        self._piece.add(f"Outputs outputs = {call};" if has_outputs else f"{call};")

    def _store(self, b: Buffer, place: str, method: str, suffix: str) -> None:
        role = Role.OUTPUT_TANGENT if suffix else Role.OUTPUT
        tag = self._entry_tags.writer(role, b.name, b.type.element)
        spelled = self._module.types.spell(b.type.element)
        value = f"{place}.{field_name(b.name)}"
        self._piece.add(f"{spelled}.{method}<{tag}>({_INDEX} * {spelled}.wordCount, {value});")

    def _arguments(self) -> list[str]:
        """The body's arguments as plain values."""
        arguments = [self._index_name(n) for n in self._kernel.index_names]
        arguments += [self._uniforms.value(u) for u in self._kernel.uniforms]
        return arguments

    def _backward(self) -> None:
        piece = self._piece
        arguments = [self._index_name(n) for n in self._kernel.index_names]
        pairs: dict[str, str] = {}
        wanted = {u.name for u in self._wanted_uniforms()}
        for u in self._kernel.uniforms:
            if u.name in wanted:
                pairs[u.name] = self._pair(u.name, self._uniforms.value(u), u.type)
            arguments.append(pairs.get(u.name) or self._uniforms.value(u))
        for h in self._module.strategies.exclusive.values():
            self._places[h.name] = self._element_number(h)
            tag, t = self._module.arrays.tag(h.buffer), self._element(h.buffer)
            value = f"read<{self._module.types.spell(t)}, {tag}>({self._places[h.name]})"
            pairs[h.name] = self._pair(h.name, value, t)
            arguments.append(pairs[h.name])
        for h in self._module.strategies.uniform:
            pairs[h.name] = self._pair(h.name, self._values[h.name], self._element(h.buffer))
            arguments.append(pairs[h.name])
        if self._float_own or self._resolved.sums:
            arguments.append(self._cotangent())
        piece.add(f"bwd_diff({self._body})({', '.join(arguments)});")
        for h in self._module.strategies.exclusive.values():
            self._store_exclusive(h, pairs[h.name], self._places[h.name])
        for name, _ in self._sum_fields():
            piece.add(f"sums.{name} += {pairs[name]}.d;" if self._is_scalar(name)
                      else self._accumulate_sum(name, pairs[name]))  # fmt: skip

    def _pair(self, name: str, value: str, t: Type) -> str:
        pair = self._names.make(f"{name}_pair")
        spelled = self._module.types.spell(t)
        self._piece.add(
            f"DifferentialPair<{spelled}> {pair} = diffPair({value}, {spelled}.dzero());"
        )
        return pair

    def _is_scalar(self, name: str) -> bool:
        return not isinstance(self._summed_type(name), Struct | LocalArray)

    def _accumulate_sum(self, name: str, pair: str) -> str:
        spelled = self._module.types.spell(self._summed_type(name))
        return f"sums.{name} = {spelled}.dadd(sums.{name}, {pair}.d);"

    def _summed_type(self, name: str) -> Type:
        for u in self._kernel.uniforms:
            if u.name == name:
                return u.type
        hoisted = next(h for h in self._module.strategies.uniform if h.name == name)
        return self._element(hoisted.buffer)

    def _element(self, buffer: str) -> Type:
        return self._kernel.buffer(buffer).type.element

    def _element_number(self, h: Hoisted) -> str:
        """A hoisted read is silent: the body reports where the program reads."""
        number = self._names.make(f"{h.name}_number")
        tag = self._module.arrays.tag(h.buffer)
        values = ", ".join(self._fixed_text(e) for e in h.indices)
        self._piece.add(f"uint {number} = {self._checked(tag, values)};")
        return number

    def _fixed_text(self, e: Expr) -> str:
        """An index made of constants, Index names and uniforms."""
        types = {u.name: u.type for u in self._kernel.uniforms}
        writer = FunctionWriter(self._module, Piece(), types, is_differentiated=False)
        for name in self._kernel.index_names:
            writer.bind(name, self._index_name(name))
        for u in self._kernel.uniforms:
            writer.bind(u.name, self._uniforms.value(u))
        return writer.text(e)

    def _cotangent(self) -> str:
        self._piece.add("Outputs.Differential cotangent;")
        for b in self._float_own:
            tag = self._entry_tags.reader(Role.COTANGENT, b.name, b.type.element)
            spelled = self._module.types.spell(b.type.element)
            self._piece.add(
                f"cotangent.{field_name(b.name)} = {spelled}.readDifferential<{tag}>"
                f"({_INDEX} * {spelled}.wordCount);"
            )
        for s in self._resolved.sums:
            self._piece.add(f"cotangent.{s.name} = {self._values[s.name]};")
        return "cotangent"

    def _sum_number(self, s: Sum) -> str:
        tag = self._module.arrays.tag(s.buffer)
        return self._checked(tag, self._fixed_text(s.index))

    def _store_exclusive(self, h: Hoisted, pair: str, number: str) -> None:
        arrays, t = self._module.arrays, self._element(h.buffer)
        spelled = self._module.types.spell(t)
        self._piece.add(f"if ({number} != outside)")
        if arrays.is_atomic(Role.GRADIENT, h.buffer):
            tag = f"{arrays.tag(h.buffer)}.Gradient"
            place = f"{number} * {spelled}.gradientWordCount"
            self._piece.indented(f"{spelled}.addDifferential<{tag}>({place}, {pair}.d);")
            return
        tag = self._entry_tags.writer(Role.GRADIENT, h.buffer, t)
        place = f"{number} * {spelled}.wordCount"
        if not self._module.variant.accumulate:
            self._piece.indented(f"{spelled}.writeDifferential<{tag}>({place}, {pair}.d);")
            return
        held = f"{spelled}.readDifferential<{tag}>({place})"
        total = f"{spelled}.dadd({held}, {pair}.d)"
        self._piece.indented(f"{spelled}.writeDifferential<{tag}>({place}, {total});")

    def _forward(self) -> None:
        arguments = [self._index_name(n) for n in self._kernel.index_names]
        wanted = {u.name for u in self._wanted_uniforms()}
        for u in self._kernel.uniforms:
            value = self._uniforms.value(u)
            if u.name in wanted:
                tag = self._entry_tags.reader(Role.TANGENT, u.name, u.type)
                spelled = self._module.types.spell(u.type)
                value = f"diffPair({value}, {spelled}.readDifferential<{tag}>(0))"
            arguments.append(value)
        call = f"fwd_diff({self._body})({', '.join(arguments)})"
        if not (self._own or self._resolved.sums):
            self._piece.add(f"{call};")
            return
        if not (self._float_own or self._resolved.sums):
            self._piece.add(f"Outputs outputs = {self._body}({', '.join(self._arguments())});")
            for b in self._own:
                self._store(b, "outputs", "write", "")
            return
        self._piece.add(f"DifferentialPair<Outputs> outputs = {call};")
        for b in self._own:
            self._store(b, "outputs.p", "write", "")
        for b in self._float_own:
            self._store(b, "outputs.d", "writeDifferential", "_dot")
        for s in self._resolved.sums:
            self._piece.add(f"sums.{s.name} += outputs.p.{s.name};")
            self._piece.add(f"sums.{s.name}_dot += outputs.d.{s.name};")

    # -- sums -----------------------------------------------------------------------------------

    def _sum_fields(self) -> list[tuple[str, str]]:
        """Name and Slang type of everything that this dispatch sums."""
        types = self._module.types
        if self._module.mode is Mode.BACKWARD:
            uniforms = [(u.name, u.type) for u in self._wanted_uniforms()]
            elements = [(h.name, self._element(h.buffer)) for h in self._module.strategies.uniform]
            return [(n, types.differential(t)) for n, t in (*uniforms, *elements)]
        suffixes = ("", "_dot") if self._module.mode is Mode.FORWARD else ("",)
        return [
            (s.name + suffix, types.spell(s.type))
            for s in self._resolved.sums
            for suffix in suffixes
        ]

    def _add_sums(self) -> None:
        """Adds every sum once a group."""
        if self._module.mode is Mode.BACKWARD:
            for u in self._wanted_uniforms():
                self._add_gradient(u.name, u.name, u.type, "0")
            for h in self._module.strategies.uniform:
                t, number = self._element(h.buffer), self._places[h.name]
                place = f"{number} * {self._module.types.spell(t)}.gradientWordCount"
                self._guard(number)
                self._add_gradient(h.buffer, h.name, t, place)
            return
        for s in self._resolved.sums:
            number = self._names.make(f"{s.name}_number")
            self._piece.add(f"uint {number} = {self._sum_number(s)};")
            self._add_element(s, Role.OUTPUT, s.name, number)
            if self._module.mode is Mode.FORWARD:
                self._add_element(s, Role.OUTPUT_TANGENT, f"{s.name}_dot", number)

    def _guard(self, number: str) -> None:
        """The next line runs only where the element exists; the same for all threads."""
        if not self._module.is_unchecked:
            self._piece.add(f"if ({number} != outside)")

    def _add_gradient(self, name: str, field: str, t: Type, place: str) -> None:
        tag = self._entry_tags.adder(Role.GRADIENT, name, t)
        spelled = self._module.types.spell(t)
        text = f"{spelled}.addDifferential<{self._over(tag)}>({place}, sums.{field});"
        if place == "0" or self._module.is_unchecked:
            self._piece.add(text)
        else:
            self._piece.indented(text)

    def _add_element(self, s: Sum, role: Role, field: str, number: str) -> None:
        tag = self._entry_tags.adder(role, s.buffer, s.type)
        spelled = self._module.types.spell(s.type)
        text = f"{spelled}.addTo<{self._over(tag)}>({number} * {spelled}.wordCount, sums.{field});"
        self._guard(number)
        if self._module.is_unchecked:
            self._piece.add(text)
        else:
            self._piece.indented(text)

    def _checked(self, array: str, values: str) -> str:
        """The number of an element, `outside` where there is none; without a report."""
        if self._module.is_unchecked:
            return f"{array}.at({values})"
        return f"elementIndex<{array}, NoReport>({values}, 0)"

    def _over(self, tag: str) -> str:
        if self._module.variant.subgroups:
            self._module.features.add("subgroups")
            return f"OverWaves<{tag}>"
        return f"OverGroup<{tag}>"


def write_outputs(module: Module, resolved: Resolved) -> Piece | None:
    """The struct that the body returns; `None` where it returns nothing."""
    fields = [(n, module.kernel.buffer(n).type.element) for n in resolved.own]
    fields += [(s.name, s.type) for s in resolved.sums]
    if not fields:
        return None
    piece = Piece()
    base = " : IDifferentiable" if any(is_differentiable(t) for _, t in fields) else ""
    piece.open(f"struct Outputs{base}")
    for name, t in fields:
        piece.add(f"{module.types.spell(t)} {field_name(name)};")
    piece.close()
    return piece
