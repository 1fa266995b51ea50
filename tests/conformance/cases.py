"""``cases.json`` -> cases with NumPy inputs and checks within their tolerances.

The encoding is described in the file's own ``meta.conventions``. Each case was verified in
float64 JAX and by finite differences when the catalogue was made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

DTYPES = {"float": np.float64, "int": np.int32}


@dataclass(frozen=True)
class Tolerance:
    """``|got - expected| <= rtol |expected| + atol_rel max|expected| + atol_abs``, by element."""

    rtol: float
    atol_rel: float
    atol_abs: float

    def check(self, got: Any, expected: Mapping[str, Any], what: str) -> None:
        """Compares with one encoded array; a result of one element may stand for a number."""
        found = np.asarray(got, np.float64)
        shape = tuple(expected["shape"])
        assert found.size == np.prod(shape, dtype=int), f"{what}: shape {found.shape}, not {shape}"
        flat = found.reshape(-1)
        if "digest" in expected:
            self._check_digest(flat, expected["digest"], what)
        else:
            self._compare(flat, decoded(expected).reshape(-1), what)

    def _check_digest(
        self, flat: np.ndarray[Any, Any], digest: Mapping[str, Any], what: str
    ) -> None:
        places, values = zip(*digest["samples"], strict=True)
        self._compare(flat[list(places)], np.array(values), what)
        summary = [flat.sum(), np.square(flat).sum(), np.abs(flat).max()]
        wanted = [digest["sum"], digest["sumsq"], digest["maxabs"]]
        np.testing.assert_allclose(summary, wanted, rtol=self.rtol, err_msg=what)

    def _compare(
        self, found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], what: str
    ) -> None:
        finite = np.abs(wanted[np.isfinite(wanted)])
        atol = self.atol_abs + self.atol_rel * finite.max(initial=0.0)
        np.testing.assert_allclose(found, wanted, rtol=self.rtol, atol=atol, err_msg=what)


@dataclass(frozen=True)
class Case:
    """One computation of the catalogue, as its JSON has it."""

    id: str
    row: Mapping[str, Any]

    @cached_property
    def inputs(self) -> dict[str, np.ndarray[Any, Any]]:
        return {name: decoded(value) for name, value in self.row["inputs"].items()}

    @property
    def differentiable(self) -> list[str]:
        return [name for name, value in self.row["inputs"].items() if value["diff"]]

    @property
    def expected(self) -> Mapping[str, Any]:
        """``primal``, ``vjp``, ``jvp`` and, for some, ``jacobian``."""
        return self.row["expected"]

    def tolerance(self, dtype: str) -> Tolerance:
        by_dtype = self.row["tol"]
        gpu = by_dtype.get(f"{dtype}_gpu")
        return Tolerance(**(gpu or by_dtype[dtype]))


@cache
def all_cases() -> dict[str, Case]:
    """By id, in the order of the file."""
    text = Path(__file__).with_name("cases.json").read_text(encoding="ascii")
    return {row["id"]: Case(row["id"], row) for row in json.loads(text)["cases"]}


def decoded(value: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """An encoded array: nested lists, one number for all elements, or a formula."""
    shape = tuple(value["shape"])
    if "fill" in value:
        return np.full(shape, value["fill"])
    if "gen" in value:
        return _generated(value["gen"], shape)
    if "digest" in value:
        return _of_large_scan(value["digest"], shape)
    # Strings say "nan", "inf", "-inf": NumPy reads them as float() does.
    data = np.array(value["data"], dtype=DTYPES[value.get("dtype", "float")])
    return data.reshape(shape)


def _generated(gen: Mapping[str, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    place = np.arange(np.prod(shape, dtype=int))
    if gen["kind"] == "formula":
        assert gen["formula"] == "k[i] = max(i mod 97 - 94, 0)"
        return np.maximum(place % 97 - 94, 0).astype(np.int32).reshape(shape)
    assert gen["kind"] == "affine_mod"
    steps = (place * gen["mul"] + gen["add"]) % gen["mod"]
    return np.float32(gen["base"] + gen["scale"] * steps).reshape(shape)


def _of_large_scan(digest: Mapping[str, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The one cotangent that the file gives by a formula in a note, and by its sums."""
    found = -0.25 + 0.125 * ((13 * np.arange(shape[0]) + 1) % 5)
    assert found.sum() == digest["sum"]
    assert all(found[place] == value for place, value in digest["samples"])
    return found
