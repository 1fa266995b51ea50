"""Wrapped functions beside the rest of JAX: threads, builds, copies, memory."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shaderad as sad
from shaderad.jax import calls
from shaderad.jax.calls import KEPT_RUNS, KeptRuns
from tests.jax.functions import floats
from tests.wrapped import functions
from tests.wrapped.functions import dense, gathered, scan_product, square

EXACT = {"rtol": 1e-5, "atol": 1e-6}
"""Some roundings of float32."""

pytestmark = pytest.mark.gpu


def gradient_of(wrapped: Any) -> Any:
    return jax.grad(lambda x: wrapped(x, 2.0).sum())


@pytest.mark.parametrize("run", [lambda f: f, jax.jit])
def test_threads_share_a_wrapped_function(device: sad.Device, run: Any) -> None:
    gradient = run(gradient_of(sad.jax.wrap(square, device=device)))
    inputs = [floats(5 + k % 3) for k in range(24)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(gradient, inputs))
    for x, by_x in zip(inputs, found, strict=True):
        np.testing.assert_allclose(by_x, 4.0 * x, **EXACT)


def test_callbacks_meet_calls_of_other_threads(device: sad.Device) -> None:
    """Results that are not there yet are given to kernels while callbacks want the device."""
    compiled = jax.jit(sad.jax.wrap(square, device=device))

    def chained(seed: int) -> Any:
        x = floats(1000 + seed)
        for _ in range(5):
            x = jnp.sqrt(compiled(x, 1.0))
            x = jnp.asarray(square(x, 1.0, device=device).numpy()) ** 0.5
        return x

    with ThreadPoolExecutor(4) as pool:
        for seed, found in enumerate(pool.map(chained, range(1, 9)), start=1):
            np.testing.assert_allclose(found, floats(1000 + seed), rtol=1e-5)


def test_callbacks_get_host_arrays(device: sad.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """With arrays of JAX, a callback may wait for the thread that it is in."""
    seen: list[type] = []
    original = calls.on_host
    monkeypatch.setattr(calls, "on_host", lambda x: seen.append(type(x)) or original(x))
    jax.jit(gradient_of(sad.jax.wrap(square)))(floats(100_000)).block_until_ready()
    assert set(seen) == {np.ndarray}


def test_compiled_code_stays_on_its_device(device: sad.Device) -> None:
    compiled = jax.jit(gradient_of(sad.jax.wrap(square)))
    x = floats(3)
    compiled.lower(x)
    ran: list[sad.Device] = []
    original = sad.Device.read

    def noted(self: sad.Device, *rest: Any) -> Any:
        ran.append(self)
        return original(self, *rest)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sad.Device, "read", noted)
        np.testing.assert_allclose(compiled(x), 4.0 * x, **EXACT)
    assert set(ran) == {device}


def value_and_gradient(function: Any, call: dict[str, Any]) -> Any:
    wrapped = sad.jax.wrap(function, **call)
    return jax.jit(jax.value_and_grad(lambda *args: wrapped(*args).sum()))


def test_entries_of_a_build_are_wrapped(device: sad.Device, tmp_path: Path) -> None:
    source = Path(functions.__file__)
    entries = ("gathered", "scan_product")
    sad.build(source, tmp_path, entries=entries, targets="wgsl,spirv", validate=False)
    loaded = sad.load(tmp_path)
    x, to, shapes = floats(3), jnp.array([0, 2, 0]), {"total": 3}
    for function, built, args, call in (
        (gathered, loaded.gathered, (x, to), {"shapes": shapes}),
        (scan_product, loaded.scan_product, (x,), {}),
    ):
        found, wanted = (value_and_gradient(f, call)(*args) for f in (built, function))
        np.testing.assert_allclose(found[0], wanted[0], **EXACT)
        np.testing.assert_allclose(found[1], wanted[1], **EXACT)


@pytest.mark.parametrize("run", [lambda f: f, jax.jit])
def test_an_argument_is_copied_in_once_and_a_result_out_once(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch, run: Any
) -> None:
    wrapped = sad.jax.wrap(dense)
    x, layer = floats(4, 3), {"w": floats(3, 2), "b": floats(2)}

    @run
    def with_gradient(x: Any, layer: Any) -> Any:
        y, pullback = jax.vjp(lambda x, layer: wrapped(x, layer, 1.0)["y"], x, layer)
        return y, pullback(y)

    jax.block_until_ready(with_gradient(x, layer))
    written: list[int] = []
    read: list[int] = []
    runtime = device.runtime
    write, reads = runtime.write, runtime.read

    def noted_write(buffer: Any, offset: int, data: Any) -> Any:
        written.append(len(data))
        return write(buffer, offset, data)

    def noted_read(requests: Any) -> Any:
        read.extend(length for _, _, length in requests)
        return reads(requests)

    monkeypatch.setattr(runtime, "write", noted_write)
    monkeypatch.setattr(runtime, "read", noted_read)
    jax.block_until_ready(with_gradient(x, layer))
    assert (sorted(written), sorted(read)) == ([8, 24, 32, 48], [8, 24, 32, 48])


@pytest.mark.parametrize("run", [lambda f: f, jax.jit])
def test_many_calls_leave_nothing_behind(device: sad.Device, run: Any) -> None:
    gradient, x = run(gradient_of(sad.jax.wrap(square))), floats(100)
    counts: list[int] = []
    for _ in range(3):
        for _ in range(50):
            gradient(x).block_until_ready()
        gc.collect()
        counts.append(len(gc.get_objects()))
    assert counts[2] - counts[1] < 50
    assert len(device.kept(KeptRuns)) == 0


def test_a_pullback_keeps_the_run_that_it_uses(device: sad.Device) -> None:
    kept, x = device.kept(KeptRuns), floats(3)
    assert len(kept) == 0
    _, pullback = jax.vjp(lambda x: sad.jax.wrap(square)(x, 1.0), x)
    assert len(kept) == 1
    for _ in range(2):
        np.testing.assert_allclose(pullback(x)[0], 2.0 * x * x, **EXACT)
    assert len(kept) == 1
    del pullback
    gc.collect()
    assert len(kept) == 0


def test_runs_wait_for_few_pullbacks_of_compiled_code(device: sad.Device) -> None:
    kept, x = device.kept(KeptRuns), floats(3)
    compiled = jax.jit(sad.jax.wrap(square))
    pullbacks = [jax.vjp(compiled, x, jnp.float32(k))[1] for k in range(KEPT_RUNS + 3)]
    assert len(kept) == KEPT_RUNS
    for k, pullback in enumerate(pullbacks):
        for _ in range(2):
            np.testing.assert_allclose(pullback(x)[0], 2.0 * k * x * x, **EXACT)
    assert len(kept) == 0


def test_a_run_that_nobody_differentiates_is_not_kept(device: sad.Device) -> None:
    @jax.jit
    def primal(x: Any) -> Any:
        return jax.vjp(lambda x: sad.jax.wrap(square)(x, 1.0), x)[0]

    np.testing.assert_allclose(primal(floats(3)), floats(3) ** 2, **EXACT)
    assert len(device.kept(KeptRuns)) == 0


def test_jax_is_imported_where_it_is_asked_for() -> None:
    code = (
        "import sys, shaderad as sad; assert not {'jax', 'torch'} & {*sys.modules}; "
        "sys.modules['jax'] = None\n"
        "try:\n    sad.jax\n"
        "except ImportError as missing:\n"
        "    assert isinstance(missing, sad.DeviceError)\n"
        "    assert 'SR0624' in str(missing) and 'pip install shaderad[jax]' in str(missing)\n"
        "else:\n    raise SystemExit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@sad.kernel
def tripled(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = 3.0 * x[i]


def test_a_wrapped_function_is_copied_and_pickled(device: sad.Device) -> None:
    wrapped = sad.jax.wrap(tripled)
    assert copy.deepcopy([wrapped])[0] is wrapped
    again = pickle.loads(pickle.dumps(wrapped))
    np.testing.assert_allclose(jax.grad(lambda x: again(x).sum())(floats(3)), [3.0] * 3)
