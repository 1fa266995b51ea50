"""`sad.Const`: numbers and enums that are compiled in, and what is refused in their place."""

from __future__ import annotations

from enum import Enum, IntEnum, IntFlag
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.decorators import KernelFunction
from shaderad.ir.printer import kernel_text


class Filter(IntEnum):
    NEAREST = 0
    LINEAR = 1


class Wrap(Enum):
    CLAMP = 1
    REPEAT = 2


class Gamma(Enum):
    LINEAR = 1
    DISPLAY = 2.25


class Channels(IntFlag):
    RED = 1
    GREEN = 2


@sad.kernel
def by_number(i: sad.Index, n: sad.Const[int], y: sad.Out[float]):
    y[i] = 10.0 if n == Filter.LINEAR else 20.0


@sad.kernel
def by_truth(i: sad.Index, n: sad.Const[bool], y: sad.Out[float]):
    y[i] = 10.0 if n else 20.0


@sad.kernel
def by_real(i: sad.Index, n: sad.Const[float], y: sad.Out[float]):
    y[i] = n * 4.0


@sad.kernel
def by_enum(i: sad.Index, n: sad.Const[Wrap], y: sad.Out[float]):
    y[i] = 10.0 if n == Wrap.CLAMP else float(n.value)


@sad.kernel
def by_gamma(i: sad.Index, n: sad.Const[Gamma], y: sad.Out[float]):
    y[i] = n.value * 4.0


@sad.kernel
def by_flags(i: sad.Index, n: sad.Const[Channels], y: sad.Out[float]):
    y[i] = 10.0 if (n & Channels.GREEN) != 0 else 20.0


@sad.function
def wrapped(x: float, n: sad.Const[Wrap]) -> float:
    return x + 1.0 if n == Wrap.CLAMP else x + 2.0


@sad.kernel
def by_function(i: sad.Index, n: sad.Const[Wrap], y: sad.Out[float]):
    y[i] = wrapped(3.0, n) + wrapped(4.0, Wrap.REPEAT)


@sad.kernel
def by_wrong_enum(i: sad.Index, y: sad.Out[float]):
    y[i] = wrapped(3.0, Filter.LINEAR)


@pytest.mark.parametrize(
    ("kernel", "value", "wanted"),
    [
        (by_number, 1, "10.0"),
        (by_number, Filter.LINEAR, "10.0"),
        (by_number, Filter.NEAREST, "20.0"),
        (by_number, np.int64(1), "10.0"),
        (by_truth, True, "10.0"),
        (by_truth, np.False_, "20.0"),
        (by_real, 2, "8.0"),
        (by_real, 2.5, "10.0"),
        (by_real, Gamma.DISPLAY, "9.0"),
        (by_real, np.float32(0.5), "2.0"),
        (by_enum, Wrap.CLAMP, "10.0"),
        (by_enum, Wrap.REPEAT, "2.0"),
        (by_enum, 1, "10.0"),
        (by_gamma, Gamma.LINEAR, "4.0"),
        (by_gamma, Gamma.DISPLAY, "9.0"),
    ],
)
def test_a_constant_is_folded_into_the_kernel(
    kernel: KernelFunction, value: Any, wanted: str
) -> None:
    assert f"= {wanted}" in kernel_text(kernel.specialise({"n": value}))


def test_flags_of_an_enum_combine() -> None:
    made = kernel_text(by_flags.specialise({"n": Channels.RED | Channels.GREEN}))
    assert made != kernel_text(by_flags.specialise({"n": Channels.RED}))


@pytest.mark.parametrize(
    ("kernel", "value", "code", "words"),
    [
        (by_number, "1", "SR0227", "`sad.Const[int]`"),
        (by_number, None, "SR0227", "a `NoneType`"),
        (by_number, np.ones(3), "SR0227", "a `ndarray`"),
        (by_number, (1, 2), "SR0227", "a `tuple`"),
        (by_number, 2.0, "SR0303", "found `2.0`"),
        (by_number, True, "SR0303", "found `True`"),
        (by_number, 2**31, "SR0306", "-2147483648 ... 2147483647"),
        (by_truth, 1, "SR0303", "found `1`"),
        (by_enum, 7, "SR0228", "`Wrap.CLAMP`, `Wrap.REPEAT`"),
        (by_enum, Filter.LINEAR, "SR0228", "not a member of `Wrap`"),
        (by_enum, "CLAMP", "SR0227", "`sad.Const[Wrap]`"),
    ],
)
def test_what_is_no_such_constant_is_refused_at_the_parameter(
    kernel: KernelFunction, value: object, code: str, words: str
) -> None:
    with pytest.raises(sad.LanguageError) as caught:
        kernel.specialise({"n": value})
    assert caught.value.code == code
    assert words in str(caught.value)
    span = caught.value.span
    assert span is not None
    assert span.text()[span.column : span.end_column].startswith("n: sad.Const[")


def test_functions_take_enums_as_kernels_do() -> None:
    made = kernel_text(by_function.specialise({"n": Wrap.CLAMP}))
    assert made != kernel_text(by_function.specialise({"n": Wrap.REPEAT}))
    with pytest.raises(sad.LanguageError, match="not a member of `Wrap`"):
        by_wrong_enum.specialise({})
