"""The annotations of kernels as type checkers see them; never imported by a program.

At run time ``sad.In`` is an object that makes annotations (`shaderad.language.annotations`), which
no checker takes for a type. Here each is a class that has every attribute and operator, because a
kernel's body is no Python to check: the front end reads it, and refuses with the line.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "Add",
    "Const",
    "DifferentialPair",
    "In",
    "Index",
    "LocalArray",
    "Max",
    "Min",
    "Out",
    "Pointer",
]


class KernelValue(Any):
    """A value in the body of a kernel, of whatever type."""

    def __class_getitem__(cls, arguments: Any) -> Any: ...

    def __new__(cls, *parts: Any) -> Any: ...


class ThreadIndex(int):
    """A thread's own index along one axis of the launch."""


Index = ThreadIndex
In = KernelValue
Out = KernelValue
Add = KernelValue
Min = KernelValue
Max = KernelValue
Const = KernelValue
LocalArray = KernelValue
DifferentialPair = KernelValue
Pointer = KernelValue
