"""`--atomics` and `--features`: what targets are made to use, in code and manifest."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.bundle.write.profile_changes import Changes, changed_profiles, profiles_of
from shaderad.lower.targets import PROFILES
from tests.bundle.conftest import SOURCE, programs_of


def changed(targets: str, atomics: str = "", features: str = "") -> dict[str, tuple[str, bool]]:
    """Atomics and subgroups of each target."""
    changes = Changes([atomics] if atomics else [], [features] if features else [])
    found = changed_profiles(profiles_of([targets]), changes)
    return {one.name: (one.atomics, one.has_subgroups) for one in found}


def test_targets_are_as_the_table_has_them_where_nothing_is_asked() -> None:
    every = profiles_of([",".join(PROFILES)])
    assert changed_profiles(every, Changes()) == every == tuple(PROFILES.values())


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


@pytest.mark.parametrize(
    ("targets", "changes", "words"),
    [
        ("spirv", Changes(workgroup=0), ("`--workgroup 0`", "from 1 to 1024")),
        ("spirv,wgsl", Changes(workgroup=512), ("`wgsl`", "from 1 to 256")),
        ("spirv", Changes(space=-1), ("`--space -1`", "from 0 to 3")),
        ("hlsl,metal", Changes(space=1), ("`metal`", "from 0 to 0")),
        ("metal", Changes(first_binding=15), ("`--binding-base 15`", "from 0 to 14")),
        ("wgsl", Changes(first_binding=992), ("`wgsl`", "from 0 to 991")),
    ],
    ids=str,
)
def test_numbers_that_a_device_may_lack_are_refused(
    targets: str, changes: Changes, words: tuple[str, ...]
) -> None:
    with pytest.raises(sad.CompileError) as caught:
        changed_profiles(profiles_of([targets]), changes)
    assert caught.value.code == "SR0745"
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
    usual = {"atomics": "exchange", "workgroup": 64, "space": 0, "first_binding": 0}
    assert manifest["targets"] == {
        "spirv": {**usual, "features": [], "storage_buffer_limit": 16},
        "hlsl": {**usual, "features": [], "storage_buffer_limit": 16},
        "wgsl": {**usual, "features": ["subgroups"], "storage_buffer_limit": 8},
    }
    (kernel,) = manifest["entries"]
    used = {
        target: {f for one in programs_of(plans, "backward") for f in one["features"]}
        for target, plans in kernel["targets"].items()
    }
    assert used == {"spirv": {"half"}, "hlsl": {"half"}, "wgsl": {"half", "subgroups"}}
    hlsl = (tmp_path / "out/hlsl/splat_bwd.hlsl").read_text(encoding="utf-8")
    assert "InterlockedExchange" in hlsl
    assert "InterlockedCompareExchange" not in hlsl


PLACED = {"space": 1, "binding_base": 4, "workgroup": 96}
"""96 threads are no whole number of subgroups of 64, and no power of two."""


def check_means(folder: Path, device: sad.Device) -> None:
    """Compares what the built `squares` gives with NumPy."""
    count = 5000
    draw = np.random.default_rng(8)
    x, bins = draw.normal(size=count), draw.integers(0, 3, count)
    bars = np.array([1.0, -2.0, 0.5])
    with device:
        loaded = sad.load(folder)
        total, pullback = sad.vjp(loaded.squares, x, bins, 1.5, dim=count, shapes={"total": 3})
        x_bar, _, gain_bar = pullback(bars)
        squares = x * x
        expected = [1.5 * squares[bins == k].sum() for k in range(3)]
        np.testing.assert_allclose(total.numpy(), expected, rtol=1e-5)
        np.testing.assert_allclose(x_bar.numpy(), 3.0 * x * bars[bins], rtol=1e-5)
        np.testing.assert_allclose(float(gain_bar), (squares * bars[bins]).sum(), rtol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "options",
    [
        {"targets": "spirv", "atomics": "exchange"},
        {"targets": "spirv-core", "features": "float-atomics,subgroups"},
        {"targets": "wgsl", "features": "subgroups"},
        {"targets": "spirv", **PLACED},
        {"targets": "spirv-core", **PLACED},
        {"targets": "wgsl", **PLACED},
        {"targets": "wgsl", "workgroup": 1},
    ],
    ids=str,
)
def test_gradients_are_the_same_however_they_are_summed_and_bound(
    source: Path, options: dict[str, Any]
) -> None:
    sad.build(source, source.parent / "out", **options)
    try:
        device = sad.open_device("wgpu")
    except sad.DeviceError as failure:
        pytest.skip(failure.message)
    check_means(source.parent / "out", device)
    device.close()


@pytest.mark.gpu
def test_what_is_bound_elsewhere_runs_on_every_runtime(source: Path, device: sad.Device) -> None:
    sad.build(source, source.parent / "out", targets="spirv,wgsl", **PLACED)
    check_means(source.parent / "out", device)


@pytest.mark.gpu
def test_a_plan_that_is_bound_elsewhere_gives_what_it_gave(
    source: Path, device: sad.Device
) -> None:
    sad.build(source, source.parent / "out", targets="spirv,wgsl", **PLACED)
    x = np.linspace(0.5, 1.5, 1000)
    (total, pullback) = sad.vjp(sad.load(source.parent / "out").energy, x)
    waves = np.cumsum(np.sin(x))
    np.testing.assert_allclose(float(total), (waves * waves).sum(), rtol=1e-5)
    (x_bar,) = pullback(1.0)
    expected = np.cumsum(2.0 * waves[::-1])[::-1] * np.cos(x)
    np.testing.assert_allclose(x_bar.numpy(), expected, rtol=1e-4)
    assert device.synchronize() is None


@pytest.mark.gpu
def test_a_driver_that_dies_of_exchanges_gets_none(source: Path) -> None:
    out = source.parent / "out"
    sad.build(source, out, targets="spirv", atomics="exchange", validate=False)
    try:
        device = sad.open_device("slangpy")
    except sad.DeviceError as failure:
        pytest.skip(failure.message)
    if device.capabilities.kind != "software":
        pytest.skip("other drivers survive them")
    with device, pytest.raises(sad.DeviceError, match="adds by exchange") as caught:
        sad.load(out).squares([1.0], [0], 1.5, dim=1, shapes={"total": 1})
    assert caught.value.code == "SR0724"
    device.close()


@pytest.mark.gpu
def test_a_device_with_smaller_workgroups_is_told_what_it_lacks(source: Path) -> None:
    sad.build(source, source.parent / "out", targets="spirv", workgroup=1024, validate=False)
    try:
        device = sad.open_device("wgpu", limits={"workgroup_threads_limit": 512})
    except sad.DeviceError as failure:
        pytest.skip(failure.message)
    with device, pytest.raises(sad.DeviceError, match="workgroups of 1024 threads"):
        sad.load(source.parent / "out").squares([1.0], [0], 1.5, dim=1, shapes={"total": 1})
    device.close()


def test_the_manual_has_the_table_of_targets() -> None:
    text = (Path(__file__).parents[2] / "docs/manifest.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:4] for line in text.splitlines() if line.startswith("| `")]
    found = {
        name.strip(" `"): ([*re.findall(r"`([\w-]+)`", ways)], [*re.findall(r"`([\w-]+)`", has)])
        for name, ways, has in (row for row in rows if len(row) == 3)
        if name.strip(" `") in PROFILES
    }
    assert set(found) == set(PROFILES)
    for name, profile in PROFILES.items():
        others = [one for one in profile.possible_atomics if one != profile.atomics]
        assert found[name] == ([profile.atomics, *others], [*profile.features])


def test_guide_and_docstring_name_every_target() -> None:
    guide = Path(__file__).parents[2] / "docs/ahead_of_time.md"
    for text in (guide.read_text(encoding="utf-8"), str(sad.build.__doc__)):
        assert [name for name in PROFILES if f"`{name}`" not in text] == []


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "means.py"
    path.write_text(MEANS, encoding="utf-8")
    return path


MEANS = """
import shaderad as sad


@sad.kernel
def squares(i: sad.Index, x: sad.In[float], bin: sad.In[int], gain: float, total: sad.Add[float]):
    total[bin[i]] += gain * x[i] * x[i]


@sad.graph
def energy(x: sad.Array[float, "n"]) -> sad.Array[float]:
    waves = sad.scan(sad.add, sad.sin(x))
    return sad.sum(waves * waves)
"""
