"""A kernel in Slang of the user's own -> the dispatch that calls its function.

All threads of whole workgroups call the function, which takes arrays as views (`views.slang`).
Invariant: a derivative that is asked for has its parameter, or lowering refuses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from shaderad.bodies.outputs import Resolved
from shaderad.bodies.slang_signatures import (
    DOT,
    Expected,
    Passed,
    backward_parameters,
    forward_parameters,
    primal_parameters,
)
from shaderad.compiler.artifact import VIEWS
from shaderad.diagnostics import error
from shaderad.ir.nodes import Buffer, Kernel, SlangEntry, SlangKernel, SlangParameter, Uniform
from shaderad.ir.types import Access, Kind, is_differentiable, scalars
from shaderad.lower.bindings import GROUP_SIZE, Lowered, Mode, Role, SiteKind, Variant, WordKind
from shaderad.lower.entry.points import ENTRY_NAME, note_uniforms, open_group, send_report
from shaderad.lower.entry.scope import EntryScope
from shaderad.lower.prepare.strategy import NOTHING_HOISTED
from shaderad.lower.write.functions import write_function
from shaderad.lower.write.module import Module
from shaderad.lower.write.programs import assemble
from shaderad.lower.write.tags import Tags
from shaderad.lower.write.text import Piece
from shaderad.rules.nodes import PushedKernel
from shaderad.rules.transforms import Transforms

_NO_OUTPUTS = Resolved(body=(), local_types={}, own=(), sums=())
_SYSTEM_VALUES = {
    "SV_DispatchThreadID": "thread",
    "SV_GroupID": "groupPlace",
    "SV_GroupThreadID": "threadPlace",
    "SV_GroupIndex": "laneIndex",
}
"""The variables of the entry point that hold system values."""
_EXPECTED = {
    Mode.PRIMAL: primal_parameters,
    Mode.BACKWARD: backward_parameters,
    Mode.FORWARD: forward_parameters,
}


def lower_slang_kernel(kernel: SlangKernel, mode: Mode, variant: Variant) -> Lowered:
    """The dispatch that calls a function of the user's Slang.

    Raises:
        LanguageError: SR0276 for `checks`.
        DerivativeError: SR0420, SR0421, the user did not write what is asked for.
    """
    if variant.checks:
        raise error("SR0276", kernel.span, kernel=kernel.name)
    bound: Kernel = kernel
    variant = replace(variant, is_windowed=False, workgroup=math.prod(kernel.group))
    if mode is Mode.FORWARD:
        bound, variant = _with_tangents(kernel, variant)
    module = Module(bound, mode, variant, NOTHING_HOISTED, Transforms(), write_function)
    module.features |= kernel.features
    name = module.names.make(f"{kernel.name}_{mode.value}", ENTRY_NAME)
    writer = _Entry(kernel, module)
    writer.note_needs()
    module.arrays.note_tags(dict.fromkeys(variant.wanted, True))
    declarations = module.arrays.bind()
    tags, text = Tags(module).write(), writer.write(name)
    parts: list[Piece | None] = [declarations, tags, writer.tags, text, writer.user_text()]
    return Lowered(
        program=replace(assemble(module, name, parts, (VIEWS,)), has_user_text=True),
        mode=mode,
        resources=tuple(module.arrays.resources),
        words=tuple(module.words),
        sites=tuple(module.sites),
        group=kernel.group,
    )


def _function_of(kernel: SlangKernel, mode: Mode) -> SlangEntry:
    """The user's function for a mode.

    Raises:
        DerivativeError: SR0420, if there is none.
    """
    functions = {
        Mode.PRIMAL: kernel.primal,
        Mode.BACKWARD: kernel.backward,
        Mode.FORWARD: kernel.forward,
    }
    function = functions[mode]
    if function is None:
        name, transform = ("backward", "vjp") if mode is Mode.BACKWARD else ("forward", "jvp")
        raise error("SR0420", kernel.span, kernel=kernel.name, name=name, transform=transform)
    return function


def _with_tangents(kernel: SlangKernel, variant: Variant) -> tuple[PushedKernel, Variant]:
    """The arrays and uniforms of a forward dispatch; it computes no primal results."""
    moving = [b for b in kernel.buffers if is_differentiable(b.type)
              and (b.access is not Access.IN or b.name in variant.wanted)]  # fmt: skip
    uniforms = [u for u in kernel.uniforms if u.name in variant.wanted]
    dots = {x.name: f"{x.name}{DOT}" for x in (*moving, *uniforms)}
    pushed = PushedKernel(
        name=kernel.name,
        index_names=kernel.index_names,
        parameters=kernel.parameters,
        buffers=(*kernel.buffers, *(replace(b, name=dots[b.name]) for b in moving)),
        uniforms=(*kernel.uniforms, *(replace(u, name=dots[u.name]) for u in uniforms)),
        body=(),
        local_types={},
        span=kernel.span,
        primal_name=kernel.name,
        dots=dots,
    )
    added = frozenset(dots[u.name] for u in uniforms)
    return pushed, replace(variant, device_uniforms=variant.device_uniforms | added)


class _Entry:
    """Writes the entry point around a user's function."""

    def __init__(self, kernel: SlangKernel, module: Module) -> None:
        self._kernel = kernel
        self._module = module
        self._function = _function_of(kernel, module.mode)
        self._names = {p.name for p in self._function.parameters}
        self._expected = {p.name: p for p in _EXPECTED[module.mode](kernel)}
        self._entry = EntryScope(module, _NO_OUTPUTS, self._function.name)
        self._namespace = module.names.make("user")

    def note_needs(self) -> None:
        """Binds the arrays that the function takes.

        Raises:
            DerivativeError: SR0421, if it does not take a derivative that is asked for; SR0423,
                if that is a gradient of doubles.
        """
        for expected in self._expected.values():
            if expected.name not in self._names and self._is_needed(expected):
                raise error("SR0421", self._kernel.span, function=self._function.name,
                            missing=expected.name, kernel=self._kernel.name,
                            parameter=str(expected), of=expected.of.name)  # fmt: skip
            is_gradient = expected.passed is Passed.GRADIENT and self._is_needed(expected)
            if is_gradient and Kind.DOUBLE in {s.kind for s in scalars(expected.of.type)}:
                raise error("SR0423", self._kernel.span, name=expected.of.name,
                            type=expected.of.type)  # fmt: skip
        note_uniforms(self._entry)
        for expected in self._expected.values():
            if expected.name in self._names and isinstance(expected.of, Buffer):
                self._view(expected, expected.of)  # requests its tag
            elif expected.passed is Passed.GRADIENT and self._is_needed(expected):
                of = expected.of
                self._module.arrays.need_gradient(of.name, of.type, is_summed=True)

    def _is_needed(self, expected: Expected) -> bool:
        variant = self._module.variant
        match expected.passed:
            case Passed.GRADIENT | Passed.TANGENT:
                return expected.of.name in variant.wanted
            case Passed.COTANGENT:
                return expected.of.name not in variant.absent
            case Passed.RESULT_TANGENT:
                return True
            case _:
                return False

    def write(self, name: str) -> Piece:
        """The text of the entry point `name`."""
        entry, group = self._entry, [*reversed(self._kernel.group)]
        piece = Piece(self._function.span)
        size = self._module.workgroup_size
        if size != GROUP_SIZE:
            piece.add(f"export public static const uint groupSize = {size};", "")
        open_group(self._module, piece, name, size)
        dim = [entry.word(WordKind.DIM, f"dim_{k}", k) for k in reversed(range(len(group)))]
        counts = [f"({extent} + {n - 1}) / {n}" for extent, n in zip(dim, group, strict=True)]
        row = entry.word(WordKind.GROUP_COUNT_X, "group_count_x")
        sizes = _in_three(map(str, group))
        piece.add(f"uint3 groupCounts = {_in_three(counts)};")
        piece.add(f"uint number = group.y * {row} + group.x;")
        count = "groupCounts.x * groupCounts.y * groupCounts.z"
        piece.guarded(f"if (number >= {count})", "return;")
        piece.add("uint3 groupPlace = placeIn(groupCounts, number);")
        piece.add(f"uint3 threadPlace = placeIn({sizes}, laneIndex);")
        piece.add(f"uint3 thread = groupPlace * {sizes} + threadPlace;")
        called = f"{self._namespace}::{self._function.name}"
        piece.call(called, [*map(self._argument, self._function.parameters)])
        if self._module.sends_reports:
            piece.add(send_report(entry))
        piece.close()
        return piece

    @property
    def tags(self) -> Piece:
        """The tags of the entry point alone."""
        return self._entry.tags.piece

    def user_text(self) -> Piece:
        """The user's lines, whose names do not meet those of generated text."""
        piece = Piece()
        piece.add("", f"namespace {self._namespace}")
        piece.lines += [("{", None), *self._kernel.lines, ("}", None)]
        return piece

    def _argument(self, p: SlangParameter) -> str:
        if p.semantic:
            value = _SYSTEM_VALUES[p.semantic]
            axes = {"2": ".xy", "3": ""}.get(p.type[-1], ".x")
            return value if value == "laneIndex" else f"{value}{axes}"
        expected = self._expected[p.name]
        of = expected.of
        if isinstance(of, Buffer):
            return self._view(expected, of)
        if expected.passed is Passed.UNIFORM:
            return self._entry.uniform(of)
        if expected.passed is Passed.TANGENT:
            return self._uniform_tangent(of)
        words = "NoSum"
        if self._is_needed(expected):
            words = self._entry.tags.adder(Role.GRADIENT, of.name, of.type)
        place = f"Places<OneElement, 1, {self._module.report}, {self._site(p.name)}>"
        return f"AddView<{self._module.types.spell(of.type)}, 1, {words}, {place}>()"

    def _uniform_tangent(self, u: Uniform) -> str:
        if u.name not in self._module.variant.wanted:
            return self._module.types.zero(u.type)
        uniforms = self._entry.kernel.uniforms
        return self._entry.uniform(next(v for v in uniforms if v.name == f"{u.name}{DOT}"))

    def _view(self, expected: Expected, b: Buffer) -> str:
        """The view of an array, or of its derivative."""
        arrays, element = self._module.arrays, b.type.element
        tag, is_needed = "", self._is_needed(expected)
        match expected.passed:
            case Passed.INPUT:
                tag = arrays.reader_tag(b.name)
                view, words = "ReadView", tag
            case Passed.COTANGENT:
                tag = arrays.tag(b.name)
                view, words = "ReadView", f"{tag}.Cotangent"
            case Passed.GRADIENT:
                tag = arrays.tag(b.name)
                view, words = "AddView", f"{tag}.Gradient" if is_needed else "NoSum"
            case Passed.TANGENT if is_needed:
                tag = arrays.reader_tag(expected.name)
                view, words = "ReadView", tag
            case Passed.TANGENT:
                tag = arrays.tag(b.name)
                view, words = "ReadView", "NoWords"
            case _:
                tag = arrays.tag(expected.name)
                view, words = "WriteView", f"{tag}.Values"
                if b.access is Access.ADD:
                    is_float = is_differentiable(element)
                    view, words = ("AddView", words) if is_float else ("AddIntView", tag)
        place = f"Places<{tag}, {b.type.rank}, {self._module.report}, {self._site(expected.name)}>"
        return f"{view}<{self._module.types.spell(element)}, {b.type.rank}, {words}, {place}>()"

    def _site(self, name: str) -> str:
        return self._module.site(SiteKind.BOUNDS, self._function.span, name)


def _in_three(extents: Iterator[str] | list[str]) -> str:
    """A ``uint3`` of at most three extents."""
    return f"uint3({', '.join([*extents, '1', '1'][:3])})"
