"""Which arrays a module touches, and in which slots their buffers are bound.

The one place that counts bindings. Where the device has too few, gradients, cotangents and
tangents share an arena each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shaderad.diagnostics import error
from shaderad.ir.nodes import Buffer
from shaderad.ir.types import (
    UINT,
    Kind,
    Matrix,
    Type,
    Vector,
    byte_count,
    is_differentiable,
    scalars,
    word_bytes,
)
from shaderad.ir.types import Access as ArrayAccess
from shaderad.lower.accumulate import widened
from shaderad.lower.artifact import Access, Binding
from shaderad.lower.bindings import Mode, Resource, Role, Word, WordKind
from shaderad.lower.piece import Piece
from shaderad.rules.pushed import primal_name

if TYPE_CHECKING:
    from shaderad.lower.module import Module

_TAG_SUFFIX = {
    ArrayAccess.IN: "in",
    ArrayAccess.OUT: "out",
    ArrayAccess.ADD: "add",
    ArrayAccess.MIN: "min",
    ArrayAccess.MAX: "max",
}
_ROLE_SUFFIX = {
    Role.INPUT: "",
    Role.UNIFORM: "",
    Role.OUTPUT: "",
    Role.RESULT: "_result",
    Role.COTANGENT: "_bar",
    Role.GRADIENT: "_bar",
    Role.TANGENT: "_dot",
    Role.OUTPUT_TANGENT: "_dot",
    Role.WINNER: "_winner",
    Role.MARKS: "_marks",
}
_ARENAS = (Role.GRADIENT, Role.COTANGENT, Role.TANGENT, Role.OUTPUT_TANGENT)
_ARENA_NAMES = {
    Role.GRADIENT: "gradients",
    Role.COTANGENT: "cotangents",
    Role.TANGENT: "tangents",
    Role.OUTPUT_TANGENT: "output_tangents",
}
# Min starts at +inf and Max at -inf in the order-preserving form of extremes.slang.
_EXTREME_FILL = {
    (ArrayAccess.MIN, True): 0xFF800000,
    (ArrayAccess.MAX, True): 0x007FFFFF,
    (ArrayAccess.MIN, False): 0xFFFFFFFF,
    (ArrayAccess.MAX, False): 0,
}


class Cell:
    """How the words of a bound buffer are declared; the value is its Slang type."""

    READ = "StructuredBuffer<uint>"
    READ_HALF = "StructuredBuffer<half>"
    WRITE = "RWStructuredBuffer<uint>"
    WRITE_HALF = "RWStructuredBuffer<half>"
    FLOATS = "RWStructuredBuffer<Atomic<float>>"
    WORDS = "RWStructuredBuffer<Atomic<uint>>"

    @staticmethod
    def wide(cell: str, width: int) -> str:
        """The same for reading `width` words at once."""
        return cell if width == 1 else cell.replace(">", f"{width}>")


@dataclass
class _Need:
    """One array in one role."""

    role: Role
    name: str
    type: Type
    cell: str
    fill_word: int | None = None
    is_covered: bool = False
    width: int = 1
    """Words that one load reads."""


class Arrays:
    """The arrays of one module, their bindings and tags."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._tags: dict[str, str] = {}
        self._needs: dict[tuple[Role, str], _Need] = {}
        self._place: dict[tuple[Role, str], tuple[str, str]] = {}
        """The names of buffers, and what stands before the offset of a word of an array."""
        self.resources: list[Resource] = []
        self.bindings: list[Binding] = []
        self.uses_report = False
        self.uses_print = False
        self.print_words = ""
        """The name of the print buffer."""
        self._checked: set[str] = set()
        self._stored_gradients: set[str] = set()

    # -- what the functions ask for -------------------------------------------------------------

    def tag(self, buffer: str) -> str:
        """The tag type of an array, which will be written."""
        if buffer not in self._tags:
            access = self._module.kernel.buffer(buffer).access
            self._tags[buffer] = self._module.names.make(f"{buffer}_{_TAG_SUFFIX[access]}")
        return self._tags[buffer]

    def has_tag(self, buffer: str) -> bool:
        return buffer in self._tags

    def checked_index(self, buffer: str, values: str, site: str) -> str:
        """The number of an element, whose indices are checked and reported."""
        self._checked.add(buffer)
        return f"{self.tag(buffer)}.at({values}, {site})"

    def silent_number(self, buffer: str, values: str, *, is_there: bool) -> str:
        """The number of an element, `outside` where there is none; without a report."""
        if is_there:
            return f"elementNumber<{self.tag(buffer)}>({values})"
        return f"elementIndex<{self.tag(buffer)}, NoReport>({values}, 0)"

    def is_checked(self, buffer: str) -> bool:
        return buffer in self._checked

    def note_stored_gradient(self, buffer: str) -> None:
        """Notes that a derivative of the user's own stores to the gradient of an array."""
        self._stored_gradients.add(buffer)

    def stores_gradient(self, buffer: str) -> bool:
        return buffer in self._stored_gradients

    def length(self, buffer: str, axis: int) -> str:
        return f"int({self.extent(buffer, axis)})"

    def extent(self, buffer: str, axis: int) -> str:
        rank = self._module.kernel.buffer(buffer).type.rank
        buffer = self._module.shaped_as(buffer)
        suffix = f"_{axis}" if rank > 1 else ""
        word = Word(WordKind.SHAPE, buffer, axis)
        return self._module.word(word, f"{buffer}_length{suffix}")

    # -- what entry points ask for --------------------------------------------------------------

    def need(
        self,
        role: Role,
        name: str,
        t: Type,
        cell: str,
        *,
        fill_word: int | None = None,
        is_covered: bool = False,
    ) -> None:
        """Notes that array `name` must be bound in `role`."""
        bound = self._module.bound_as(role, name)
        self._needs.setdefault((role, name), _Need(*bound, t, cell, fill_word, is_covered))

    def need_elements(self, role: Role, name: str, t: Type) -> None:
        """Notes that array `name` must be bound in `role`, to be read by whole elements."""
        self.need(role, name, t, read_cell(t))
        self._needs[role, name].width = load_width(t)

    def has(self, role: Role, name: str) -> bool:
        return (role, name) in self._needs

    def cell(self, role: Role, name: str) -> str:
        return self._needs[role, name].cell

    def words(self, role: Role, name: str, offset: str = "offset") -> str:
        """The text of one word (or cell) of an array."""
        buffer, start = self._place[role, name]
        return f"{buffer}[{start}{offset}]"

    def width(self, role: Role, name: str) -> int:
        """How many words of an array one load reads."""
        return self._needs[role, name].width

    def wide_words(self, role: Role, name: str) -> str:
        """The text of so many words, among them the one at `offset`."""
        buffer, start = self._place[role, name]
        at = f"({start}offset)" if start else "offset"
        return f"{buffer}[{at} / {self.width(role, name)}]"

    # -- how words are added to ----------------------------------------------------------------

    def is_atomic(self, role: Role, name: str) -> bool:
        return self._needs[role, name].cell in (Cell.FLOATS, Cell.WORDS)

    def add_text(self, role: Role, name: str) -> str:
        """One statement that adds `value` at `offset`."""
        if self._needs[role, name].cell == Cell.FLOATS:
            return f"{self.guard}{self.words(role, name)}.add(value);"
        how = "Exchange" if self._module.variant.atomics == "exchange" else "CompareExchange"
        return f"{self.guard}addBy{how}<{self.cell_name(role, name)}>(offset, value);"

    def write_text(self, role: Role, name: str, bits: str) -> str:
        """One statement that stores a word at `offset`, also where an arena made it atomic."""
        text = f"{self.guard}{self.words(role, name)}"
        cell = self._needs[role, name].cell
        if cell == Cell.FLOATS:
            return f"{text}.store(asfloat({bits}));"
        return f"{text}.store({bits});" if cell == Cell.WORDS else f"{text} = {bits};"

    @property
    def guard(self) -> str:
        """What keeps threads past the end of the launch from writing."""
        return "if (isThere) " if self._module.sums_in_groups else ""

    def cell_name(self, role: Role, name: str) -> str:
        return self._module.names.make(f"{name}{_ROLE_SUFFIX[role]}_cell", ("cell", role, name))

    # -- needs of tags --------------------------------------------------------------------------

    def note_tags(self, is_summed: dict[str, bool]) -> None:
        """Notes the bindings of every tag that was asked for.

        `is_summed` says of a wanted input whether its gradient is summed by many threads.
        """
        for name in self.ordered_tags():
            b = self._module.kernel.buffer(name)
            if b.access is ArrayAccess.IN:
                self._note_input(b, is_summed.get(name))
            elif b.access in (ArrayAccess.MIN, ArrayAccess.MAX):
                self._note_extreme(b)
            else:
                self._note_output(b)

    def ordered_tags(self) -> list[str]:
        return [b.name for b in self._module.kernel.buffers if b.name in self._tags]

    def _note_input(self, b: Buffer, is_summed: bool | None) -> None:
        t = b.type.element
        self.need_elements(Role.INPUT, b.name, t)
        if self._module.mode is Mode.BACKWARD and is_summed is not None:
            self.need_gradient(b.name, t, is_summed=is_summed)

    def need_gradient(self, name: str, t: Type, *, is_summed: bool) -> None:
        """The gradient of an input or uniform, stored once or summed."""
        fill = None if self._module.variant.accumulate else 0
        if is_summed and Kind.DOUBLE in {s.kind for s in scalars(t)}:
            self.need(Role.GRADIENT, name, t, Cell.WRITE, fill_word=fill)
        elif is_summed:
            self.need(Role.GRADIENT, name, widened(t), self.float_cell(), fill_word=fill)
        else:
            self.need(Role.GRADIENT, name, t, write_cell(t), fill_word=fill, is_covered=True)

    def float_cell(self) -> str:
        """A buffer of floats that threads add to."""
        if self._module.variant.atomics == "native":
            self._module.features.add("float-atomics")
            return Cell.FLOATS
        return Cell.WORDS

    def _note_output(self, b: Buffer) -> None:
        mode, t = self._module.mode, b.type.element
        is_add = b.access is ArrayAccess.ADD
        is_float = is_differentiable(t)
        cell = write_cell(t)
        if is_add:
            # The backward mode reads its cotangent, and needs no atomics.
            cell = self.float_cell() if is_float and mode is not Mode.BACKWARD else Cell.WORDS
            if is_float and {s.kind for s in scalars(t)} != {Kind.FLOAT}:
                raise error("SR0284", b.span, array=b.name, type=b.type)
        if mode in (Mode.PRIMAL, Mode.FORWARD):
            self.need(Role.OUTPUT, b.name, t, cell, fill_word=0)
        if self._module.counts_writes and not is_add:
            self.need(Role.MARKS, b.name, UINT, Cell.WORDS, fill_word=0)
        if mode is Mode.BACKWARD and is_float:
            self.need(Role.COTANGENT, b.name, t, read_cell(t))

    def _note_extreme(self, b: Buffer) -> None:
        mode, t = self._module.mode, b.type.element
        is_float = is_differentiable(t)
        if mode is Mode.PRIMAL:
            self.need(Role.OUTPUT, b.name, t, Cell.WORDS, fill_word=extreme_fill(b))
        if mode is Mode.WINNER:
            self.need(Role.RESULT, b.name, t, Cell.READ)
            fill = None if self._module.is_second_winner_pass else 0xFFFFFFFF
            self.need(Role.WINNER, b.name, t, Cell.WORDS, fill_word=fill)
        if mode in (Mode.BACKWARD, Mode.FORWARD) and is_float:
            self.need(Role.WINNER, b.name, t, Cell.READ)
        tangents = self._module.tangents_of(b.name)
        if mode is Mode.BACKWARD and is_float:
            for name in (b.name, *tangents):
                self.need(Role.COTANGENT, name, t, Cell.READ)
        if mode is Mode.FORWARD:
            for name in tangents:
                self.need(Role.OUTPUT, name, t, Cell.WRITE, fill_word=0)

    # -- bindings -------------------------------------------------------------------------------

    def bind(self) -> Piece:
        """Fixes slots; returns the declarations."""
        piece = Piece()
        needs = list(self._needs.values())
        own_count = int(self.uses_report) + int(self.uses_print)
        limit = self._module.variant.storage_buffer_limit
        arenas: set[Role] = set()
        for role in _ARENAS:
            if len(needs) + own_count <= limit:
                break
            if _joinable([n for n in needs if n.role is role]):
                arenas.add(role)
                needs = [n for n in needs if n.role is not role or _is_first(n, needs)]
        if len(needs) + own_count > limit:
            raise self._too_many(needs, arenas)
        for key, need in self._needs.items():
            self._place[key] = self._bound(piece, need, is_arena=need.role in arenas)
        if self.uses_report:
            slot = self._next_slot()
            self._declare(piece, slot, "report_words", Cell.WORDS)
            self.resources.append(Resource(slot, Role.REPORT, ()))
        if self.uses_print:
            slot = self._next_slot()
            self.print_words = self._module.names.make_global("print_words")
            self._declare(piece, slot, self.print_words, Cell.WORDS)
            self.resources.append(Resource(slot, Role.PRINT, ()))
        return piece

    def _too_many(self, needs: list[_Need], arenas: set[Role]) -> Exception:
        """The error that names all that would have to be bound."""
        module = self._module
        names = [
            _ARENA_NAMES[n.role] if n.role in arenas else f"{n.name}{_ROLE_SUFFIX[n.role]}"
            for n in needs
        ]
        names += ["report"] if self.uses_report else []
        names += ["print"] if self.uses_print else []
        # The primal alone is no matter of derivatives; its decoder binds one array.
        code = "SR0507" if module.mode is Mode.PRIMAL else "SR0417"
        return error(code, module.kernel.span, kernel=primal_name(module.kernel),
                     mode=module.mode.value, count=len(names), host=module.variant.host,
                     limit=module.variant.storage_buffer_limit,
                     names=", ".join(f"`{name}`" for name in names))  # fmt: skip

    def _bound(self, piece: Piece, need: _Need, *, is_arena: bool) -> tuple[str, str]:
        """Declares an array in its slot; gives the buffer, and what an offset is added to."""
        base = f"{need.name}{_ROLE_SUFFIX[need.role]}"
        if is_arena:
            name = _ARENA_NAMES[need.role]
            first = next(n for n in self._needs.values() if n.role is need.role)
            if first is need:
                members = [n for n in self._needs.values() if n.role is need.role]
                self._declare_members(piece, name, members)
        else:
            # Other arrays may be called `x_dot`, and functions whatever the user likes.
            name = self._module.names.make_global(f"{base}_words")
            self._declare_members(piece, name, [need])
        if need.role in (Role.OUTPUT, Role.WINNER, Role.MARKS, Role.UNIFORM) or (
            need.role is Role.OUTPUT_TANGENT and not is_arena
        ):
            return name, ""
        word = self._module.offset_word(need.role, need.name, _ROLE_SUFFIX[need.role])
        return name, f"{word} + "

    def _declare_members(self, piece: Piece, name: str, members: list[_Need]) -> None:
        slot = self._next_slot()
        first = members[0]
        cells = {m.cell for m in members}
        cell = first.cell if len(cells) == 1 else self.float_cell()
        if len(members) > 1:
            for m in members:
                m.cell, m.width = cell, 1
        self._declare(piece, slot, name, Cell.wide(cell, first.width))
        self.resources.append(
            Resource(
                slot,
                first.role,
                tuple(m.name for m in members),
                # What needs no fill is overwritten whole, and does not mind one.
                next((m.fill_word for m in members if m.fill_word is not None), None),
                len(members) == 1 and first.is_covered,
                tuple(m.type if len(cells) == 1 else widened(m.type) for m in members),
            )
        )

    def _next_slot(self) -> int:
        """The constant buffer has the first."""
        return self._module.variant.first_binding + 1 + len(self.bindings)

    def _declare(self, piece: Piece, slot: int, name: str, cell: str) -> None:
        binding = Binding(slot, name, Access.WRITE if cell.startswith("RW") else Access.READ)
        self._module.declare(piece, binding, f"{cell} {name}")
        self.bindings.append(binding)
        if "half" in cell:
            self._module.features.add("half")


def extreme_fill(b: Buffer) -> int:
    """The word that stands for what no thread has written yet in a Min or Max array."""
    return _EXTREME_FILL[b.access, is_differentiable(b.type.element)]


def read_cell(t: Type) -> str:
    """How a buffer of `t` is declared for reading parts of its elements."""
    return Cell.READ_HALF if word_bytes(t) == 2 else Cell.READ


def load_width(t: Type) -> int:
    """The most words of an element `t` that one load reads.

    As `read` of the types in elements.slang, and of structs, goes about it.
    """
    if isinstance(t, Matrix):
        return load_width(Vector(t.element, t.column_count))
    count = byte_count(t) // word_bytes(t)
    is_pairs = isinstance(t, Vector) and t.element.kind is Kind.DOUBLE
    return next(n for n in ((2, 1) if is_pairs else (4, 2, 1)) if count % n == 0)


def write_cell(t: Type) -> str:
    """How a buffer of `t` is declared for plain writes."""
    return Cell.WRITE_HALF if word_bytes(t) == 2 else Cell.WRITE


def _joinable(needs: list[_Need]) -> bool:
    """Whether arrays can share an arena of 32-bit words."""
    has_double = any(s.kind is Kind.DOUBLE for n in needs for s in scalars(n.type))
    has_half_inputs = any("half" in n.cell for n in needs if n.role is not Role.GRADIENT)
    return len(needs) > 1 and not has_double and not has_half_inputs


def _is_first(need: _Need, needs: list[_Need]) -> bool:
    return next(n for n in needs if n.role is need.role) is need
