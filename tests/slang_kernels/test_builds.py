"""Kernels in Slang in builds, which run again without their source, and in wrapped functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.compiler.validate import Status
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel
from tests.slang_kernels.kernels import MIX, differences, mix_kernel, mix_of, pulled_mix
from tests.windows import run_by_windows

pytestmark = pytest.mark.gpu
WAVES = """
// A half in a comment needs nothing.
void sums(uint i : SV_DispatchThreadID, In<float> x, Out<float> y)
{
    float total = WaveActiveSum(i < x.length() ? x[i] : 0.0);
    if (i < y.length())
        y[i] = total;
}
"""
TARGETS = ("spirv", "spirv-core", "wgsl", "hlsl", "metal")
PROGRAM = """
from pathlib import Path
import shaderad as sad

mixed = sad.slang_kernel(
    Path(__file__).with_name("mix.slang"), "mix",
    {"x": sad.In[float], "k": float, "y": sad.Out[float]},
    group=32, backward="mix_bwd", forward="mix_fwd",
)
plain = sad.slang_kernel(
    Path(__file__).with_name("mix.slang").read_text(), "mix",
    {"x": sad.In[float], "k": float, "y": sad.Out[float]}, group=32,
)

@sad.graph
def loss(x: sad.Array[float, "n"], k: float) -> float:
    y = sad.fori_loop(2, lambda _, y: 0.5 * mixed(y, k, dim=x.shape[0]), x)
    return sad.sum(y * y)
"""
K = 0.7


def loss_of(x: np.ndarray, k: float) -> float:
    for _ in range(2):
        x = 0.5 * mix_of(x, k)
    return float((x * x).sum())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    folder = tmp_path_factory.mktemp("slang")
    (folder / "mix.slang").write_text(MIX)
    (folder / "model.py").write_text(PROGRAM)
    return sad.build(folder / "model.py", folder / "out", targets=TARGETS, jvp=True), folder / "out"


def test_all_targets_compile(built: tuple[Any, Path]) -> None:
    build, folder = built
    assert {b.name for b in (*build.kernels, *build.graphs)} == {"mixed", "plain", "loss"}
    assert build.judgements
    assert Status.REFUSED not in {judgement.status for judgement in build.judgements}
    text = (folder / "spirv" / "mixed_bwd.slang").read_text()
    assert MIX.strip() in text
    assert "SR0420" in repr(build)  # `plain` has no derivatives, and says so.


def test_loaded_build(device: sad.Device, built: tuple[Any, Path]) -> None:
    loaded: Any = sad.load(built[1])
    rng = np.random.default_rng(0)
    x, bar = rng.normal(size=(2, 45)).astype(np.float32)
    out, pullback = sad.vjp(loaded.mixed, x, K, dim=45)
    np.testing.assert_allclose(out.numpy(), mix_of(x, K), rtol=1e-5, atol=1e-6)
    x_bar, k_bar = pulled_mix(x, K, bar)
    gradients = pullback(bar)
    np.testing.assert_allclose(gradients[0].numpy(), x_bar, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gradients[1].item(), k_bar, rtol=1e-4)
    _, moved = sad.jvp(loaded.mixed, (x, K), (bar, None), dim=45)
    wanted = 2 * K * x * bar + np.append(bar[1:], 0.0)
    np.testing.assert_allclose(moved.numpy(), wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(loaded.plain(x, K, dim=45).numpy(), out.numpy())
    with pytest.raises(sad.DerivativeError):
        sad.vjp(loaded.plain, x, K, dim=45)[1](bar)
    for kernel in (loaded.mixed, loaded.plain):
        with pytest.raises(sad.BoundsError, match="index 45 is out of range for `x`"):
            kernel(x, K, dim=46).numpy()


def test_loaded_graph(device: sad.Device, built: tuple[Any, Path]) -> None:
    loaded: Any = sad.load(built[1])
    x = np.random.default_rng(2).normal(size=9).astype(np.float32)
    value, gradients = sad.value_and_grad(loaded.loss, argnums=(0, 1))(x, K)
    wanted = differences(loss_of, x, K)
    np.testing.assert_allclose(value.item(), loss_of(x.astype(float), K), rtol=1e-5)
    np.testing.assert_allclose(gradients[0].numpy(), wanted[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gradients[1].item(), wanted[1], rtol=1e-4)


def test_features_of_the_text(device: sad.Device) -> None:
    types = {"x": sad.In[float], "y": sad.Out[float]}
    kernel = sad.slang_kernel(WAVES, "sums", types, group=64)
    (lowered,) = lower_kernel(kernel.specialise({}), Mode.PRIMAL, Variant())
    assert lowered.program.features == {"subgroups"}
    if "subgroups" in device.capabilities.features:
        lanes = device.capabilities.subgroup_size
        y = kernel(np.ones(64, np.float32), dim=64).numpy()
        assert set(y.tolist()) == {lanes} or not lanes


def test_torch(device: sad.Device) -> None:
    torch: Any = pytest.importorskip("torch")
    x = np.random.default_rng(3).normal(size=9).astype(np.float32)
    tensor, k = torch.tensor(x, requires_grad=True), torch.tensor(K, requires_grad=True)
    sad.torch.wrap(mix_kernel(), dim=9)(tensor, k).sum().backward()
    x_bar, k_bar = pulled_mix(x, K, np.ones(9, np.float32))
    np.testing.assert_allclose(tensor.grad.numpy(), x_bar, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(k.grad.item(), k_bar, rtol=1e-5)


def test_jax(device: sad.Device) -> None:
    jax: Any = pytest.importorskip("jax")
    x = np.random.default_rng(3).normal(size=9).astype(np.float32)
    wrapped = sad.jax.wrap(mix_kernel(), dim=9)

    def loss(x: Any) -> Any:
        return wrapped(x, K).sum()

    gradient = jax.grad(loss)(x)
    x_bar, _ = pulled_mix(x, K, np.ones(9, np.float32))
    np.testing.assert_allclose(np.asarray(gradient), x_bar, rtol=1e-5, atol=1e-5)


def test_graphs_by_windows(device: sad.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kernels in Slang run as a whole, between dispatches that run by windows.
    run_by_windows(monkeypatch)
    kernel = mix_kernel()

    def loss(x: Any) -> Any:
        return sad.sum(sad.sin(kernel(sad.cos(x), K, dim=9)))

    def oracle(x: np.ndarray) -> float:
        return float(np.sin(mix_of(np.cos(x), K)).sum())

    x = np.random.default_rng(4).normal(size=9).astype(np.float32)
    gradient = sad.grad(sad.graph(loss))(x)
    (wanted,) = differences(oracle, x)
    np.testing.assert_allclose(gradient.numpy(), wanted, rtol=1e-4, atol=1e-5)
