"""A kernel -> the Slang module of its functions, for the user's own shaders.

Each differentiable function, and each read of an array by which the kernel is differentiated, has
both derivatives in Slang's convention. A program that imports the module may call
``bwd_diff(blend)`` and ``fwd_diff(blend)``, or ``blend`` from ``[Differentiable]`` functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from shaderad.compiler.artifact import Program
from shaderad.diagnostics import DerivativeError
from shaderad.ir.nodes import Buffer, Function, Kernel
from shaderad.ir.prints import silent
from shaderad.ir.types import Access, Kind, TextureType, is_differentiable, scalars
from shaderad.ir.walk import reachable, writes_memory
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.prepare.strategy import NOTHING_HOISTED
from shaderad.lower.write.functions import write_function
from shaderad.lower.write.module import DerivativeNames, Module
from shaderad.lower.write.names import IdentifierScope
from shaderad.lower.write.programs import assemble
from shaderad.lower.write.tags import Tags
from shaderad.lower.write.text import Piece
from shaderad.rules.nodes import Adjoint
from shaderad.rules.pulling.functions import Adjoints
from shaderad.rules.pushing.kernels import PushedFunctions
from shaderad.rules.transforms import Transforms

_NO_LIMIT = 1 << 16
"""The limit of storage buffers, which the importing program must keep."""


@dataclass(frozen=True, slots=True)
class _Exported:
    """A function with its derivatives by all differentiable parameters."""

    function: Function
    moving: tuple[int, ...]
    pulled: Adjoint
    pushed: Function


def lower_importable(kernel: Kernel, variant: Variant) -> Program | None:
    """The module of the functions of `kernel`; `None` if there are none to export.

    Arrays are bound as in the backward mode; additions to gradients are atomic. An index out of
    range reads 0 and is not reported.

    Args:
        kernel: Any kernel; functions that write memory are not exported.
        variant: The arrays with gradients, and properties of devices.
    """
    transforms = Transforms()
    kernel = silent(kernel)
    bounds = "unchecked" if variant.bounds == "unchecked" else "ignore"
    variant = replace(variant, bounds=bounds, storage_buffer_limit=_NO_LIMIT)
    module = Module(kernel, Mode.BACKWARD, variant, NOTHING_HOISTED, transforms, write_function)
    module.is_importable = True
    inputs = [b for b in kernel.buffers if b.access is Access.IN and b.name in variant.wanted]
    arrays = [b for b in inputs if not (b.is_pointed or _holds_doubles(b))]
    exported = list(_exported(kernel, transforms, inputs))
    if not (exported or arrays):
        return None
    entry = module.names.make(f"{kernel.name}_functions")
    for export in exported:
        module.derivatives[export.function] = _derivatives(module, export.function.name)
    for b in arrays:
        module.pieces += _read(module, b)
    for export in exported:
        _write(module, export)
    module.arrays.note_tags(dict.fromkeys(variant.wanted, True))
    declarations = module.arrays.bind()
    tags = Tags(module).write()
    program = assemble(module, entry, [declarations, tags, *module.pieces])
    return replace(program, is_module=True)


def _holds_doubles(b: Buffer) -> bool:
    """True if the gradient of `b` would need atomic adds of doubles, which devices lack."""
    return any(s.kind is Kind.DOUBLE for s in scalars(b.type.element))


def _exported(kernel: Kernel, transforms: Transforms, inputs: list[Buffer]) -> Iterator[_Exported]:
    nothing: frozenset[str] = frozenset()
    wanted = frozenset(b.name for b in inputs)
    doubles = frozenset(b.name for b in inputs if _holds_doubles(b))
    adjoints = Adjoints(
        wanted=wanted,
        seeds=nothing,
        derivatives=transforms,
    )
    tangents = PushedFunctions({}, nothing, transforms, is_first=True)
    for f in map(transforms.function, reachable(kernel.body)):
        moving = tuple(k for k, p in enumerate(f.parameters) if is_differentiable(p.type))
        is_still = not moving and wanted.isdisjoint(f.buffers)
        if is_still or not is_differentiable(f.result) or writes_memory(f):
            continue
        if not doubles.isdisjoint(f.buffers):
            continue
        try:
            pulled = adjoints.adjoint(f, frozenset(moving))
            pushed = transforms.function(tangents.of(f, frozenset(moving)))
        except DerivativeError:  # A Slang function has both derivatives or none.
            continue
        yield _Exported(f, moving, pulled, pushed)


def _read(module: Module, b: Buffer) -> tuple[Piece, ...]:
    """``mesh_at(i)``, an element of an array or 0, with its derivatives."""
    t = module.types.spell(b.type.element)
    array = module.arrays.reader_tag(b.name)
    name = module.names.make(f"{b.name}_at")
    derivatives = _derivatives(module, name)
    indices = ["i", "j", "k", "l"][: b.type.rank]
    parameters, values = ", ".join(f"int {i}" for i in indices), ", ".join(indices)
    number = module.arrays.silent_number(b.name, values, is_there=module.is_unchecked)
    reader = "readInside" if module.is_unchecked else "read"
    element = f"{reader}<{t}, {array}>({number})"
    if isinstance(b.type, TextureType):
        element = f"{array}.texel({number})"
    add = f"addGradient<{t}, {array}>({number}, {t}.gradientWordCount, 0, result_bar);"
    pair = f"diffPair({name}({values}), {module.types.zero(b.type.element)})"
    read, pulled, pushed = Piece(), Piece(), Piece()
    read.add(f"/// `{'.'.join(b.path)}[{values}]`; `bwd_diff` adds to the gradient of the array.")
    read.add(*derivatives.attributes)
    read.block(f"public {t} {name}({parameters})", [f"return {element};"])
    pulled.block(f"void {derivatives.backward}({parameters}, {t} result_bar)", [add])
    pushed.block(f"DifferentialPair<{t}> {derivatives.forward}({parameters})", [f"return {pair};"])
    return read, pulled, pushed


def _derivatives(module: Module, name: str) -> DerivativeNames:
    return DerivativeNames(*(module.names.make(f"{name}_{how}_diff") for how in ("bwd", "fwd")))


def _write(module: Module, export: _Exported) -> None:
    """Writes a function, its adjoint, its tangent, and both with pairs as parameters."""
    module.function(export.function)
    names = module.names.child()
    own = [(names.make(p.name), module.types.spell(p.type)) for p in export.function.parameters]
    module.pieces += [_pulled(module, export, own, names), _pushed(module, export, own)]


def _pairs(
    own: Iterable[tuple[str, str]], moving: tuple[int, ...], how: str
) -> tuple[list[str], list[str]]:
    """The parameters of a derivative, and the text of each primal value."""
    parameters: list[str] = []
    primals: list[str] = []
    for k, (name, t) in enumerate(own):
        is_pair = k in moving
        parameters.append(f"{how}DifferentialPair<{t}> {name}" if is_pair else f"{t} {name}")
        primals.append(f"{name}.p" if is_pair else name)
    return parameters, primals


def _pulled(
    module: Module, export: _Exported, own: list[tuple[str, str]], names: IdentifierScope
) -> Piece:
    f, moving = export.function, [(k, *own[k]) for k in export.moving]
    piece = Piece(f.span)
    parameters, primals = _pairs(own, export.moving, "inout ")
    result = names.make("result_bar")
    parameters.append(f"{module.types.spell(f.result)} {result}")
    piece.open(f"void {module.derivatives[f].backward}({', '.join(parameters)})")
    bars = [names.make(f"{name}_bar") for _, name, _ in moving]
    for bar, (k, _, t) in zip(bars, moving, strict=True):
        piece.add(f"{t} {bar} = {module.types.zero(f.parameters[k].type)};")
    piece.call(module.function(export.pulled), [*primals, result, *bars])
    for bar, (_, name, _) in zip(bars, moving, strict=True):
        piece.add(f"{name} = diffPair({name}.p, {bar});")
    piece.close()
    return piece


def _pushed(module: Module, export: _Exported, own: list[tuple[str, str]]) -> Piece:
    f = export.function
    piece = Piece(f.span)
    parameters, primals = _pairs(own, export.moving, "")
    head = f"DifferentialPair<{module.types.spell(f.result)}> {module.derivatives[f].forward}"
    piece.open(f"{head}({', '.join(parameters)})")
    both = module.types.spell(export.pushed.result)
    arguments = [*primals, *(f"{own[k][0]}.d" for k in export.moving)]
    piece.call(f"{both} both = {module.function(export.pushed)}", arguments)
    piece.add("return diffPair(both.item0, both.item1);")
    piece.close()
    return piece
