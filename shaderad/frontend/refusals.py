"""Python syntax and builtins that kernels do not have: their names, and what to write instead."""

from __future__ import annotations

import ast
import types
from collections.abc import Mapping

_NO_COLLECTION = "a fixed-size `sad.LocalArray[float, 8]()` holds several values"
_LOOP = "write a `for` loop"

EXPRESSIONS: Mapping[type[ast.expr], tuple[str, str]] = types.MappingProxyType({
    ast.Lambda: ("`lambda`", "define a `@sad.function`"),
    ast.ListComp: ("a list comprehension", f"{_LOOP} over a `sad.LocalArray`"),
    ast.SetComp: ("a set comprehension", _LOOP),
    ast.DictComp: ("a dict comprehension", _LOOP),
    ast.GeneratorExp: ("a generator expression", f"{_LOOP} that adds up"),
    ast.List: ("a list", _NO_COLLECTION),
    ast.Dict: ("a dict", "write a `@sad.struct`"),
    ast.Set: ("a set", _NO_COLLECTION),
    ast.JoinedStr: ("an f-string", "kernels have no text but that of `print` and `assert`"),
    ast.NamedExpr: ("`:=`", "assign in a statement of its own"),
    ast.Await: ("`await`", "a kernel runs to its end without waiting"),
    ast.Yield: ("`yield`", "write results to an `sad.Out` array"),
    ast.YieldFrom: ("`yield from`", "write results to an `sad.Out` array"),
    ast.Starred: ("`*`", "write every element out"),
    ast.Slice: ("a slice", "read the elements one by one in a loop"),
})  # fmt: skip

STATEMENTS: Mapping[type[ast.stmt], tuple[str, str]] = types.MappingProxyType({
    ast.FunctionDef: ("a nested `def`", "define a `@sad.function` outside of the kernel"),
    ast.AsyncFunctionDef: ("`async def`", "define a `@sad.function` outside of the kernel"),
    ast.ClassDef: ("a nested class", "define a `@sad.struct` outside of the kernel"),
    ast.Try: ("`try`", "nothing raises in a kernel; test the condition with `if`"),
    ast.TryStar: ("`try`", "nothing raises in a kernel; test the condition with `if`"),
    ast.Raise: ("`raise`", "`assert condition, \"text\"` reports a failure"),
    ast.With: ("`with`", "kernels have no context managers"),
    ast.AsyncWith: ("`async with`", "kernels have no context managers"),
    ast.AsyncFor: ("`async for`", "write `for i in range(n):`"),
    ast.Global: ("`global`", "write results to an `sad.Out` array"),
    ast.Nonlocal: ("`nonlocal`", "write results to an `sad.Out` array"),
    ast.Delete: ("`del`", "locals end with the function"),
    ast.Import: ("`import`", "import at the top of the file"),
    ast.ImportFrom: ("`import`", "import at the top of the file"),
    ast.Match: ("`match`", "write `if` and `elif`"),
})  # fmt: skip

_ADD_UP = "write a loop: `total = 0.0`, then `total += x[j]` in `for j in range(n):`"
_TEST_ALL = "write a loop that sets a `bool`; of a vector of bools `sad.any(v)`, `sad.all(v)`"
_BY_INDEX = "loop over indices, `for j in range(n):`, and read the elements by `j`"

BUILTINS: Mapping[str, str] = types.MappingProxyType({
    "sum": _ADD_UP,
    "any": _TEST_ALL,
    "all": _TEST_ALL,
    **dict.fromkeys("enumerate filter iter map next reversed zip".split(), _BY_INDEX),
    **dict.fromkeys("dict frozenset list set sorted tuple".split(), _NO_COLLECTION),
    **dict.fromkeys("ascii chr format input open ord repr str".split(),
                    'kernels have no text but that of `print`: write `print(f"{x:.3f}")`'),
    "divmod": "write `x // y` and `x % y`",
    "pow": "write `x ** y`",
    **dict.fromkeys("getattr hasattr isinstance issubclass setattr type".split(),
                    "types are known while compiling: write a function for each of them"),
})  # fmt: skip
"""Replacements for builtins that kernels do not have."""
