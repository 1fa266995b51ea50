"""Arguments that are no numbers, of another type or form, too many or too few."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pytest

import shaderad as sad
from tests.wrong_calls.kernels import check, evaluate

NUMBERS = "is not an array of numbers"
NOTHING_BUT_NUMBERS = [
    ("square('abc', dim=3)", "found a `str`"),
    ("square(['a', 'b'], dim=2)", "found `<U1` values"),
    ("square(b'abcd', dim=3)", "found a `bytes`"),
    ("square(None, dim=3)", "found a `NoneType`"),
    ("square([None, 1.0], dim=2)", "found a `NoneType` among its values"),
    ("square(np.array([1.0, object()]), dim=2)", "found a `object` among its values"),
    ("square(1j, dim=1)", "found a `complex`"),
    ("square(np.array([1 + 2j]), dim=1)", "found `complex128` values"),
    ("square(np.array([1, 2], 'M8[s]'), dim=1)", "found `datetime64[s]` values"),
    ("square(np.array([1, 2], 'm8[s]'), dim=1)", "found `timedelta64[s]` values"),
    ("square([datetime.datetime(2020, 1, 1)], dim=1)", "found a `datetime` among its values"),
    ("square([decimal.Decimal('1.5')], dim=1)", "found a `Decimal` among its values"),
    ("square([[1.0], [1.0, 2.0]], dim=1)", "found lists of different lengths"),
    ("square({1.0, 2.0}, dim=1)", "found a `set`"),
    ("square({'a': 1.0}, dim=1)", "found a `dict`"),
    ("square((k * 1.0 for k in range(4)), dim=4)", "found a `generator`"),
    ("square(square, dim=1)", "found a `KernelFunction`"),
    ("square(np.ma.array([1.0, 2.0], mask=[0, 1]), dim=2)", "masked elements"),
    ("integers([2**70], dim=1)", "found 1180591620717411303424, which is beyond 64 bits"),
    ("uniforms((1, 2, 3), 1, None, dim=1)", "found a `NoneType`"),
    ("uniforms((1, '2', 3), 1, True, dim=1)", "`v` is not an array"),
    ("cloud(Cloud(None, 2.0), dim=1)", "`c.points` is not an array"),
    ("particles([Particle('a', (1, 2, 3), 4)], dim=1)", "`p.mass` is not an array"),
    ("particles(np.zeros(2, [('mass', 'O'), ('place', 'f4', 3), ('kind', 'i4')]), dim=1)", "`p.m"),
    ("sad.array('abc')", "found a `str`"),
    ("sad.array([Particle(1.0, (1, 2, 3), 4)])", "found a `Particle` among its values"),
]
WRONG = [
    ("square(np.array([True, False]), dim=2)", "SR0353", "holds `bool` values"),
    ("integers([1.5], dim=1)", "SR0353", "`n` takes `int`", "`float64` values"),
    ("integers([True], dim=1)", "SR0353", "`bool` values"),
    ("integers([float('nan')], dim=1)", "SR0353", "`float64` values"),
    ("flags([1], dim=1)", "SR0353", "`b` takes `bool`"),
    ("unsigned([0.5], dim=1)", "SR0353", "`n` takes `uint`"),
    ("square(np.recarray((2,), dtype=[('a', float)]), dim=2)", "SR0353", "`x` takes `float`"),
    ("uniforms((1, 2, 3), 1.5, True, dim=1)", "SR0353", "`n` takes `int`"),
    ("uniforms((1, 2, 3), 1, 1, dim=1)", "SR0353", "`b` takes `bool`"),
    ("integers([2**31], dim=1)", "SR0354", "2147483648, which `int` cannot hold"),
    ("integers(np.array([2**32 - 1], np.uint32), dim=1)", "SR0354", "4294967295"),
    ("unsigned([-1], dim=1)", "SR0354", "-1, which `uint` cannot hold"),
    ("square(np.array([1e300]), dim=1)", "SR0354", "1e+300"),
    ("halves([1e6], dim=1)", "SR0354", "1000000.0, which `half` cannot hold"),
    ("uniforms((1, 2, 1e40), 1, True, dim=1)", "SR0354", "`v` holds 1e+40"),
    ("vectors([[1.0, 2.0]], dim=1)", "SR0352", "`float3`, with trailing axes (3,)", "(1, 2)"),
    ("vectors(np.zeros((2, 3, 1)), dim=1)", "SR0352", "(2, 3, 1)"),
    ("uniforms((1, 2), 1, True, dim=1)", "SR0352", "its shape is (2,)"),
    ("particles([Particle(1.0, (1, 2), 4)], dim=1)", "SR0352", "`p.place`"),
    ("vectors([1.0, 2.0, 3.0], dim=1)", "SR0368", "`In[float3]`, which has 1 axis", "shape ()"),
    ("square(np.zeros((2, 2)), dim=4)", "SR0368", "found the shape (2, 2)"),
    ("square(3.0, dim=1)", "SR0368", "found the shape ()"),
    ("particles(PARTICLE, dim=1)", "SR0368", "`p` is `In[Particle]`"),
    ("grid(np.zeros(6), dim=(2, 3))", "SR0368", "which has 2 axes", "(6,)"),
    ("uniforms(sad.array(X), 1, True, dim=1)", "SR0367", "device array of `float`"),
    ("square(sad.array([1, 2]), dim=2)", "SR0367", "device array of `int` with shape (2,)"),
    ("uniforms((1, 2, 3), [1, 2], True, dim=1)", "SR0357", "one `int` for the whole", "(2,)"),
    ("particles({'mass': [1.0]}, dim=1)", "SR0355", "fields mass, place, kind", "found mass"),
    ("particles([1.0, 2.0], dim=1)", "SR0355", "found a `float`"),
    ("particles([PARTICLE, None], dim=2)", "SR0355", "found a `NoneType`"),
    ("one_particle(5.0, dim=1)", "SR0355", "`p` takes `Particle`"),
    ("one_particle({'mass': 1.0, 'place': (1, 2, 3)}, dim=1)", "SR0355", "found mass, place"),
    ("particles({'mass': [1.0], 'place': [[1, 2, 3]], 'kind': [1, 2]}, dim=1)", "SR0356",
     "`kind` has the shape (2,)", "before it (1,)"),
    ("cloud({'points': [[1.0, 2.0, 3.0]]}, dim=1)", "SR0369", "`c` has no field `gain`"),
    ("cloud(None, dim=1)", "SR0369", "no field `points`", "found a `NoneType`"),
    ("cloud(PARTICLE, dim=1)", "SR0355", "the fields points, gain", "`Particle` with"),
    ("square(X, X, dim=4)", "SR0363", "takes the arguments (x)", "found 2 positional ones"),
    ("square(dim=4)", "SR0364", "a call of `square` lacks x"),
    ("square(X, y=X, dim=4)", "SR0365", "no parameter `y` to pass", "takes (x)"),
    ("square(X, i=3, dim=4)", "SR0365", "no parameter `i` to pass"),
    ("square(X, Dim=4)", "SR0365", "no parameter `Dim` to pass"),
    ("square(X, x=X, dim=4)", "SR0366", "`x` is given twice"),
    ("constant(None, dim=1)", "SR0227", "found a `NoneType`", "^n: sad.Const[int]"),
    ("constant(sad.array(5), dim=1)", "SR0227", "found a `Array`", "^n: sad.Const[int]"),
    ("sad.array([1.0], dtype='nonsense')", "SR0358", "`'nonsense'` is not an element type"),
    ("sad.array([1.0], dtype=complex)", "SR0358", "complex"),
    ("sad.array([1.0], dtype=Cloud)", "SR0358", "Cloud"),
    ("sad.array(np.broadcast_to(np.float32(1), 2**33))", "SR0362", "8589934592 elements"),
]  # fmt: skip
VALUES = [
    ("sad.float3('a', 1, 2)", "SR0313", "`float3` cannot be made from a `str`"),
    ("sad.float3(None)", "SR0313", "from a `NoneType`"),
    ("sad.float3([1, [2, 3]])", "SR0313", "from a `list`"),
    ("sad.float3(1, 2)", "SR0313", "from 2 numbers", "3 numbers, or one for all"),
    ("sad.int2(1j)", "SR0313", "from a `complex`"),
    ("sad.sin('a')", "SR0312", "`sin` does not take `str`"),
    ("sad.max(1.0, None)", "SR0312", "`max` does not take `float`, `NoneType`"),
    ("sad.min()", "SR0231", "arguments for `min`", "found 0"),
    ("sad.In[float]()", "SR0301", "it makes no values"),
]
ACCEPTED = [
    "square(np.arange(8, dtype=np.float32)[::2], dim=4)",
    "square(np.arange(8, dtype=np.float32)[::-1], dim=8)",
    "square(np.arange(8.0).reshape(4, 2)[:, 1], dim=4)",
    "square(np.broadcast_to(np.float32(2), 4), dim=4)",
    "square(np.arange(4, dtype='>f4'), dim=4)",
    "square(np.arange(4, dtype=np.float16), dim=4)",
    "square(np.arange(4, dtype=np.longdouble), dim=4)",
    "square(range(4), dim=4)",
    "square(np.ma.array([1.0, 2.0]), dim=2)",
    "square([], dim=0)",
    "vectors([], dim=0)",
    "vectors(np.arange(6.0).reshape(3, 2).T, dim=2)",
    "grid(np.asfortranarray(np.arange(6.0).reshape(2, 3)), dim=(2, 3))",
    "integers([-(2**31)], dim=1)",
    "unsigned([2**32 - 1], dim=1)",
    "square(np.array([float('nan'), float('inf')]), dim=2)",
]
MODULES = {"datetime": datetime, "decimal": decimal}


@pytest.mark.parametrize(("text", "found"), NOTHING_BUT_NUMBERS, ids=lambda t: t)
def test_what_is_no_number_is_named(text: str, found: str, device: sad.Device) -> None:
    check(text, "SR0351", NUMBERS, found, **MODULES)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda w: w[0])
def test_numbers_that_do_not_fit_are_named(wrong: tuple[str, ...], device: sad.Device) -> None:
    check(*wrong)


@pytest.mark.parametrize("wrong", VALUES, ids=lambda w: w[0])
def test_values_on_the_host_are_made_of_numbers(wrong: tuple[str, ...]) -> None:
    check(*wrong)


@pytest.mark.parametrize("text", ACCEPTED)
def test_unusual_but_right_arguments_work(text: str, device: sad.Device) -> None:
    given, _, call = text.partition("(")[2].rpartition(", dim=")
    exact = np.asarray(eval(given, {"np": np}))
    found = evaluate(text, {}).numpy()
    if text.startswith("square"):
        exact = exact.astype(np.float32) ** 2
    elif text.startswith("vectors"):
        exact = exact.reshape(-1, 3)[:, 0] if exact.size else exact
    np.testing.assert_array_equal(found, exact)
    assert call


def test_read_only_arrays_are_read_and_left_alone(device: sad.Device) -> None:
    x = np.arange(4, dtype=np.float32)
    x.flags.writeable = False
    found = evaluate("square(x, dim=4)", {"x": x}).numpy()
    np.testing.assert_array_equal(found, x * x)
    found[0] = 5.0  # the result is the caller's own
    _, pullback = evaluate("sad.vjp(square, x, dim=4)", {"x": x})
    np.testing.assert_array_equal(pullback(x)[0].numpy(), 2 * x * x)
