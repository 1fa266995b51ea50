"""Bytecode of a Python function -> the names that it reads.

Invariant: a name is left out only if no instruction reads it. `CodeNames.reads_any` is true
if the code computes a name, such as ``getattr(x, name)``.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import resolve_name
from types import CodeType

_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM"})
_WITHOUT_EFFECT = frozenset({"CACHE", "EXTENDED_ARG", "KW_NAMES", "NOP", "RESUME"})
_CALL = "PRECALL" if "PRECALL" in dis.opmap else "CALL"
"""The first instruction of a call."""
_TAKE_A_NAME = frozenset({"getattr", "hasattr"})
_READ_ANY = frozenset({
    "__dict__", "__getattribute__", "asdict", "astuple", "attrgetter", "dir", "eval", "exec",
    "fields", "getmembers", "globals", "locals", "methodcaller", "vars",
})  # fmt: skip
"""Functions and attributes that reach values whose names are not in the code."""


@dataclass(frozen=True, slots=True)
class CodeNames:
    """The names that a code object and its nested functions read."""

    globals: frozenset[str]
    attributes: frozenset[str]
    imports: frozenset[tuple[str, int]]
    """Modules that the code imports, each with the level of a relative import."""
    reads_any: bool
    """True if the code may read any attribute of what it holds."""


@lru_cache(maxsize=4096)
def names_in(code: CodeType) -> CodeNames:
    """The names that `code` reads."""
    global_names: set[str] = set()
    attributes: set[str] = set()
    imports: set[tuple[str, int]] = set()
    reads_any = False
    for part in _nested(code):
        instructions = list(dis.get_instructions(part))
        for k, instruction in enumerate(instructions):
            if instruction.opname in _GLOBALS:
                global_names.add(instruction.argval)
            elif instruction.opname in _ATTRIBUTES:
                attributes.add(instruction.argval)
            elif instruction.opname == "IMPORT_NAME":
                imports.add((instruction.argval, _level(instructions[:k])))
            # A class pattern reads the attributes that the class lists.
            reads_any |= instruction.opname == "MATCH_CLASS"
            if instruction.argval in _TAKE_A_NAME and instruction.opname in _GLOBALS:
                name = _second_argument(instructions, k)
                reads_any |= name is None
                attributes.update(() if name is None else (name,))
    reads_any |= not _READ_ANY.isdisjoint(global_names | attributes)
    return CodeNames(frozenset(global_names), frozenset(attributes), frozenset(imports), reads_any)


def imported_module(name: str, level: int, package: str | None) -> str | None:
    """The full name of an imported module; `None` for a relative one outside of packages."""
    if not level:
        return name
    try:
        return resolve_name("." * level + name, package)
    except ImportError:
        return None


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _level(before: Sequence[dis.Instruction]) -> int:
    """The level of a relative import, which is loaded before its list of names."""
    loads = [
        instruction.argval for instruction in before[-8:] if instruction.opname.startswith("LOAD_")
    ]
    return loads[-2] if len(loads) > 1 and isinstance(loads[-2], int) else 0


def _second_argument(instructions: Sequence[dis.Instruction], position: int) -> str | None:
    """The second argument in the call of the function loaded at `position`, if it is a constant
    string; else `None`.

    Simulates the stack, on which computed values are `None`.
    """
    stack: list[object] = []
    for instruction in instructions[position + 1 :]:
        if instruction.opname in _WITHOUT_EFFECT:
            continue
        if instruction.opname == _CALL and instruction.arg == len(stack):
            argument = stack[1] if len(stack) > 1 else None
            return argument if isinstance(argument, str) else None
        effect = dis.stack_effect(instruction.opcode, instruction.arg, jump=False)
        if effect > 0:
            is_constant = instruction.opname == "LOAD_CONST"
            stack += [instruction.argval if is_constant else None, *[None] * (effect - 1)]
        elif (
            len(stack) < 1 - effect
            or instruction.opcode in dis.hasjrel
            or instruction.opcode in dis.hasjabs
        ):
            return None
        else:
            stack[effect - 1 :] = [None]
    return None
