"""User functions and their derivatives as Slang functions."""

from __future__ import annotations

from shaderad.bodies.structured import Structured, structured
from shaderad.ir.nodes import Function, Parameter
from shaderad.ir.walk import writes
from shaderad.lower.bindings import Mode
from shaderad.lower.prepare.known import folded_names
from shaderad.lower.prepare.watches import Watch
from shaderad.lower.write.module import DerivativeNames, Module
from shaderad.lower.write.piece import Piece
from shaderad.lower.write.slang import FunctionWriter
from shaderad.rules.composing import holds_array
from shaderad.rules.nodes import Adjoint, InOut, Pushed


def write_function(module: Module, f: Function, name: str) -> None:
    """Adds a user function to the module."""
    piece = Piece()
    piece.span = f.span
    types = {**f.local_types, **{p.name: p.type for p in f.parameters}}
    plain = (
        Structured(body=f.body, local_types=types)
        if isinstance(f, Adjoint)
        else structured(f.body, f.result, types)
    )
    folded = folded_names(plain.body, module.folded_parameters.get(f, {}))
    watch = _watch_of(f, module.mode)
    writer = FunctionWriter(module, piece, plain.local_types, folded=folded, watch=watch)
    assigned = writes(plain.body)
    derivatives = module.derivatives.get(f)
    parameters = [
        f"{_passed(p, derivatives)}{module.types.spell(p.type)} {writer.parameter(p.name)}"
        for p in f.parameters
    ]
    head = f"{module.types.spell(f.result)} {name}({', '.join(parameters)})"
    if derivatives:
        for line in derivatives.attributes:
            piece.add(line)
        head = f"public {head}"
    piece.open(head)
    for p in f.parameters:
        if p.name in assigned and not isinstance(p, InOut):
            copy_parameter(writer, p.name)
    writer.block(plain.body)
    piece.close()
    module.pieces.append(piece)


def _passed(p: Parameter, derivatives: DerivativeNames | None) -> str:
    """The modifier of a parameter: compilers copy arrays, and Slang's derivatives take values."""
    if isinstance(p, InOut):
        return "inout "
    return "__constref " if holds_array(p.type) and derivatives is None else ""


def _watch_of(f: Function, mode: Mode) -> Watch:
    """The watch of `f`; a custom derivative computes values, like the primal."""
    if isinstance(f, Adjoint):
        return Watch(Mode.PRIMAL if f.is_own else mode, f.shown)
    return Watch(mode, f.shown if isinstance(f, Pushed) else {})


def copy_parameter(writer: FunctionWriter, name: str) -> None:
    """Declares a local with the value of a parameter that the body assigns."""
    parameter = writer.variable(name)
    local = writer.names.make(name)
    writer.bind(name, local)
    writer.piece.add(f"{writer.module.types.spell(writer.types[name])} {local} = {parameter};")
