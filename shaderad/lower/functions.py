"""User functions and their own derivatives as Slang functions."""

from __future__ import annotations

from shaderad.bodies.heads import structured
from shaderad.bodies.jumps import Structured
from shaderad.ir.nodes import Function, Stmt
from shaderad.ir.types import Pair, is_differentiable
from shaderad.ir.walk import writes
from shaderad.lower.known import known_names
from shaderad.lower.loops import Outliner
from shaderad.lower.module import Module
from shaderad.lower.piece import Piece
from shaderad.lower.slang import FunctionWriter
from shaderad.rules.pulling import Adjoint, Place


def outlined(
    writer: FunctionWriter,
    stem: str,
    body: tuple[Stmt, ...],
    live: frozenset[str],
    *,
    is_reversed: bool,
) -> tuple[Stmt, ...]:
    """`body` with its loops as functions, where it takes part in differentiation."""
    if not writer.is_differentiated:
        return body
    outliner = Outliner(stem, writer.types, [])
    new = outliner.block(body, live)
    if is_reversed:
        writer.module.reversed_loops += outliner.loops
    return new


def write_function(module: Module, f: Function, name: str, *, is_differentiated: bool) -> None:
    """Adds a user function, and its own derivatives, to the module."""
    piece = Piece()
    piece.span = f.span
    types = {**f.local_types, **{p.name: p.type for p in f.parameters}}
    plain = (
        Structured(body=f.body, local_types=types)
        if isinstance(f, Adjoint)
        else structured(f.body, f.result, types)
    )
    writer = _writer(module, f, plain, piece, is_differentiated=is_differentiated)
    attributes, derivatives = _attributes(module, f, is_differentiated)
    for attribute in attributes:
        piece.add(attribute)
    assigned = writes(plain.body)
    parameters = [
        f"{'inout ' if isinstance(p, Place) else ''}"
        f"{module.types.spell(p.type)} {writer.parameter(p.name)}"
        for p in f.parameters
    ]
    piece.open(f"{module.types.spell(f.result)} {name}({', '.join(parameters)})")
    for p in f.parameters:
        if p.name in assigned and not isinstance(p.type, Pair) and not isinstance(p, Place):
            copy_parameter(writer, p.name)
    is_reversed = module.is_reversed(f)
    writer.block(outlined(writer, name, plain.body, frozenset(), is_reversed=is_reversed))
    piece.close()
    # A derivative that calls its primal must follow it: Slang finds a cycle otherwise.
    module.pieces += [piece, *derivatives]


def _writer(
    module: Module, f: Function, plain: Structured, piece: Piece, *, is_differentiated: bool
) -> FunctionWriter:
    known = known_names(plain.body, module.known_arguments.get(f, {}))
    return FunctionWriter(
        module, piece, plain.local_types, is_differentiated=is_differentiated, known=known
    )


def copy_parameter(writer: FunctionWriter, name: str) -> None:
    """A parameter that the body rebinds becomes a local: Slang's AD wants them unchanged."""
    given = writer.variable(name)
    local = writer.names.make(name)
    writer.bind(name, local)
    writer.piece.add(f"{writer.module.types.spell(writer.types[name])} {local} = {given};")


def _attributes(
    module: Module, f: Function, is_differentiated: bool
) -> tuple[list[str], list[Piece]]:
    """What stands above a function, and the custom derivatives that it names."""
    if not is_differentiated:
        return [], []
    if f.backward is None and f.forward is None:
        return ["[Differentiable]"], []
    attributes: list[str] = []
    derivatives: list[Piece] = []
    for attribute, own in (("BackwardDerivative", f.backward), ("ForwardDerivative", f.forward)):
        if own is not None:
            name = module.names.make(own.name)
            attributes.append(f"[{attribute}({name})]")
            derivatives.append(_derivative(module, f, own, name))
    return attributes, derivatives


def _derivative(module: Module, primal: Function, f: Function, name: str) -> Piece:
    """A custom derivative as text."""
    piece = Piece()
    piece.span = f.span
    types = {**f.local_types, **{p.name: p.type for p in f.parameters}}
    plain = structured(f.body, f.result, types)
    is_backward = f is primal.backward
    is_differentiated = not is_backward and primal in module.twice
    writer = _writer(module, f, plain, piece, is_differentiated=is_differentiated)
    if is_differentiated:
        piece.add("[Differentiable]")
    parameters: list[str] = []
    pairs: list[tuple[str, str, Pair]] = []
    for p in f.parameters:
        given = writer.parameter(p.name)
        if is_backward and isinstance(p.type, Pair) and is_differentiable(p.type.primal):
            pairs.append((given, writer.add_accumulator(p.name), p.type))
            parameters.append(f"inout {module.types.spell(p.type)} {given}")
        else:
            parameters.append(f"{module.types.spell(p.type)} {given}")
    piece.open(f"{module.types.spell(f.result)} {name}({', '.join(parameters)})")
    for _, total, t in pairs:
        spelled = module.types.differential(t.primal)
        piece.add(f"{spelled} {total} = {module.types.spell(t.primal)}.dzero();")
    is_reversed = module.is_reversed(primal)
    writer.block(outlined(writer, name, plain.body, frozenset(), is_reversed=is_reversed))
    for given, total, _ in pairs:
        piece.add(f"{given} = diffPair({given}.p, {total});")
    piece.close()
    return piece
