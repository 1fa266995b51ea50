"""What `shaderad` says of names that it does not have."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import shaderad as sad
from shaderad.diagnostics.foreign_names import (
    IN_KERNELS,
    LIBRARIES,
    REMEDY_BY_NAME,
    remedy_for,
)
from shaderad.functions import public


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("InOut", "`sad.Out[float]`"),
        ("inout", "reads an array or writes it"),
        ("vec3", "`sad.float3`"),
        ("uvec2", "`sad.uint2`"),
        ("mat44", "`sad.float4x4`"),
        ("f32", "`float`"),
        ("Buffer", "`sad.array(data)`"),
        ("ndrange", "`sad.Index`"),
        ("atomic_add", "`sad.Add[float]`"),
        ("shared", "no memory that threads share"),
        ("shared_array", "`sad.sum`"),
        ("groupshared", "`sad.scan`"),
        ("wave_active_sum", "`total[j] += value`"),
        ("WaveActiveSum", "`sad.Add[float]`"),
        ("warp_reduce", "`sad.Add[float]`"),
        ("ballot", "`sad.compact(x, mask)`"),
        ("atomic_cas", "`sad.scatter`"),
        ("InterlockedCompareExchange", "`sad.Min`"),
        ("thread_idx", "`sad.Index`"),
        ("normalise", "did you mean `normalize`?"),
        ("kernl", "did you mean `kernel`?"),
        ("leaky_relu", "`sad.select(x > 0.0, x, 0.01 * x)`"),
        ("expit", "`sad.sigmoid(x)`"),
    ],
)
def test_a_missing_name_says_what_to_write_instead(name: str, words: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(sad, name)
    assert isinstance(caught.value, sad.UnknownNameError)
    assert caught.value.code == "SR0229"
    assert f"`{name}`" in caught.value.message
    assert words in caught.value.help


def test_an_outlandish_name_gets_no_guess() -> None:
    assert not hasattr(sad, "zyzzyva")
    assert getattr(sad, "zyzzyva", None) is None
    assert remedy_for("zyzzyva", sad.__all__) == ""


def test_remedies_are_for_names_that_are_missing_and_name_what_is_there() -> None:
    assert not [name for name in REMEDY_BY_NAME if hasattr(sad, name)]
    texts = [*REMEDY_BY_NAME.values(), *IN_KERNELS.values()]
    named = {word for text in texts for word in re.findall(r"sad\.(\w+)", text)}
    assert not [name for name in named if not hasattr(sad, name)]
    assert set(IN_KERNELS) <= set(public.__all__)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_name_of_a_library_has_one_row_and_a_remedy(library: str) -> None:
    names = LIBRARIES[library].split()
    assert len(names) == len(set(names))
    assert not [name for name in names if name not in REMEDY_BY_NAME]


A, B = np.array([[0.5, -1.0, 2.0, 3.0], [1.0, 2.0, -3.0, 1.5]], np.float32)
FORMULAS = {
    "expit": 1 / (1 + np.exp(-A)),
    "swish": A / (1 + np.exp(-A)),
    "log_sigmoid": -np.log1p(np.exp(-A)),
    "mse_loss": ((A - B) ** 2).mean(),
    "l1_loss": np.abs(A - B).mean(),
    "inner": A @ B,
    "outer": np.outer(A, B),
    "cummax": np.maximum.accumulate(A),
    "cummin": np.minimum.accumulate(A),
    "square": A * A,
    "power": np.abs(A) ** B,
    "concat": np.concatenate([A, B]),
    "pad": np.pad(A, 1),
    "remainder": np.mod(A, B),
    "isclose": False,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_computes_what_its_name_does_elsewhere(name: str, device: sad.Device) -> None:
    (formula, *_) = re.findall(r"`([^`]*)`", {**REMEDY_BY_NAME, **IN_KERNELS}[name])
    x = sad.array(np.abs(A) if name == "power" else A)
    names = {
        "sad": sad,
        "x": x,
        "y": sad.array(B),
        "a": sad.array(A),
        "b": sad.array(B),
        "tolerance": 1e-6,
    }
    found = eval(formula, names)
    np.testing.assert_allclose(found.numpy(), FORMULAS[name], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mT", "`sad.transpose(x)`"),
        ("prod", "`sad.prod`"),
        ("sin", "`sad.sin`"),
        ("roll", "`sad.roll`"),
        ("flatten", "`sad.reshape(x, -1)`"),
        ("half", "`sad.cast(x, float)`"),
        ("backward", "`sad.grad`"),
        ("zyzzyva", ""),
    ],
)
def test_an_attribute_that_arrays_lack_says_what_to_write(
    name: str, words: str, device: sad.Device
) -> None:
    x = sad.array([1.0, 2.0])
    assert not hasattr(x, name)
    with pytest.raises(sad.UnknownNameError, match="SR0290") as caught:
        getattr(x, name)
    assert f"`{name}`" in caught.value.message
    assert words in caught.value.help
    assert bool(words) == bool(caught.value.help)


def test_a_protocol_that_arrays_lack_is_a_plain_attribute_error(device: sad.Device) -> None:
    with pytest.raises(AttributeError) as caught:
        sad.array([1.0]).__cuda_array_interface__  # pyright: ignore[reportAttributeAccessIssue]
    assert not isinstance(caught.value, sad.Error)


def test_graph_is_the_decorator_whatever_is_imported_before() -> None:
    text = "import shaderad.plan.planning, shaderad as sad; print(callable(sad.graph))"
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, check=True)
    assert found.stdout.split() == [b"True"]


def test_type_checkers_see_the_modules_that_are_searched() -> None:
    tree = ast.parse(Path(sad.__file__).read_text(encoding="utf-8"))
    (block,) = (s for s in tree.body if isinstance(s, ast.If))
    imports = [s for s in block.body if isinstance(s, ast.ImportFrom)]
    starred = {s.module for s in imports if s.names[0].name == "*"}
    # In place of the annotations, which are objects and no types.
    assert starred == {*sad._LATER, sad._FUNCTIONS, "shaderad.language.checked"}
    for module, names in sad._LATER.items():
        assert set(names) == set(import_module(module).__all__), module
    # `render` imports all of shaderad, and is found as a submodule.
    seen = [name.name for s in imports if s.module not in starred for name in s.names]
    assert seen == sorted({*sad._NAMESPACES} - {"render"})


LATER = (
    "shaderad.device",
    "shaderad.arrays.arrays",
    "shaderad.calls",
    "shaderad.execute",
    "shaderad.runtime",
)


def test_importing_shaderad_leaves_devices_and_arrays_for_later() -> None:
    text = "import sys, shaderad; print(*sorted(name for name in sys.modules if '.' in name))"
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, check=True, text=True)
    assert "shaderad.decorators" in found.stdout
    assert not [name for name in found.stdout.split() if name.startswith(LATER)]


def test_each_array_function_is_listed_in_its_file() -> None:
    folder = Path(public.__file__).parent
    modules = [import_module(f"{public.__package__}.{path.stem}") for path in folder.glob("*.py")]
    defined = {
        name
        for module in modules
        for name, thing in vars(module).items()
        if hasattr(thing, "__wrapped__")
        and thing.__module__ == module.__name__
        and not name.startswith("_")
    }
    assert {"roll", "sum", "map", "rotate", "custom_vjp"} <= defined
    assert defined | {"associative_scan"} == set(public.__all__)
    assert set(public.__all__) <= set(sad.__all__)


def test_sizes_and_axes_may_be_lists_at_once_as_in_a_graph(device: sad.Device) -> None:
    def compute(x: sad.Array) -> tuple[sad.Array, ...]:
        y = sad.reshape(x, shape=[2, 2])
        return sad.sum(y, axis=[0, 1]), sad.transpose(y, [1, 0]), sad.broadcast_to(x, [3, 4])

    for found in (compute(sad.array(A)), sad.graph(compute)(sad.array(A))):
        np.testing.assert_allclose(found[0].numpy(), A.sum(), rtol=1e-6)
        np.testing.assert_array_equal(found[1].numpy(), A.reshape(2, 2).T)
        np.testing.assert_array_equal(found[2].numpy(), np.broadcast_to(A, (3, 4)))


def test_names_of_before_do_the_same_and_say_what_to_write(device: sad.Device) -> None:
    x, at = sad.array(A), np.int32([0, 1, 0, 2])
    with pytest.warns(DeprecationWarning, match=r"write `sad\.roll\(x, -by, axis\)`") as told:
        found = sad.rotate(x, 1)
    np.testing.assert_array_equal(found.numpy(), sad.roll(x, -1).numpy())
    np.testing.assert_array_equal(found.numpy(), np.roll(A, -1))
    with pytest.warns(DeprecationWarning, match=r"write `sad\.segment_reduce\(") as also:
        found = sad.histogram(sad.add, 0.0, 3, at, x)
    np.testing.assert_array_equal(found.numpy(), [A[0] + A[2], A[1], A[3]])
    assert {warning.filename for warning in (*told, *also)} == {__file__}
    assert sad.associative_scan is sad.scan


def test_type_checkers_see_every_annotation() -> None:
    checked, annotations = (
        import_module(f"shaderad.language.{name}") for name in ("checked", "annotations")
    )
    assert {*checked.__all__} == {*annotations.__all__, *annotations.TYPES}
