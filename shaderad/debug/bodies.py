"""Rewrites the Python body of a kernel so that it computes in Python what the kernel computes.

The body stays Python with its own file and lines, so that ``breakpoint()``, ``print`` and stepping
work. Five things change: assigned and returned values are copied, callees are resolved at the
call, shifts and powers are those of 32-bit numbers, ``while sad.limit(..)`` counts its iterations,
and f-strings format values as a device does.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from shaderad.debug.values import Shown, copied
from shaderad.language.host import PythonFunction

COPY, CALL, SHIFT, BASE, HEAD, SHOWN = (
    f"__shaderad_{name}__" for name in ("copy", "call", "shift", "base", "head", "shown")
)


def python_body(
    function: PythonFunction, resolve: Callable[[Any], Any], head: Callable[[], Any]
) -> Callable[..., Any]:
    """The function as plain Python.

    Args:
        function: The decorated function.
        resolve: Gives the Python function to call in place of a callee.
        head: Gives the `resolve` of a ``while`` loop's condition, a new one for each run of the
            loop.
    """
    tree = _Rewriter().visit(copy.deepcopy(function.tree))
    code = compile(ast.Module([tree], []), function.source.file, "exec")
    space = function.namespace() | {
        COPY: copied,
        CALL: resolve,
        SHIFT: _shift_count,
        BASE: _base,
        HEAD: head,
        SHOWN: Shown,
    }
    exec(code, space)
    return space[function.tree.name]  # pyright: ignore[reportReturnType]


def _shift_count(count: Any) -> Any:
    """A shift count modulo 32."""
    return count & 31


def _base(base: Any) -> Any:
    """The base of a power as a float: NumPy refuses ints with negative exponents."""
    is_integer = np.asarray(base).dtype.kind in "iu"
    return np.float32(base) if is_integer else base


def _called(name: str, argument: ast.expr) -> ast.expr:
    """``name(argument)`` at the place of `argument`."""
    callee = ast.copy_location(ast.Name(name, ast.Load()), argument)
    return ast.copy_location(ast.Call(callee, [argument], []), argument)


class _Rewriter(ast.NodeTransformer):
    """Rewrites one body; nodes keep their lines."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list, node.returns = [], None
        for argument in (*node.args.posonlyargs, *node.args.args):
            argument.annotation = None
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.func = _called(CALL, node.func)
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        self.generic_visit(node)
        node.value = _called(SHOWN, node.value)
        return node

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        """A loop whose condition is a call resolves it with a `head` of its own."""
        self.generic_visit(node)
        if not isinstance(node.test, ast.Call):
            return node
        name = f"{HEAD}{node.lineno}_{node.col_offset}"
        new_head = ast.Call(ast.Name(HEAD, ast.Load()), [], [])
        start = ast.Assign([ast.Name(name, ast.Store())], new_head)
        assert isinstance(node.test.func, ast.Call)  # made by `visit_Call`
        node.test.func.func = ast.Name(name, ast.Load())
        for new in (start, node.test.func):
            ast.fix_missing_locations(ast.copy_location(new, node))
        return [start, node]

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        node.value = _called(COPY, node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        plain = ast.Assign([node.target], node.value)
        return self.visit_Assign(ast.copy_location(plain, node))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """``x += v`` binds a new value: other names of the same vector must not change."""
        if not isinstance(node.target, ast.Name):
            self.generic_visit(node)
            if isinstance(node.op, ast.LShift | ast.RShift):
                node.value = _called(SHIFT, node.value)
            return node
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        combined = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        plain = ast.Assign([node.target], combined)
        return self.visit_Assign(ast.copy_location(plain, node))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.LShift | ast.RShift):
            node.right = _called(SHIFT, node.right)
        is_negative = isinstance(node.right, ast.UnaryOp) and isinstance(node.right.op, ast.USub)
        if isinstance(node.op, ast.Pow) and is_negative:
            node.left = _called(BASE, node.left)
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        if node.value is not None:
            node.value = _called(COPY, node.value)
        return node
