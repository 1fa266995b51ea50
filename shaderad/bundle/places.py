"""Compiled text -> where the host binds each resource.

SPIR-V and WGSL keep set 0 and the slots of the Slang text, of resources that the code uses. Slang
numbers HLSL's registers by class, in the order of declaration, and Metal's buffers likewise. All
of it is read from the code, so that what the manifest says is what the compiler did.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping

from shaderad.bundle.description import Place
from shaderad.diagnostics import error
from shaderad.lower.artifact import Access, Binding, Code, Program

_REGISTER = re.compile(r"\b(\w+?)_\d+ : register\(([bstu]\d+)\)")
_METAL_BUFFER = re.compile(r"\b(\w+?)_\d+ \[\[buffer\((\d+)\)\]\]")
_WGSL_BINDING = re.compile(r"@binding\((\d+)\) @group\(0\)")
_SPIRV_HEADER_WORDS, _OP_DECORATE, _BINDING = 5, 71, 33
_CLASS_BY_ACCESS = {Access.UNIFORM: "b", Access.READ: "t", Access.WRITE: "u"}


def places(program: Program, code: Code) -> dict[str, Place]:
    """By binding name; empty where the compiler left out a resource that no code uses."""
    if code.target == "hlsl":
        found = dict(_REGISTER.findall(code.content.decode()))
        _check_registers(program, found)
        return {b.name: _register(b, found) for b in program.bindings}
    if code.target == "metal":
        found = dict(_METAL_BUFFER.findall(code.content.decode()))
        return {b.name: _buffer(b, found) for b in program.bindings}
    slots = _wgsl_slots(code.content) if code.target == "wgsl" else _spirv_slots(code.content)
    return {b.name: _binding(b, slots) for b in program.bindings}


def _wgsl_slots(content: bytes) -> set[int]:
    return {int(slot) for slot in _WGSL_BINDING.findall(content.decode())}


def _spirv_slots(content: bytes) -> set[int]:
    """Every slot that an ``OpDecorate .. Binding`` names (SPIR-V 1.6, sections 2.3 and 3.20)."""
    words = struct.unpack(f"<{len(content) // 4}I", content)
    slots: set[int] = set()
    position = _SPIRV_HEADER_WORDS
    while position < len(words):
        if words[position] & 0xFFFF == _OP_DECORATE and words[position + 2] == _BINDING:
            slots.add(words[position + 3])
        position += words[position] >> 16
    return slots


def _binding(binding: Binding, slots: set[int]) -> Place:
    return Place(set=0, binding=binding.slot) if binding.slot in slots else Place()


def _register(binding: Binding, found: Mapping[str, str]) -> Place:
    return Place(register=found[binding.name]) if binding.name in found else Place()


def _buffer(binding: Binding, found: Mapping[str, str]) -> Place:
    return Place(buffer=int(found[binding.name])) if binding.name in found else Place()


def _check_registers(program: Program, found: Mapping[str, str]) -> None:
    """Every register belongs to a binding, and is of its class."""
    by_name = {b.name: b for b in program.bindings}
    for name, register in found.items():
        if name not in by_name or _CLASS_BY_ACCESS[by_name[name].access] != register[0]:
            raise error("SR0714", program=program.name, register=register, name=name)
