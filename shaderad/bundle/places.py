"""Compiled text -> where the host binds each resource.

SPIR-V and WGSL keep the set and the slots of the Slang text, of resources that the code uses. Slang
numbers HLSL's registers by class, in the order of declaration, and Metal's buffers likewise, where
the text does not. All of it is read from the code, so that what the manifest says is what the
compiler did.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from shaderad.bundle.description import Place
from shaderad.diagnostics import error
from shaderad.lower.artifact import Binding, Code, Program
from shaderad.runtime.spirv import instructions, words_of

_REGISTER = re.compile(r"\b(\w+?)_\d+ : register\(([bstu]\d+)(?:, space(\d+))?\)")
_METAL_BUFFER = re.compile(r"\b(\w+?)_\d+ \[\[buffer\((\d+)\)\]\]")
_WGSL_BINDING = re.compile(r"@binding\((\d+)\) @group\((\d+)\)")
_OP_DECORATE, _BINDING, _DESCRIPTOR_SET = 71, 33, 34


def places(program: Program, code: Code) -> dict[str, Place]:
    """By binding name; empty where the compiler left out a resource that no code uses."""
    if code.target == "hlsl":
        found = {n: (r, int(s or 0)) for n, r, s in _REGISTER.findall(code.content.decode())}
        _check_registers(program, found)
        return {b.name: _register(b, found) for b in program.bindings}
    if code.target == "metal":
        buffers = dict(_METAL_BUFFER.findall(code.content.decode()))
        return {b.name: _buffer(b, buffers) for b in program.bindings}
    used = _wgsl_places(code.content) if code.target == "wgsl" else _spirv_places(code.content)
    return {b.name: _binding(b, program.space, used) for b in program.bindings}


def _wgsl_places(content: bytes) -> set[tuple[int, int]]:
    """Every group with a slot of it."""
    return {(int(group), int(slot)) for slot, group in _WGSL_BINDING.findall(content.decode())}


def _spirv_places(content: bytes) -> set[tuple[int, int]]:
    """Every set with a slot of it that ``OpDecorate`` names (SPIR-V 1.6, sections 2.3 and 3.20)."""
    found: dict[int, dict[int, int]] = {_BINDING: {}, _DESCRIPTOR_SET: {}}
    for opcode, operands in instructions(words_of(content)):
        if opcode == _OP_DECORATE and operands[1] in found:
            found[operands[1]][operands[0]] = operands[2]
    sets = found[_DESCRIPTOR_SET]
    return {(sets[variable], slot) for variable, slot in found[_BINDING].items()}


def _binding(binding: Binding, space: int, used: set[tuple[int, int]]) -> Place:
    is_used = (space, binding.slot) in used
    return Place(set=space, binding=binding.slot) if is_used else Place()


def _register(binding: Binding, found: Mapping[str, tuple[str, int]]) -> Place:
    if binding.name not in found:
        return Place()
    register, space = found[binding.name]
    return Place(register=register, space=space)


def _buffer(binding: Binding, found: Mapping[str, str]) -> Place:
    return Place(buffer=int(found[binding.name])) if binding.name in found else Place()


def _check_registers(program: Program, found: Mapping[str, tuple[str, int]]) -> None:
    """Every register belongs to a binding, and is of its class and space."""
    by_name = {b.name: b for b in program.bindings}
    for name, (register, space) in found.items():
        binding = by_name.get(name)
        is_right = binding is not None and binding.access.register_class == register[0]
        if not is_right or space != program.space:
            raise error("SR0714", program=program.name, register=register, name=name)
