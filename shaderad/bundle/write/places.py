"""Compiled code -> where it binds each resource.

SPIR-V and WGSL keep the set and slots of the Slang text for resources that the code uses. Slang
numbers HLSL registers per class and Metal buffers in the order of declaration, unless the text
numbers them. All places are read from the code, so the manifest states what the compiler did.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from shaderad.bundle.format.description import BindingPlace
from shaderad.compiler.artifact import Binding, Code, Program
from shaderad.diagnostics import error
from shaderad.runtime.spirv import instructions, words_of

_REGISTER = re.compile(r"\b(\w+?)_\d+ : register\(([bstu]\d+)(?:, space(\d+))?\)")
_METAL_BUFFER = re.compile(r"\b(\w+?)_\d+ \[\[buffer\((\d+)\)\]\]")
_WGSL_BINDING = re.compile(r"@binding\((\d+)\) @group\((\d+)\)")
_OP_DECORATE, _BINDING, _DESCRIPTOR_SET = 71, 33, 34


def places(program: Program, code: Code) -> dict[str, BindingPlace]:
    """The place of each binding, by name; empty if the compiler removed an unused resource."""
    if code.target == "hlsl":
        registers = {n: (r, int(s or 0)) for n, r, s in _REGISTER.findall(code.content.decode())}
        _check_registers(program, registers)
        return {b.name: _register(b, registers) for b in program.bindings}
    if code.target == "metal":
        buffers = dict(_METAL_BUFFER.findall(code.content.decode()))
        return {b.name: _buffer(b, buffers) for b in program.bindings}
    used = _wgsl_places(code.content) if code.target == "wgsl" else _spirv_places(code.content)
    return {b.name: _binding(b, program.space, used) for b in program.bindings}


def _wgsl_places(content: bytes) -> set[tuple[int, int]]:
    """The (group, binding) pairs that the code declares."""
    return {(int(group), int(slot)) for slot, group in _WGSL_BINDING.findall(content.decode())}


def _spirv_places(content: bytes) -> set[tuple[int, int]]:
    """The (set, binding) pairs of ``OpDecorate`` (SPIR-V 1.6, sections 2.3 and 3.20)."""
    decorations: dict[int, dict[int, int]] = {_BINDING: {}, _DESCRIPTOR_SET: {}}
    for opcode, operands in instructions(words_of(content)):
        if opcode == _OP_DECORATE and operands[1] in decorations:
            decorations[operands[1]][operands[0]] = operands[2]
    sets = decorations[_DESCRIPTOR_SET]
    return {(sets[variable], slot) for variable, slot in decorations[_BINDING].items()}


def _binding(binding: Binding, space: int, used: set[tuple[int, int]]) -> BindingPlace:
    is_used = (space, binding.slot) in used
    return BindingPlace(set=space, binding=binding.slot) if is_used else BindingPlace()


def _register(binding: Binding, registers: Mapping[str, tuple[str, int]]) -> BindingPlace:
    if binding.name not in registers:
        return BindingPlace()
    register, space = registers[binding.name]
    return BindingPlace(register=register, space=space)


def _buffer(binding: Binding, buffers: Mapping[str, str]) -> BindingPlace:
    return (
        BindingPlace(buffer=int(buffers[binding.name]))
        if binding.name in buffers
        else BindingPlace()
    )


def _check_registers(program: Program, registers: Mapping[str, tuple[str, int]]) -> None:
    """Checks that every register has a binding of its class and space."""
    by_name = {b.name: b for b in program.bindings}
    for name, (register, space) in registers.items():
        binding = by_name.get(name)
        is_right = binding is not None and binding.access.register_class == register[0]
        if not is_right or space != program.space:
            raise error("SR0714", program=program.name, register=register, name=name)
