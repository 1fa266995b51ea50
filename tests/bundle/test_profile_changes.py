"""`--atomics` and `--features`: what targets are made to use, in code and manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.bundle.profile_changes import changed_profiles
from shaderad.bundle.profiles import PROFILES, profiles_of
from tests.bundle.conftest import SOURCE


def changed(targets: str, atomics: str = "", features: str = "") -> dict[str, tuple[str, bool]]:
    """Atomics and subgroups of each target."""
    found = changed_profiles(
        profiles_of([targets]), [atomics] if atomics else [], [features] if features else []
    )
    return {one.name: (one.atomics, one.has_subgroups) for one in found}


def test_targets_are_as_the_table_has_them_where_nothing_is_asked() -> None:
    assert changed(",".join(PROFILES)) == {
        "spirv": ("native", True),
        "spirv-core": ("exchange", False),
        "hlsl": ("compare-exchange", True),
        "wgsl": ("exchange", False),
        "metal": ("native", True),
    }


def test_a_word_goes_for_all_targets_and_one_with_a_target_wins_there() -> None:
    assert changed("spirv,hlsl", "exchange, spirv:compare-exchange") == {
        "spirv": ("compare-exchange", True),
        "hlsl": ("exchange", True),
    }
    assert changed("spirv,wgsl", features="no-subgroups,wgsl:subgroups") == {
        "spirv": ("native", False),
        "wgsl": ("exchange", True),
    }


def test_float_atomics_are_native_atomics_by_another_name() -> None:
    assert changed("spirv-core", features="float-atomics") == {"spirv-core": ("native", False)}
    assert changed("spirv,hlsl", features="no-float-atomics") == {
        "spirv": ("exchange", True),
        "hlsl": ("compare-exchange", True),
    }
    assert changed("spirv", "compare-exchange", "no-float-atomics") == {
        "spirv": ("compare-exchange", True)
    }


@pytest.mark.parametrize(
    ("targets", "atomics", "features", "code", "words"),
    [
        ("spirv", "cas", "", "SR0740", ("`cas`", "`compare-exchange`")),
        ("spirv", "spirv:", "", "SR0740", ("``",)),
        ("spirv", "", "half", "SR0741", ("`half`", "`subgroups`")),
        ("spirv", "", "no-waves", "SR0741", ("`no-waves`",)),
        ("spirv,wgsl", "metal:native", "", "SR0742", ("`metal`", "`wgsl`")),
        ("spirv,wgsl", "native", "", "SR0743", ("`wgsl`", "`--atomics native`")),
        ("hlsl", "", "float-atomics", "SR0743", ("`hlsl`", "`compare-exchange`")),
        ("metal", "compare-exchange", "", "SR0743", ("`metal`", "`exchange`")),
        ("wgsl", "wgsl:compare-exchange", "", "SR0743", ("`wgsl`", "`exchange`")),
        ("spirv", "native,exchange", "", "SR0744", ("`--atomics native`",)),
        ("spirv", "exchange", "float-atomics", "SR0744", ("`--features float-atomics`",)),
        ("spirv", "native", "no-float-atomics", "SR0744", ("`spirv`",)),
        ("wgsl", "", "wgsl:subgroups,wgsl:no-subgroups", "SR0744", ("`wgsl`",)),
    ],
)
def test_what_a_target_cannot_have_is_refused_with_what_it_can(
    targets: str, atomics: str, features: str, code: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(sad.CompileError) as caught:
        changed(targets, atomics, features)
    assert caught.value.code == code
    for word in words:
        assert word in str(caught.value)


def built(folder: Path, **options: Any) -> dict[str, Any]:
    """The manifest of a build of `splat`, which validators accept."""
    sad.build(f"{SOURCE}:splat", folder, **options)
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def test_code_and_manifest_follow_what_was_asked(tmp_path: Path) -> None:
    manifest = built(
        tmp_path / "out",
        targets=("spirv", "hlsl", "wgsl"),
        atomics="exchange",
        features=("no-subgroups", "wgsl:subgroups"),
    )
    assert manifest["targets"] == {
        "spirv": {"atomics": "exchange", "features": [], "storage_buffer_limit": 16},
        "hlsl": {"atomics": "exchange", "features": [], "storage_buffer_limit": 16},
        "wgsl": {"atomics": "exchange", "features": ["subgroups"], "storage_buffer_limit": 8},
    }
    (kernel,) = manifest["kernels"]
    used = {
        target: {f for one in programs["backward"] for f in one["features"]}
        for target, programs in kernel["targets"].items()
    }
    assert used == {"spirv": {"half"}, "hlsl": {"half"}, "wgsl": {"half", "subgroups"}}
    hlsl = (tmp_path / "out/hlsl/splat_bwd.hlsl").read_text(encoding="utf-8")
    assert "InterlockedExchange" in hlsl
    assert "InterlockedCompareExchange" not in hlsl


@pytest.mark.gpu
@pytest.mark.parametrize(
    "options",
    [
        {"targets": "spirv", "atomics": "exchange"},
        {"targets": "spirv-core", "features": "float-atomics,subgroups"},
        {"targets": "wgsl", "features": "subgroups"},
    ],
    ids=str,
)
def test_gradients_are_the_same_however_they_are_summed(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    source = tmp_path / "means.py"
    source.write_text(MEANS, encoding="utf-8")
    sad.build(source, tmp_path / "out", **options)
    try:
        device = sad.open_device("wgpu")
    except sad.DeviceError as failure:
        pytest.skip(failure.message)
    draw = np.random.default_rng(8)
    x, bins, bars = draw.normal(size=500), draw.integers(0, 3, 500), np.array([1.0, -2.0, 0.5])
    with device:
        loaded = sad.load(tmp_path / "out")
        total, pullback = sad.vjp(loaded.squares, x, bins, 1.5, dim=500, shapes={"total": 3})
        x_bar, _, gain_bar = pullback(bars)
        squares = x * x
        expected = [1.5 * squares[bins == k].sum() for k in range(3)]
        np.testing.assert_allclose(total.numpy(), expected, rtol=1e-5)
        np.testing.assert_allclose(x_bar.numpy(), 3.0 * x * bars[bins], rtol=1e-5)
        np.testing.assert_allclose(float(gain_bar), (squares * bars[bins]).sum(), rtol=1e-4)
    device.close()


@pytest.mark.gpu
def test_a_driver_that_dies_of_exchanges_gets_none(tmp_path: Path) -> None:
    source = tmp_path / "means.py"
    source.write_text(MEANS, encoding="utf-8")
    sad.build(source, tmp_path / "out", targets="spirv", atomics="exchange", validate=False)
    try:
        device = sad.open_device("slangpy")
    except sad.DeviceError as failure:
        pytest.skip(failure.message)
    if device.capabilities.kind != "software":
        pytest.skip("other drivers survive them")
    with device, pytest.raises(sad.DeviceError, match="adds by exchange") as caught:
        sad.load(tmp_path / "out").squares([1.0], [0], 1.5, dim=1, shapes={"total": 1})
    assert caught.value.code == "SR0724"
    device.close()


MEANS = """
import shaderad as sad


@sad.kernel
def squares(i: sad.Index, x: sad.In[float], bin: sad.In[int], gain: float, total: sad.Add[float]):
    total[bin[i]] += gain * x[i] * x[i]
"""
