"""Identifiers: the user's own wherever possible, never Slang's or the library's."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad.decorators import KernelFunction
from shaderad.interpret import interpret
from shaderad.ir.walk import made_name
from shaderad.lower.write.names import abbreviated, imported_modules, member_names, module_names


def test_a_free_name_stays_as_it_is() -> None:
    assert module_names().make("albedo") == "albedo"


@pytest.mark.parametrize("name", ["float", "float2x2", "This", "outside", "load", "at", "sin"])
def test_names_of_slang_and_the_library_get_an_underscore(name: str) -> None:
    assert module_names().make(name) == f"{name}_"
    assert module_names().child().make(name) == f"{name}_"


def test_a_name_taken_twice_is_numbered() -> None:
    names = module_names()
    assert [names.make("x") for _ in range(3)] == ["x", "x_", "x_2"]


def test_a_key_keeps_its_name() -> None:
    names = module_names()
    assert names.make("x", key=1) == names.make("x", key=1) == names.of(1)
    assert names.make("x", key=2) != names.of(1)


def test_no_scope_sees_one_name_twice_whatever_was_named_first() -> None:
    names = module_names()
    names.make("x")
    child, other = names.child(), names.child()
    assert child.make("x") == "x_"
    assert child.make("y") == other.make("y") == "y"
    assert names.make("y") == "y_"
    assert child.make("y_") == "y_2"


def test_what_the_text_declares_by_itself_hides_no_function() -> None:
    names = module_names()
    assert names.child().make("index") == "index"
    assert names.make("index") == "index_"


def test_a_field_may_be_called_like_a_function_and_not_like_a_type() -> None:
    fields = member_names(["Ray"])
    given = ("step", "distance", "read", "uint", "Gradient", "Ray", "IReadable")
    wanted = ["step", "distance", "read_", "uint_", "Gradient_", "Ray_", "IReadable_"]
    assert [fields.make(name, name) for name in given] == wanted


def test_made_up_names_are_no_names_of_the_users_and_read_like_what_they_are() -> None:
    made = made_name("broke", {"broke'"})
    assert not made.isidentifier()
    assert module_names().make(made) == "broke"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("a__b", "a_b"), ("_", "value"), ("gr\u00f6\u00dfe", "gruue"), ("_x", "x")],
)
def test_what_targets_cannot_spell_is_changed(given: str, wanted: str) -> None:
    assert module_names().child().make(given) == wanted


def test_long_names_are_cut_and_stay_apart() -> None:
    names = module_names()
    first, second = names.make("a" * 5000 + "b"), names.make("a" * 5000 + "c")
    assert first != second
    assert max(len(first), len(second)) <= 90


def test_the_end_of_a_long_name_is_kept() -> None:
    modes = [abbreviated("a" * 5000 + f"_{mode}") for mode in ("primal", "bwd")]
    assert [one.rpartition("_")[2] for one in modes] == ["primal", "bwd"]
    assert abbreviated("a" * 60 + "_bwd") == "a" * 60 + "_bwd"


def test_names_of_resources_end_in_no_underscore() -> None:
    names = module_names()
    names.make("x_words")
    assert names.make_global("report_words") == "report_words_2"
    assert names.make_global("x_words") == "x_words_2"
    assert names.make_global("y_words") == "y_words"


@sad.kernel
def named_as_the_entry_point_names(
    i: sad.Index, x: sad.In[float], index: float, total: sad.Add[float], out: sad.Out[float]
):
    total[0] += x[i] * index
    out[i] = x[i] + index


@pytest.mark.gpu
def test_a_uniform_on_the_device_may_bear_the_name_of_the_threads_number(
    device: sad.Device,
) -> None:
    x = np.linspace(0.0, 1.0, 5, dtype=np.float32)
    with device:
        results, pullback = sad.vjp(
            named_as_the_entry_point_names, x, sad.array(np.float32(0.5)), dim=5,
            shapes={"total": 1},
        )  # fmt: skip
        total, out = (result.numpy() for result in results)
        to_x, to_index = pullback((np.float32([2.0]), np.ones(5, np.float32)))
        np.testing.assert_allclose(total, [1.25])
        np.testing.assert_allclose(out, x + 0.5)
        np.testing.assert_allclose(to_x.numpy(), np.full(5, 2.0))
        assert float(to_index) == pytest.approx(2.0 * 2.5 + 5.0)


@sad.kernel
def named_as_lowering_names_its_flags(
    i: sad.Index, x: sad.In[float], broke: float, returned: float, out: sad.Out[float]
):
    total = 0.0
    for k in range(4):
        if x[i] < float(k):
            break
        total += broke * x[i]
    if total > 100.0:
        out[i] = returned
        return
    out[i] = total + returned


@sad.kernel
def named_as_tags_and_buffers(
    i: sad.Index, x: sad.In[float], x_in: float, report: sad.In[float], out: sad.Out[float]
):
    x_words = x[i] * x_in
    out_store = x[i // 2] * report[i]
    x_gradient = x_words * out_store
    out[i] = x_gradient * x_words


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [
        (named_as_lowering_names_its_flags,
         (np.float32([-1.0, 0.5, 2.5, 9.0]), np.float32(2.0), np.float32(3.0))),
        (named_as_tags_and_buffers,
         (np.float32([0.5, 1.5, -2.0, 3.0]), np.float32(1.5), np.float32([2.0, 1.0, 0.5, -1.0]))),
    ],
)  # fmt: skip
def test_values_and_gradients_are_those_of_the_users_names(
    device: sad.Device, kernel: KernelFunction, arguments: tuple[np.ndarray, ...]
) -> None:
    bars = {"out": np.float32([1.0, -2.0, 0.5, 1.0])}
    names = [p.name for p in kernel.specialise({}).parameters if p.name != "out"]
    run = interpret(kernel.specialise({}), dim=4, arrays=dict(zip(names, arguments, strict=True)))
    wanted = run.pull(bars)
    with device:
        out, pullback = sad.vjp(kernel, *arguments, dim=4)
        np.testing.assert_allclose(out.numpy(), run.outputs["out"], rtol=1e-6)
        for name, gradient in zip(names, pullback(bars["out"]), strict=True):
            np.testing.assert_allclose(gradient.numpy(), wanted[name], rtol=1e-6)


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("let y = safePow(x, 2.5f);", ("safe_math",)),
        ("let y = float3(1.0f) * powi<3>(x);", ("safe_math",)),
        ("let k = floorModulo<Report>(i, 3, 1);", ()),
        ("let y = floorModulo(x, 3.0f);", ("safe_math",)),
        ("let y = load<float, X>(uint(i));", ()),
        ("public extension float : IElement", ()),
        ("let y = doubleSin(x);", ("safe_math", "double_math")),
    ],
)
def test_a_module_is_imported_where_a_line_names_something_of_it(
    line: str, needed: tuple[str, ...]
) -> None:
    assert imported_modules([line]) == needed
