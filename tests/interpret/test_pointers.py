"""Pointers in the interpreter: reads, gradients behind them, stores of own derivatives, reports."""

from __future__ import annotations

from typing import Any

import numpy as np

from shaderad.decorators import KernelFunction
from shaderad.interpret import KernelRun, interpret
from tests.arrays.test_trees import render, rendered, seed

THREADS = 7
WEIGHT = np.linspace(1.0, 2.0, THREADS)
BAR = np.linspace(-1.0, 3.0, THREADS)
EXPOSURE = 0.5
DATA = np.random.default_rng(0).normal(size=(5, 2, 4))
"""A mesh of three triangles, then one of two."""


def run_of(kernel: KernelFunction, data: np.ndarray[Any, Any], counts: list[int]) -> KernelRun:
    """A launch with the pools that a host would lay out; `counts` are what the pointers say."""
    return interpret(
        kernel.specialise({}),
        dim=THREADS,
        arrays={
            "scene_meshes_target": {
                "triangles": {"base": [0, 3], "count": [3, 2]},
                "count": counts,
            },
            "scene_meshes_triangles_target": {"v0": data[:, 0], "v1": data[:, 1]},
            "weight": WEIGHT,
        },
        uniforms={
            "scene_meshes": {"base": 0, "count": 2},
            "scene_count": 2,
            "scene_exposure": EXPOSURE,
        },
    )


def values(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return rendered([data[:3], data[3:]], WEIGHT, EXPOSURE)


def test_reads_and_derivatives_behind_pointers_are_those_of_the_formula() -> None:
    run = run_of(render, DATA, [3, 2])
    np.testing.assert_allclose(run.outputs["out"], values(DATA), rtol=1e-12)
    assert run.reports == []
    move = np.random.default_rng(1).normal(size=DATA.shape)
    dots = run.push({"scene_meshes_triangles_target": {"v0": move[:, 0], "v1": move[:, 1]}})
    h = 1e-6
    expected = (values(DATA + h * move) - values(DATA - h * move)) / (2 * h)
    np.testing.assert_allclose(dots["out"], expected, rtol=1e-6, atol=1e-8)
    found = run.pull({"out": BAR})["scene_meshes_triangles_target"]
    along = np.sum(found["v0"] * move[:, 0]) + np.sum(found["v1"] * move[:, 1])
    np.testing.assert_allclose(along, np.dot(BAR, dots["out"]), rtol=1e-10)


def test_an_own_backward_adds_and_stores_behind_pointers() -> None:
    found = run_of(seed, DATA, [3, 2]).pull({"out": BAR})
    total = np.dot(WEIGHT, BAR)
    v0, v1 = (found["scene_meshes_triangles_target"][name] for name in ("v0", "v1"))
    expected = np.zeros((5, 4))
    expected[0, 0] = total
    expected[3] = DATA[0, 0]
    np.testing.assert_allclose(v0, expected)
    assert np.argwhere(v1).tolist() == [[2, 2], [2, 3]]
    np.testing.assert_allclose(v1[2, 2:], [-2.0 * total, -total])
    np.testing.assert_allclose(found["scene_exposure"], 3.0 * total)


def test_an_index_past_a_pointer_reads_zero_and_is_reported_under_its_path() -> None:
    run = run_of(render, DATA, [4, 2])
    np.testing.assert_allclose(run.outputs["out"], values(DATA), rtol=1e-12)
    first = run.reports[0]
    assert (first.name, first.index, first.length) == ("scene.meshes.triangles", 3, 3)
