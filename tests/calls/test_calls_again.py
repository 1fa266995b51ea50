"""Calls that are like an earlier one find it again, and only then."""

from __future__ import annotations

import gc
import itertools
import weakref
from typing import Any

import numpy as np
import pytest

import shaderad as sad

DATA = np.linspace(0.5, 2.0, 12, dtype=np.float32)


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], factor: float, y: sad.Out[float]):
    y[i] = factor * x[i]


@sad.kernel
def shifted(i: sad.Index, x: sad.In[float], by: int, y: sad.Out[float]):
    y[i] = x[i + by]


@sad.kernel
def counts(i: sad.Index, x: sad.In[float], y: sad.Add[float]):
    y[i % 2] += x[i]


# -- graphs -------------------------------------------------------------------------------------


def test_arguments_in_trees_are_found_again(device: sad.Device) -> None:
    traces = itertools.count()  # its state is none of what a trace depends on

    def of_tree(line: dict[str, Any], points: list[Any]) -> Any:
        next(traces)
        return {"y": line["slope"] * points[0] + line["offset"], "x": points}

    graph = sad.graph(of_tree)
    with device:
        x = sad.array(DATA)
        for k in range(3):
            line = {"slope": sad.array(2.0 + k), "offset": sad.array(1.0)}
            found = graph(line, [x])
            np.testing.assert_allclose(found["y"].numpy(), (2.0 + k) * DATA + 1.0, rtol=1e-6)
            np.testing.assert_array_equal(found["x"][0].numpy(), DATA)
    assert next(traces) == 1


def test_a_dict_in_another_order_keeps_its_names(device: sad.Device) -> None:
    graph = sad.graph(lambda pair: pair["a"] - 2.0 * pair["b"])
    with device:
        a, b = sad.array(DATA), sad.array(DATA[::-1].copy())
        for pair in ({"a": a, "b": b}, {"b": b, "a": a}, {"a": b, "b": a}):
            expected = pair["a"].numpy() - 2.0 * pair["b"].numpy()
            np.testing.assert_allclose(graph(pair).numpy(), expected, rtol=1e-6)


def test_leaves_that_are_no_arrays_decide(device: sad.Device) -> None:
    graph = sad.graph(lambda x, how: sad.sin(x) if how == "sin" else -x)
    with device:
        x = sad.array(DATA)
        for how in ("sin", "minus", "sin", None, "minus"):
            expected = np.sin(DATA) if how == "sin" else -DATA
            np.testing.assert_allclose(graph(x, how).numpy(), expected, rtol=1e-5)


def test_more_arrays_other_shapes_and_types_are_traced_again(device: sad.Device) -> None:
    graph = sad.graph(lambda *xs: [x + 1 for x in xs])
    with device:
        whole, ints = sad.array(DATA), sad.array(np.arange(5))
        one = sad.array(DATA.reshape(3, 4))
        for xs in ((whole,), (whole, one), (one, whole), (ints, whole), (whole, one), ()):
            for x, y in zip(xs, graph(*xs), strict=True):
                np.testing.assert_allclose(y.numpy(), x.numpy() + 1, rtol=1e-6)


def test_a_captured_array_in_a_tuple_may_change_its_shape(device: sad.Device) -> None:
    table = np.arange(12, dtype=np.float32)
    captured = (table, "name")
    graph = sad.graph(lambda x: x + captured[0])
    with device:
        x = sad.array(DATA)
        np.testing.assert_allclose(graph(x).numpy(), DATA + table, rtol=1e-6)
        table.shape = (3, 4)
        y = sad.array(DATA.reshape(3, 4))
        np.testing.assert_allclose(graph(y).numpy(), DATA.reshape(3, 4) + table, rtol=1e-6)


def test_what_a_gradient_is_taken_of_is_read_through_the_transform(device: sad.Device) -> None:
    power = 2

    def loss(x: Any) -> Any:
        return sad.sum(x**power)

    graph = sad.graph(sad.value_and_grad(loss))
    with device:
        x = sad.array(DATA)
        for power in (2, 3, 2):
            value, gradient = graph(x)
            np.testing.assert_allclose(value.numpy(), (DATA**power).sum(), rtol=1e-5)
            np.testing.assert_allclose(gradient.numpy(), power * DATA ** (power - 1), rtol=1e-5)


# -- kernels ------------------------------------------------------------------------------------


def test_a_kernel_at_other_shapes_and_extents_in_turn(device: sad.Device) -> None:
    with device:
        for n, dim in ((12, None), (5, None), (12, 7), (12, None), (5, (5,)), (12, 7)):
            y = scaled(sad.array(DATA[:n]), 3.0, dim=dim).numpy()
            np.testing.assert_allclose(y, 3.0 * DATA[: dim if isinstance(dim, int) else n])


def test_results_have_the_shapes_that_each_call_asks_for(device: sad.Device) -> None:
    with device:
        x = sad.array(DATA)
        for n in (2, 5, 2):
            y = counts(x, dim=12, shapes={"y": n}).numpy()
            assert y.shape == (n,)
            np.testing.assert_allclose(y[:2], [DATA[::2].sum(), DATA[1::2].sum()], rtol=1e-6)


def test_an_index_is_in_range_by_the_numbers_of_each_call(device: sad.Device) -> None:
    with device:
        x = sad.array(DATA)
        for by in (0, 1, 0, -1):
            y = shifted(x, by, dim=11)
            if by >= 0:
                np.testing.assert_array_equal(y.numpy(), DATA[by : by + 11])
                continue
            with pytest.raises(sad.BoundsError, match="SR0660"):
                device.synchronize()


def test_options_of_one_call_do_not_reach_the_next(device: sad.Device) -> None:
    with device:
        x = sad.array(np.array([1.0, np.nan], np.float32))
        for checks in (None, "nan", None):
            y = scaled(x, 2.0, checks=checks)
            if checks is None:
                assert np.isnan(y.numpy()[1])
                continue
            with pytest.raises(sad.BoundsError, match="SR0666"):
                y.numpy()


def test_a_device_forgets_the_settings_of_a_kernel_that_is_gone(device: sad.Device) -> None:
    @sad.kernel
    def next_one(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = x[i] + x[i]

    @sad.kernel
    def squared(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = x[i] * x[i]

    with device:
        np.testing.assert_allclose(squared(sad.array(DATA)).numpy(), DATA**2, rtol=1e-6)
        kernel = weakref.ref(squared.specialise({}))
        del squared
        gc.collect()
        next_one(sad.array(DATA))  # what is gone is forgotten when something new is kept
        gc.collect()
    assert kernel() is None
