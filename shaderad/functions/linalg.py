"""`matmul`, of matrix elements or along the last axes of arrays of numbers; `dot`; and all of
Python's operators of two operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from shaderad.arrays.arrays import Array, is_host_array
from shaderad.arrays.containers import is_data
from shaderad.arrays.traced_sizes import TracedSize
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.functions.contractions import Labelled, contracted, ellipsis
from shaderad.ir import ops
from shaderad.ir.types import Scalar, Vector
from shaderad.trace.components import packed
from shaderad.trace.elements import as_element, binary, primitive
from shaderad.trace.primitives import as_number, known_shape
from shaderad.trace.traced import TracedArray, tracing


def matmul(left: Any, right: Any) -> TracedArray:
    """``left @ right``: for arrays of numbers as NumPy's, else by element.

    Products of halves are added in float, and rounded once.

    Raises:
        ShapeError: SR0344, where the inner sizes differ.
    """
    x, y = as_element(left), as_element(right)
    if not isinstance(x.element, Scalar) or not isinstance(y.element, Scalar):
        return binary(ops.MATMUL.name, x, y)
    inner = y.extents[-2:][:1]
    if not x.extents or not inner or not tracing().are_equal(x.extents[-1], inner[0]):
        raise error("SR0344", user_span(), left=known_shape(x.extents),
                    right=known_shape(y.extents))  # fmt: skip
    around = [ellipsis(len(z.extents) - 2) for z in (x, y)]
    rows = ("i",) if len(x.extents) > 1 else ()
    columns = ("j",) if len(y.extents) > 1 else ()
    left, right = Labelled(x, (*around[0], *rows, "k")), Labelled(y, (*around[1], "k", *columns))
    return contracted((left, right), (*max(around, key=len), *rows, *columns))


def dot(left: Any, right: Any) -> TracedArray:
    """The inner product of vectors, by element; for arrays of numbers as NumPy's, up to two axes.

    If one operand has vectors, the last axis of numbers in the other is taken as vectors.

    Raises:
        LanguageError: SR0312 for other elements, or more axes.
        ShapeError: SR0344, where the inner sizes differ.
    """
    x, y = as_element(left), as_element(right)
    numbers = [z for z in (x, y) if isinstance(z.element, Scalar) and z.extents]
    vectors = [z.element for z in (x, y) if isinstance(z.element, Vector)]
    if len(numbers) == 2 and max(len(z.extents) for z in numbers) <= 2:
        return matmul(x, y)
    if len(numbers) == 1 and len(vectors) == 1:
        x, y = (packed(z, vectors[0]) if z is numbers[0] else z for z in (x, y))
        numbers = [z for z in (x, y) if isinstance(z.element, Scalar)]
    if numbers:
        operands = ", ".join(f"`{z.element}` of shape {known_shape(z.extents)}" for z in (x, y))
        raise error("SR0312", user_span(), name="dot", found=operands,
                    help="it takes arrays of vectors, or two arrays of numbers with one or two "
                    "axes; for others, `sad.sum(a * b, axis=-1)` or `sad.tensordot`")  # fmt: skip
    return primitive(ops.DOT, x, y)


def is_operand(x: Any) -> bool:
    """True if the operators of arrays accept `x`; if not, Python tries those of `x`."""
    if isinstance(x, tuple | list):
        return is_data(cast("Sequence[Any]", x))
    is_array = isinstance(x, Array | TracedSize) or is_host_array(x)
    return is_array or as_number(x) is not None


def operated(name: str, left: Any, right: Any) -> TracedArray:
    """Applies Python's operator with this name in ``ir/ops.py``."""
    function = matmul if name == ops.MATMUL.name else partial(binary, name)
    return function(_data(left), _data(right))


def _data(x: Any) -> Any:
    return [*cast("tuple[Any, ...]", x)] if isinstance(x, tuple) else x
