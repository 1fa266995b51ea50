"""``--define``: what it may say, and which kernels it reaches."""

from __future__ import annotations

import pytest

import shaderad as sad
from shaderad.bundle.write.command_options import constants_of, parse_defines


@sad.kernel
def blur(i: sad.Index, x: sad.In[float], radius: sad.Const[int], y: sad.Out[float]):
    y[i] = x[i] * radius


@sad.kernel
def dilate(i: sad.Index, x: sad.In[float], radius: sad.Const[int], y: sad.Out[float]):
    y[i] = x[i] + radius


@sad.kernel
def copy(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i]


KERNELS = {"blur": blur, "dilate": dilate, "copy": copy}


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("N=3", "N", 3),
        ("N=-0x10", "N", -16),
        ("gain=1e-3", "gain", 1e-3),
        ("is_fast=True", "is_fast", True),
        (" blur.N = 3 ", "blur.N", 3),
    ],
)
def test_a_definition_is_a_name_and_a_python_literal(text: str, name: str, value: object) -> None:
    (found,) = parse_defines([text]).items()
    assert found == (name, value)
    assert type(found[1]) is type(value)


@pytest.mark.parametrize(
    "text", ["N", "N=", "=3", "N=three", "3=N", "a b=3", "N=1+", "N=__import__('os')", "blur..N=3"]
)
def test_what_is_no_definition_is_refused(text: str) -> None:
    with pytest.raises(sad.LanguageError) as caught:
        parse_defines([text])
    assert caught.value.code == "SR0706"
    assert f"`{text}`" in caught.value.message


def test_a_name_serves_every_kernel_and_a_longer_one_wins() -> None:
    found = constants_of(KERNELS, {"radius": 2, "dilate.radius": 5})
    assert found == {"blur": {"radius": 2}, "dilate": {"radius": 5}, "copy": {}}


def test_a_constant_without_value_is_refused_at_its_parameter() -> None:
    with pytest.raises(sad.LanguageError) as caught:
        constants_of(KERNELS, {"blur.radius": 2})
    assert caught.value.code == "SR0705"
    assert "`dilate`" in caught.value.message
    span = caught.value.span
    assert span is not None
    assert span.text()[span.column : span.end_column] == "radius: sad.Const[int]"


@pytest.mark.parametrize("name", ["raduis", "copy.radius", "x"])
def test_a_definition_that_reaches_no_kernel_is_refused(name: str) -> None:
    with pytest.raises(sad.LanguageError) as caught:
        constants_of(KERNELS, {"radius": 2, name: 3})
    assert caught.value.code == "SR0707"
    assert f"`{name}`" in caught.value.message
