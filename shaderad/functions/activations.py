"""Elementwise `relu`, `sigmoid`, `silu`, `gelu`, `softplus`; `softmax`, `log_softmax` over axes.

The elementwise ones share their formulas with kernels (`frontend/activations.py`).
"""

from __future__ import annotations

from typing import Any, Literal

from shaderad.arrays.arrays import Array
from shaderad.calls.array_function import array_function
from shaderad.device.lines import user_span
from shaderad.diagnostics import error, text_of
from shaderad.frontend import activations as formulas
from shaderad.functions.reductions import Axes, below_maximum, sum_of
from shaderad.ir import ops
from shaderad.trace.elements import as_element, binary, in_floats, primitive, unary
from shaderad.trace.traced import TracedArray

__all__ = ["gelu", "log_softmax", "relu", "sigmoid", "silu", "softmax", "softplus"]


@array_function
def relu(x: Any) -> Array:
    """The positive part.

    ``x`` where ``x > 0``, else 0.

    Args:
        x: Numbers, or vectors or matrices of them by component.

    Returns:
        Elements of the type of `x`; NaN stays.

    Raises:
        LanguageError: SR0311 for bools, SR0304 for structs.

    Differentiable: ``x_bar = out_bar`` where ``x > 0``, else 0, also at 0.

    Source: Nair, Hinton, *Rectified linear units improve restricted Boltzmann machines*, ICML 2010.
    """
    return formulas.relu(_OnArrays(), as_element(x))


@array_function
def sigmoid(x: Any) -> Array:
    """The logistic function.

    ``1 / (1 + exp(-x))``, computed from ``exp(-abs(x))``, which does not overflow.

    Args:
        x: Numbers, or vectors or matrices of them by component; ints and bools give floats.

    Returns:
        Floats from 0 to 1, which keep their relative precision where they are small. Halves are
        computed in float, and rounded once.

    Raises:
        LanguageError: SR0304 for structs.

    Differentiable: ``x_bar = out_bar * out * (1 - out)``.
    """
    return _applied(formulas.sigmoid, x)


@array_function
def silu(x: Any) -> Array:
    """The sigmoid linear unit, also called swish.

    ``x * sigmoid(x)``

    Args:
        x: Numbers, or vectors or matrices of them by component; ints and bools give floats.

    Returns:
        Floats; NaN at -inf. Halves are computed in float, and rounded once.

    Raises:
        LanguageError: SR0304 for structs.

    Differentiable: ``x_bar = out_bar * s * (1 + x * (1 - s))`` with ``s = sigmoid(x)``.

    Source: Elfwing, Uchibe, Doya, *Sigmoid-weighted linear units for neural network function
    approximation in reinforcement learning*, Neural Networks 107 (2018).
    """
    return _applied(formulas.silu, x)


@array_function
def gelu(x: Any, approximate: Literal["none", "tanh"] = "none") -> Array:
    """The Gaussian error linear unit: `x` times the normal distribution's probability below `x`.

    ``0.5 * x * (1 + erf(x / sqrt(2)))``; the approximation by the hyperbolic tangent is
    ``0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))``.

    Args:
        x: Numbers, or vectors or matrices of them by component; ints and bools give floats.
        approximate: ``"none"`` for the exact function, ``"tanh"`` for the approximation.

    Returns:
        Floats, which keep their relative precision where they are small; NaN at -inf. Halves are
        computed in float, and rounded once.

    Raises:
        LanguageError: SR0304 for structs, SR0312 for another `approximate`.

    Differentiable, with the derivative of the formula that is computed.

    Source: Hendrycks, Gimpel, *Gaussian error linear units (GELUs)*, arXiv:1606.08415 (2016).
    """
    if approximate in formulas.GELUS:
        return _applied(formulas.GELUS[approximate], x)
    raise error("SR0312", user_span(), name="gelu", found=f"`approximate={text_of(approximate)}`",
                help='write `"none"` or `"tanh"`')  # fmt: skip


@array_function
def softplus(x: Any) -> Array:
    """The smooth positive part.

    ``log(1 + exp(x))``, computed as ``max(x, 0) + log1p(exp(-abs(x)))``, which does not overflow.

    Args:
        x: Numbers, or vectors or matrices of them by component; ints and bools give floats.

    Returns:
        Floats, which keep their relative precision where they are small. Halves are computed in
        float, and rounded once.

    Raises:
        LanguageError: SR0304 for structs.

    Differentiable: ``x_bar = out_bar * sigmoid(x)``.

    Source: Dugas, Bengio, Bélisle, Nadeau, Garcia, *Incorporating second-order functional knowledge
    for better option pricing*, NIPS 2000.
    """
    return _applied(formulas.softplus, x)


@array_function
def softmax(x: Any, axis: Axes = -1) -> Array:
    """The exponentials of the elements, divided by their sum over axes.

    ``exp(x) / sum(exp(x))``, computed from ``exp(x - m)`` with the largest element m.

    Args:
        x: Numbers, or vectors or matrices of them by component; ints and bools give floats.
        axis: One axis, several, or `None` for all.

    Returns:
        Floats from 0 to 1 in the shape of `x`; 0 for -inf. NaN where an element of the sum is NaN
        or +inf, or all are -inf. Halves are computed in float, and rounded once.

    Raises:
        ShapeError: SR0323 for an axis, SR0326 for structs.

    Differentiable: ``x_bar = out * (out_bar - sum(out * out_bar))``; m carries no derivative. It is
    0 for -inf.

    Source: Blanchard, Higham, Higham, *Accurately computing the log-sum-exp and softmax functions*,
    IMA Journal of Numerical Analysis 41 (2021).
    """

    def compute(x: TracedArray) -> TracedArray:
        powers = primitive(ops.EXP, below_maximum(x, axis))
        return binary("divide", powers, sum_of(powers, axis, keepdims=True))

    return in_floats(compute, x)


@array_function
def log_softmax(x: Any, axis: Axes = -1) -> Array:
    """The logarithm of the softmax over axes.

    ``x - log(sum(exp(x)))``, computed as ``(x - m) - log(sum(exp(x - m)))`` with the largest
    element m.

    Args:
        x: Numbers, or vectors or matrices of them by component; ints and bools give floats.
        axis: One axis, several, or `None` for all.

    Returns:
        Floats up to 0 in the shape of `x`; -inf for -inf. NaN where an element of the sum is NaN
        or +inf, or all are -inf. Halves are computed in float, and rounded once.

    Raises:
        ShapeError: SR0323 for an axis, SR0326 for structs.

    Differentiable: ``x_bar = out_bar - exp(out) * sum(out_bar)``; m carries no derivative.

    Source: Blanchard, Higham, Higham, *Accurately computing the log-sum-exp and softmax functions*,
    IMA Journal of Numerical Analysis 41 (2021).
    """

    def compute(x: TracedArray) -> TracedArray:
        shifted = below_maximum(x, axis)
        total = sum_of(primitive(ops.EXP, shifted), axis, keepdims=True)
        return binary("subtract", shifted, primitive(ops.LOG, total))

    return in_floats(compute, x)


class _OnArrays:
    """Arithmetic of traced arrays."""

    binary = staticmethod(binary)
    unary = staticmethod(unary)
    primitive = staticmethod(primitive)

    def kept(self, x: TracedArray) -> TracedArray:
        return x


def _applied(formula: formulas.Formula, x: Any) -> TracedArray:
    return in_floats(lambda x: formula(_OnArrays(), x), x)
