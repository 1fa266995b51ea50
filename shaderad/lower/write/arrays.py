"""The arrays of a module: their tags, and the binding slots of their buffers.

Slots are counted here alone. Where the device has too few, the gradients share one arena, as do
the cotangents and the tangents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shaderad.bodies.reaches import Reach
from shaderad.bodies.scattered import GroupCopy
from shaderad.compiler.artifact import Binding
from shaderad.diagnostics import error
from shaderad.ir.nodes import Accumulate, Buffer, Store
from shaderad.ir.types import (
    OF_OUR_KERNELS,
    UINT,
    WORD_BYTES,
    Access,
    Kind,
    TextureType,
    Type,
    byte_count,
    is_differentiable,
    scalars,
    word_bytes,
)
from shaderad.ir.walk import statements
from shaderad.lower.bindings import ROLES, Mode, Resource, Role, Word, WordKind
from shaderad.lower.write.resources import (
    SlangBuffer,
    binding_of,
    group_width,
    load_width,
    read_buffer,
    store_width,
    texture_type,
    write_buffer,
)
from shaderad.lower.write.sinks import CopiedSink, Sink
from shaderad.lower.write.text import Piece, widened
from shaderad.rules.nodes import primal_name

if TYPE_CHECKING:
    from shaderad.lower.write.module import Module

# Min starts at +inf and Max at -inf in the order-preserving form of extremes.slang.
_EXTREME_FILL = {
    (Access.MIN, True): 0xFF800000,
    (Access.MAX, True): 0x007FFFFF,
    (Access.MIN, False): 0xFFFFFFFF,
    (Access.MAX, False): 0,
}


_ATOMIC = (SlangBuffer.FLOATS, SlangBuffer.WORDS, SlangBuffer.GROUP_SUMS)
"""The types of arrays with atomic words."""
SUMS_OF_SCRATCH = "Sums"
"""The type, in the tag of an array of scratch, by which threads add to it."""


@dataclass
class _BoundArray:
    """An array in one role; fields as in `Resource`."""

    role: Role
    name: str
    type: Type
    slang_type: str
    fill_word: int | None = None
    is_covered: bool = False
    width: int = 1
    """Words of one load or store."""
    reach: Reach | None = None

    @property
    def is_of_unit(self) -> bool:
        """True for textures and samplers, which are no buffers."""
        return self.slang_type.startswith(("Texture", SlangBuffer.SAMPLER))


class Arrays:
    """The arrays of one module, their bindings and tags."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self.tags: dict[str, str] = {}
        """The name of the tag type of each array that a function accesses."""
        self._summed = {
            s.buffer for s in statements(module.kernel.body) if isinstance(s, Accumulate)
        }
        """The arrays to which the body of the kernel adds."""
        self._written_in_parts = {
            s.buffer for s in statements(module.kernel.body) if isinstance(s, Store) and s.path
        }
        """The arrays with elements that the body of the kernel writes in parts."""
        self._needs: dict[tuple[Role, str], _BoundArray] = {}
        self._place: dict[tuple[Role, str], tuple[str, str]] = {}
        """Buffer name and offset prefix (``x_offset + `` or nothing) of each array."""
        self.resources: list[Resource] = []
        self.bindings: list[Binding] = []
        self.uses_report = False
        self.uses_print = False
        self.print_words = ""
        """The name of the print buffer."""
        self._read: set[str] = set()
        """The inputs whose elements are read; only the extents of the others are used."""
        self.checked: set[str] = set()
        """The arrays whose tags report indices out of range."""
        self.stored_gradients: set[str] = set()
        """The arrays to whose gradients a custom derivative stores."""
        self.copies: dict[tuple[Role, str], CopiedSink] = {}
        """The arrays to which threads add in group memory."""
        self.held_sums: dict[str, str] = {}
        """The variable of a thread's sums for the gradient of an array, by its name."""
        self._filtered_names: set[str] = set()
        """The resources that are read through samplers."""
        self.reaches: dict[str, Reach | None] = {}
        """For each array of a windowed module, the elements that a window accesses."""

    # -- requests of functions ------------------------------------------------------------------

    def tag(self, buffer: str) -> str:
        """The name of an array's tag type; requesting it makes the module write the tag."""
        if buffer not in self.tags:
            access = self._module.kernel.buffer(buffer).access
            self.tags[buffer] = self._module.names.make(f"{buffer}_{access.value.lower()}")
        return self.tags[buffer]

    def reader_tag(self, buffer: str) -> str:
        """The tag of an array whose elements are read."""
        self._read.add(buffer)
        return self.tag(buffer)

    def checked_index(self, buffer: str, values: str, site: str) -> str:
        """The text of an element number; indices out of range are reported at `site`."""
        self.checked.add(buffer)
        return f"{self.tag(buffer)}.at({values}, {site})"

    def held_sum(self, buffer: str) -> str:
        """The variable that holds a thread's sums for the gradient of an array."""
        if buffer not in self.held_sums:
            self.held_sums[buffer] = self._module.names.make(f"{buffer}_sums")
        return self.held_sums[buffer]

    def silent_number(self, buffer: str, values: str, *, is_there: bool) -> str:
        """The text of an element number, `outside` for indices out of range; never reports."""
        if is_there:
            return f"elementNumber<{self.tag(buffer)}>({values})"
        return f"elementIndex<{self.tag(buffer)}, NoReport>({values}, 0)"

    def extent(self, buffer: str, axis: int) -> str:
        rank = self._module.kernel.buffer(buffer).type.rank
        buffer = self._module.shaped_as(buffer)
        suffix = f"_{axis}" if rank > 1 else ""
        word = Word(WordKind.SHAPE, buffer, axis)
        return self._module.word(word, f"{buffer}_length{suffix}")

    def filtered(self, texture: str, sampler: str) -> tuple[str, str]:
        """The names of a texture and a sampler that are used together."""
        t = self._module.kernel.buffer(texture).type
        assert isinstance(t, TextureType)
        is_one = t.dimension.row.texel_view is t.dimension
        if is_one:
            self.reader_tag(texture)
        else:
            self.need(Role.SAMPLED, texture, t.element, f"{t.name}<{t.element}>")
        self.need(Role.SAMPLER, sampler, UINT, SlangBuffer.SAMPLER)
        name = self.resource_name(Role.INPUT if is_one else Role.SAMPLED, texture)
        self._filtered_names.add(name)
        return name, self.resource_name(Role.SAMPLER, sampler)

    def resource_name(self, role: Role, name: str) -> str:
        """The name of a texture or sampler."""
        ending = {Role.SAMPLED: "cube", Role.SAMPLER: "sampler"}.get(role, "texture")
        return self._module.names.make(f"{name}_{ending}", ("resource", role, name))

    # -- requests of entry points ---------------------------------------------------------------

    def need(
        self,
        role: Role,
        name: str,
        t: Type,
        slang_type: str,
        *,
        fill_word: int | None = None,
        is_covered: bool = False,
    ) -> None:
        array = _BoundArray(
            *self._module.bound_as(role, name), t, slang_type, fill_word, is_covered
        )
        if not ROLES[role].words_per_word:
            array.reach = self.reaches.get(name)
        self._needs.setdefault((role, name), array)

    def need_elements(self, role: Role, name: str, t: Type) -> None:
        """Binds array `name` in `role`; loads read whole elements."""
        self.need(role, name, t, read_buffer(t))
        self._needs[role, name].width = load_width(t)

    def need_results(self, name: str, t: Type, *, fill_word: int | None = None) -> None:
        """Binds the Out array `name`; stores write whole vectors if the kernel writes no parts."""
        self.need(Role.OUTPUT, name, t, write_buffer(t), fill_word=fill_word)
        if name not in self._written_in_parts:
            self._needs[Role.OUTPUT, name].width = store_width(t)

    def has(self, role: Role, name: str) -> bool:
        return (role, name) in self._needs

    def slang_type(self, role: Role, name: str) -> str:
        return self._needs[role, name].slang_type

    def type_of(self, role: Role, name: str) -> Type:
        """The type of an array's elements in its buffer."""
        return self._needs[role, name].type

    def read_text(self, role: Role, name: str) -> str:
        """The text of the bits of the word at `offset`."""
        text = self.words(role, name)
        if not self.is_atomic(role, name):
            return text
        is_float = self.slang_type(role, name) == SlangBuffer.FLOATS
        return f"asuint({text}.load())" if is_float else f"{text}.load()"

    def words(self, role: Role, name: str, offset: str = "offset") -> str:
        """The text of one word of an array."""
        buffer, start = self._place[role, name]
        return f"{buffer}[{start}{offset}]"

    def width(self, role: Role, name: str) -> int:
        """The number of words that one load of an array reads, or one store writes."""
        return self._needs[role, name].width

    def wide_words(self, role: Role, name: str) -> str:
        """The text of the vector of words that contains the one at `offset`."""
        buffer, start = self._place[role, name]
        offset = f"({start}offset)" if start else "offset"
        return f"{buffer}[{offset} / {self.width(role, name)}]"

    # -- writes of words ------------------------------------------------------------------------

    def is_atomic(self, role: Role, name: str) -> bool:
        return self.slang_type(role, name) in _ATOMIC

    def is_summed(self, role: Role, name: str) -> bool:
        """True if threads do nothing with an array but add to it atomically."""
        is_stored = role is Role.GRADIENT and name in self.stored_gradients
        return self.has(role, name) and self.is_atomic(role, name) and not is_stored

    def add_text(self, role: Role, name: str) -> str:
        """The statement that adds `value` at `offset`, unless it is 0."""
        guard = "isThere && " if self._module.goes_past_end else ""
        return f"if ({guard}changesSum(value)) {self.sink(role, name).add_text}"

    def sink(self, role: Role, name: str) -> Sink:
        """The words to which threads add."""
        copied = self.copies.get((role, name))
        return self.memory(role, name) if copied is None else copied.copy

    def memory(self, role: Role, name: str) -> Sink:
        """The words of an array in its buffer."""
        text = self.words(role, name)
        if self.slang_type(role, name) == SlangBuffer.FLOATS:
            return Sink(text, "native")
        return Sink(text, self._module.variant.atomics, self._cell_name(role, name, "cell"))

    def add_copy(self, piece: Piece, role: Role, wanted: GroupCopy) -> None:
        """Declares a copy of an array in group memory."""
        module, name = self._module, wanted.array
        t = self.type_of(role, name)
        is_float, atomics = is_differentiable(t), module.variant.group_atomics
        is_native = is_float and atomics == "native"
        if is_native:
            module.features.add("float-atomics")
        size = byte_count(t) // WORD_BYTES
        room_words = size * wanted.room
        copy = module.names.make_global(f"{name}{ROLES[role].suffix}_copy")
        kind = "float" if is_native else "uint"
        piece.add(f"groupshared Atomic<{kind}> {copy}[{room_words}];")
        sink = Sink(f"{copy}[offset]", atomics, self._cell_name(role, name, "copy_cell"))
        count = module.word(Word(WordKind.COUNT, name), f"{name}_count")
        tag = module.names.make(f"{name}{ROLES[role].suffix}_group_copy")
        words = f"{count} * {size}" if size > 1 else count
        memory = self.memory(role, name)
        self.copies[role, name] = CopiedSink(sink, memory, is_float, tag, words, room_words)

    def write_text(self, role: Role, name: str, bits: str) -> str:
        """The statement that stores a word at `offset`; words of arenas may be atomic."""
        text, slang_type = f"{self.guard}{self.words(role, name)}", self.slang_type(role, name)
        if slang_type == SlangBuffer.FLOATS:
            return f"{text}.store(asfloat({bits}));"
        return f"{text}.store({bits});" if slang_type in _ATOMIC else f"{text} = {bits};"

    @property
    def guard(self) -> str:
        """The prefix of writes that threads past the end of the launch must skip."""
        return "if (isThere) " if self._module.goes_past_end else ""

    def _cell_name(self, role: Role, name: str, suffix: str) -> str:
        """The name of the tag of the array's cells, for devices without float atomics."""
        wanted = f"{name}{ROLES[role].suffix}_{suffix}"
        return self._module.names.make(wanted, (suffix, role, name))

    # -- bindings of tags -----------------------------------------------------------------------

    def note_tags(self, is_summed: dict[str, bool]) -> None:
        """Binds the arrays of all requested tags.

        `is_summed` is True for each wanted input if several threads add to one element of its
        gradient.
        """
        for b in self.tagged():
            if b.access is Access.IN:
                if b.name in self._read and isinstance(b.type, TextureType):
                    self.need(Role.INPUT, b.name, b.type.element, texture_type(b.type))
                elif b.name in self._read:
                    self.need_elements(Role.INPUT, b.name, b.type.element)
                if self._module.mode is Mode.BACKWARD and b.name in is_summed:
                    self.need_gradient(b.name, b.type.element, is_summed=is_summed[b.name])
            elif b.access in (Access.MIN, Access.MAX):
                self._note_extreme(b)
            elif b.access in (*OF_OUR_KERNELS, Access.STATES):
                words = self._own_buffer(b.access)
                self.need(Role.OUTPUT, b.name, b.type.element, words, fill_word=0)
            elif b.access is Access.SCRATCH:
                is_sum = b.name in self._summed
                slang_type = self.float_buffer() if is_sum else SlangBuffer.WRITE
                self.need(scratch_role(b.access, is_sum=is_sum), b.name, b.type.element, slang_type)
            elif b.access is Access.GROUP:
                is_sum = b.name in self._summed
                slang_type = SlangBuffer.GROUP_SUMS if is_sum else SlangBuffer.GROUP
                self.need(Role.GROUP, b.name, b.type.element, slang_type)
                self._needs[Role.GROUP, b.name].width = group_width(b.type.element)
            else:
                self._note_output(b)

    def tagged(self) -> list[Buffer]:
        """The arrays whose tags were requested, in the kernel's order."""
        return [b for b in self._module.kernel.buffers if b.name in self.tags]

    def need_gradient(self, name: str, t: Type, *, is_summed: bool) -> None:
        """Binds the gradient of an input or uniform, stored once or summed."""
        fill = None if self._module.variant.accumulate else 0
        if is_summed and Kind.DOUBLE in {s.kind for s in scalars(t)}:
            self.need(Role.GRADIENT, name, t, SlangBuffer.WRITE, fill_word=fill)
        elif is_summed:
            self.need(Role.GRADIENT, name, widened(t), self.float_buffer(), fill_word=fill)
        else:
            self.need(Role.GRADIENT, name, t, write_buffer(t), fill_word=fill, is_covered=True)

    def float_buffer(self) -> str:
        """The type of a buffer of floats to which threads add."""
        if self._module.variant.atomics == "native":
            self._module.features.add("float-atomics")
            return SlangBuffer.FLOATS
        return SlangBuffer.WORDS

    def _own_buffer(self, access: Access) -> str:
        """The type of a Greatest, Lists, or States array."""
        others = {b.access for b in self._module.kernel.buffers}.difference(OF_OUR_KERNELS)
        may_run_twice = access is not Access.STATES
        assert not may_run_twice or others <= {Access.IN, Access.OUT}, "it would add once more"
        if access is Access.LISTS or self._module.runs_twice:
            return SlangBuffer.WORDS
        self._module.features.add("int64-atomics")
        return SlangBuffer.PAIRS

    def _note_output(self, b: Buffer) -> None:
        mode, t = self._module.mode, b.type.element
        is_add = b.access is Access.ADD
        is_float = is_differentiable(t)
        if is_add and is_float and {s.kind for s in scalars(t)} != {Kind.FLOAT}:
            raise error("SR0284", b.span, array=b.name, type=b.type)
        if mode in (Mode.PRIMAL, Mode.FORWARD):
            if is_add:
                added = self.float_buffer() if is_float else SlangBuffer.WORDS
                self.need(Role.OUTPUT, b.name, t, added, fill_word=0)
            else:
                self.need_results(b.name, t, fill_word=0)
        if self._module.counts_writes and not is_add:
            self.need(Role.MARKS, b.name, UINT, SlangBuffer.WORDS, fill_word=0)
        if mode is Mode.BACKWARD and is_float:
            self.need(Role.COTANGENT, b.name, t, read_buffer(t))

    def _note_extreme(self, b: Buffer) -> None:
        mode, t = self._module.mode, b.type.element
        is_float = is_differentiable(t)
        if mode is Mode.PRIMAL:
            self.need(Role.OUTPUT, b.name, t, SlangBuffer.WORDS, fill_word=extreme_fill(b))
        if mode is Mode.WINNER:
            self.need(Role.RESULT, b.name, t, SlangBuffer.READ)
            fill = None if self._module.is_second_winner_pass else 0xFFFFFFFF
            self.need(Role.WINNER, b.name, t, SlangBuffer.WORDS, fill_word=fill)
        if mode in (Mode.BACKWARD, Mode.FORWARD) and is_float:
            self.need(Role.WINNER, b.name, t, SlangBuffer.READ)
        tangents = self._module.tangents_of(b.name)
        if mode is Mode.BACKWARD and is_float:
            for name in (b.name, *tangents):
                self.need(Role.COTANGENT, name, t, SlangBuffer.READ)
        if mode is Mode.FORWARD:
            for name in tangents:
                self.need(Role.OUTPUT, name, t, SlangBuffer.WRITE, fill_word=0)

    # -- bindings -------------------------------------------------------------------------------

    def bind(self) -> Piece:
        """Assigns the slots; returns the declarations.

        Raises:
            CompileError, DerivativeError: SR0507, SR0417, more buffers than the device binds.
        """
        piece = Piece()
        needs = [n for n in self._needs.values() if n.role is not Role.GROUP and not n.is_of_unit]
        own_count = int(self.uses_report) + int(self.uses_print)
        limit = self._module.variant.storage_buffer_limit
        arenas: set[Role] = set()
        for role in (role for role, row in ROLES.items() if row.arena):
            if len(needs) + own_count <= limit and not ROLES[role].is_always_arena:
                continue
            members = [n for n in needs if n.role is role]
            if _joinable(members):
                arenas.add(role)
                needs = [n for n in needs if n.role is not role or n is members[0]]
        if len(needs) + own_count > limit:
            raise self._too_many(needs, arenas)
        for key, need in self._needs.items():
            if need.role is Role.GROUP:
                self._place[key] = self._in_group(piece, need), ""
            elif need.is_of_unit:
                self._declare_members(piece, self.resource_name(need.role, need.name), [need])
            else:
                self._place[key] = self._bound(piece, need, is_arena=need.role in arenas)
        if self.uses_report:
            slot = self._declare(piece, "report_words", SlangBuffer.WORDS)
            self.resources.append(Resource(slot, Role.REPORT, ()))
        if self.uses_print:
            self.print_words = self._module.names.make_global("print_words")
            slot = self._declare(piece, self.print_words, SlangBuffer.WORDS)
            self.resources.append(Resource(slot, Role.PRINT, ()))
        return piece

    def _too_many(self, needs: list[_BoundArray], arenas: set[Role]) -> Exception:
        module = self._module
        names = [
            ROLES[n.role].arena if n.role in arenas else f"{n.name}{ROLES[n.role].suffix}"
            for n in needs
        ]
        names += ["report"] if self.uses_report else []
        names += ["print"] if self.uses_print else []
        # The primal involves no derivatives, and its decoder binds one array.
        code = "SR0507" if module.mode is Mode.PRIMAL else "SR0417"
        return error(code, module.kernel.span, kernel=primal_name(module.kernel),
                     mode=module.mode.value, count=len(names), host=module.variant.host,
                     limit=module.variant.storage_buffer_limit,
                     names=", ".join(f"`{name}`" for name in names))  # fmt: skip

    def _in_group(self, piece: Piece, need: _BoundArray) -> str:
        """Declares an array in group memory; returns its name."""
        name = self._module.names.make_global(f"{need.name}_words")
        # A half has a word of its own here.
        of_element = byte_count(need.type) // word_bytes(need.type)
        words = self._module.kernel.buffer(need.name).count * of_element
        width = need.width if need.width > 1 else ""
        piece.add(f"{need.slang_type}{width} {name}[{words // need.width}];")
        return name

    def _bound(self, piece: Piece, need: _BoundArray, *, is_arena: bool) -> tuple[str, str]:
        """Declares an array in its slot; returns its buffer and offset prefix."""
        base = f"{need.name}{ROLES[need.role].suffix}"
        if is_arena:
            name = ROLES[need.role].arena
            members = [n for n in self._needs.values() if n.role is need.role]
            if members[0] is need:
                self._declare_members(piece, name, members)
        else:
            name = self._module.names.make_global(f"{base}_words")
            self._declare_members(piece, name, [need])
        has_offset = ROLES[need.role].has_offset
        starts_at_zero = not has_offset or (need.role is Role.OUTPUT_TANGENT and not is_arena)
        if starts_at_zero and not self._module.variant.is_windowed:
            return name, ""
        word = Word(WordKind.OFFSET, need.name, 0, need.role)
        return name, f"{self._module.word(word, f'{base}_offset')} + "

    def _declare_members(self, piece: Piece, name: str, members: list[_BoundArray]) -> None:
        first = members[0]
        has_one_type = len({m.slang_type for m in members}) == 1
        slang_type = first.slang_type if has_one_type else self.float_buffer()
        if len(members) > 1:
            for m in members:
                m.slang_type, m.width = slang_type, 1
        # A load reads `width` words, a store writes them.
        loaded = slang_type if first.width == 1 else slang_type.replace(">", f"{first.width}>")
        self.resources.append(
            Resource(
                self._declare(piece, name, loaded),
                Role.INPUT if first.is_of_unit else first.role,
                tuple(m.name for m in members),
                # Members without a fill are overwritten whole.
                next((m.fill_word for m in members if m.fill_word is not None), None),
                len(members) == 1 and first.is_covered,
                tuple(m.type if has_one_type else widened(m.type) for m in members),
                first.reach if len(members) == 1 else None,
            )
        )

    def _declare(self, piece: Piece, name: str, slang_type: str) -> int:
        """Declares a buffer in the next slot, after the constant buffer's; returns the slot."""
        slot = self._module.variant.first_binding + 1 + len(self.bindings)
        binding = binding_of(slot, name, slang_type)
        if name in self._filtered_names:
            binding = replace(binding, is_filtered=True)
        self._module.declare(piece, binding, f"{slang_type} {name}")
        self.bindings.append(binding)
        if "half" in slang_type:
            self._module.features.add("half")
        return slot


def scratch_role(access: Access, *, is_sum: bool) -> Role:
    """The role of an array between the steps of a group, to which threads may add."""
    if access is Access.GROUP:
        return Role.GROUP
    return Role.SCRATCH_SUMS if is_sum else Role.SCRATCH


def extreme_fill(b: Buffer) -> int:
    return _EXTREME_FILL[b.access, is_differentiable(b.type.element)]


def _joinable(needs: list[_BoundArray]) -> bool:
    """True if the arrays can share an arena of 32-bit words."""
    has_double = any(s.kind is Kind.DOUBLE for n in needs for s in scalars(n.type))
    has_half_inputs = any("half" in n.slang_type for n in needs if n.role is not Role.GRADIENT)
    return len(needs) > 1 and not has_double and not has_half_inputs
