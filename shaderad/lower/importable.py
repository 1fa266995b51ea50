"""A kernel -> the Slang module of its functions, for shaders that others write.

Each function that has derivatives, and each read of an array by which the kernel is differentiated,
carries both derivatives in Slang's own convention: a program that imports the module may call
``bwd_diff(blend)`` and ``fwd_diff(blend)``, or call it from ``[Differentiable]`` functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from shaderad.diagnostics import DerivativeError
from shaderad.ir.nodes import Buffer, Function, Kernel
from shaderad.ir.prints import silent
from shaderad.ir.types import Access, Kind, Type, is_differentiable, scalars
from shaderad.ir.walk import reachable, writes_memory
from shaderad.lower.artifact import Program
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.functions import write_function
from shaderad.lower.kernels import assemble
from shaderad.lower.module import Derivatives, Module
from shaderad.lower.names import Names
from shaderad.lower.piece import Piece
from shaderad.lower.strategy import NOTHING_HOISTED
from shaderad.lower.tags import Tags
from shaderad.rules.pulling import Adjoint, Functions, pull_function, split_function
from shaderad.rules.pushing.functions import Functions as Tangents
from shaderad.rules.pushing.statements import push_body
from shaderad.rules.transforms import Transforms

_NO_LIMIT = 1 << 16
"""Storage buffers: how many fit is the importing program's business."""


@dataclass(frozen=True, slots=True)
class _Offered:
    """A function with its derivatives: of all parameters that have one."""

    function: Function
    moving: tuple[int, ...]
    pulled: Adjoint
    pushed: Function


def lower_importable(kernel: Kernel, variant: Variant) -> Program | None:
    """The module of the functions of `kernel`; `None` where it would hold none.

    Arrays are bound as in the backward mode, all gradients added to atomically. An index out of
    range reads 0 and is not reported.

    Args:
        kernel: Any; what it writes is not part of the module.
        variant: By which arrays it is differentiated, and on what devices.
    """
    transforms = Transforms()
    kernel = silent(kernel)
    bounds = "unchecked" if variant.bounds == "unchecked" else "ignore"
    variant = replace(variant, bounds=bounds, storage_buffer_limit=_NO_LIMIT)
    module = Module(kernel, Mode.BACKWARD, variant, NOTHING_HOISTED, transforms)
    module.is_importable = True
    module.set_function_writer(lambda f, name: write_function(module, f, name))
    inputs = [b for b in kernel.buffers if b.access is Access.IN and b.name in variant.wanted]
    arrays = [b for b in inputs if not (b.is_pointed or _holds_doubles(b))]
    offered = list(_offered(kernel, transforms, inputs))
    if not (offered or arrays):
        return None
    entry = module.names.make(f"{kernel.name}_functions")
    for one in offered:
        module.derivatives[one.function] = _derivatives(module, one.function.name)
    for b in arrays:
        module.pieces += _read(module, b)
    for one in offered:
        _write(module, one)
    module.arrays.note_tags(dict.fromkeys(variant.wanted, True))
    declarations = module.arrays.bind()
    tags = Tags(module).write()
    program = assemble(module, entry, [declarations, tags, *module.pieces])
    return replace(program, is_module=True)


def _holds_doubles(b: Buffer) -> bool:
    """Devices have no atomic that adds to its gradient."""
    return any(s.kind is Kind.DOUBLE for s in scalars(b.type.element))


def _offered(kernel: Kernel, transforms: Transforms, inputs: list[Buffer]) -> Iterator[_Offered]:
    nothing: frozenset[str] = frozenset()
    wanted = frozenset(b.name for b in inputs)
    doubles = frozenset(b.name for b in inputs if _holds_doubles(b))
    adjoints = Functions(
        wanted=wanted,
        seeds=nothing,
        write=pull_function,
        write_split=split_function,
        derivatives=transforms,
    )
    tangents = Tangents({}, nothing, push_body, transforms, is_first=True)
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
        except DerivativeError:  # Slang's own rule: with both derivatives, or without any.
            continue
        yield _Offered(f, moving, pulled, pushed)


def _read(module: Module, b: Buffer) -> tuple[Piece, ...]:
    """``mesh_at(i)``, an element of an array, with its derivatives; out of range it is 0."""
    t = module.types.spell(b.type.element)
    array = module.arrays.tag(b.name)
    name = module.names.make(f"{b.name}_at")
    derivatives = _derivatives(module, name)
    indices = ["i", "j", "k", "l"][: b.type.rank]
    given, values = ", ".join(f"int {i}" for i in indices), ", ".join(indices)
    number = module.arrays.silent_number(b.name, values, is_there=module.is_unchecked)
    reader = "readInside" if module.is_unchecked else "read"
    read, pulled, pushed = Piece(), Piece(), Piece()
    read.add(f"/// `{'.'.join(b.path)}[{values}]`; `bwd_diff` adds to the gradient of the array.")
    for line in derivatives.attributes:
        read.add(line)
    read.open(f"public {t} {name}({given})")
    read.add(f"return {reader}<{t}, {array}>({number});")
    read.close()
    pulled.open(f"void {derivatives.backward}({given}, {t} result_bar)")
    pulled.add(f"addGradient<{t}, {array}>({number}, {t}.gradientWordCount, 0, result_bar);")
    pulled.close()
    pushed.open(f"DifferentialPair<{t}> {derivatives.forward}({given})")
    pushed.add(f"return diffPair({name}({values}), {module.types.zero(b.type.element)});")
    pushed.close()
    return read, pulled, pushed


def _derivatives(module: Module, name: str) -> Derivatives:
    return Derivatives(*(module.names.make(f"{name}_{how}_diff") for how in ("bwd", "fwd")))


def _write(module: Module, one: _Offered) -> None:
    """A function, its adjoint, its tangent, and both once more with arguments in pairs."""
    module.function(one.function)
    derivatives = module.derivatives[one.function]
    names = module.names.child()
    own = [(names.make(p.name), module.types.spell(p.type)) for p in one.function.parameters]
    pulled = _pulled(module, one, derivatives.backward, own, names)
    module.pieces += [pulled, _pushed(module, one, derivatives.forward, own)]


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
    module: Module, one: _Offered, head: str, own: list[tuple[str, str]], names: Names
) -> Piece:
    piece = Piece()
    piece.span = one.function.span
    parameters, primals = _pairs(own, one.moving, "inout ")
    result = names.make("result_bar")
    parameters.append(f"{module.types.spell(one.function.result)} {result}")
    piece.open(f"void {head}({', '.join(parameters)})")
    bars = [names.make(f"{own[k][0]}_bar") for k in one.moving]
    for k, bar in zip(one.moving, bars, strict=True):
        t: Type = one.function.parameters[k].type
        piece.add(f"{own[k][1]} {bar} = {module.types.zero(t)};")
    piece.call(module.function(one.pulled), [*primals, result, *bars])
    for k, bar in zip(one.moving, bars, strict=True):
        piece.add(f"{own[k][0]} = diffPair({own[k][0]}.p, {bar});")
    piece.close()
    return piece


def _pushed(module: Module, one: _Offered, head: str, own: list[tuple[str, str]]) -> Piece:
    piece = Piece()
    piece.span = one.function.span
    parameters, primals = _pairs(own, one.moving, "")
    t = module.types.spell(one.function.result)
    piece.open(f"DifferentialPair<{t}> {head}({', '.join(parameters)})")
    both = module.types.spell(one.pushed.result)
    arguments = [*primals, *(f"{own[k][0]}.d" for k in one.moving)]
    piece.call(f"{both} both = {module.function(one.pushed)}", arguments)
    piece.add("return diffPair(both.item0, both.item1);")
    piece.close()
    return piece
