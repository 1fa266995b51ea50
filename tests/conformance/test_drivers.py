"""The same answers from devices that can do less: no float atomics, eight storage buffers.

Some are forced upon the driver at hand. SwiftShader, which really has no float atomics, is chosen
when wgpu is first loaded, so it gets a process of its own that runs this folder's tests again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.compiler.artifact import BindingAccess
from tests import swiftshader
from tests.conformance import checks
from tests.conformance.programs import atomic, contention, gather, minmax
from tests.devices import entered
from tests.recorded import on_each_dispatch

pytestmark = pytest.mark.gpu


EIGHT = {"storage_buffer_limit": 8}
# Exchange loops crash lavapipe under slangpy, which has native atomics or compare-exchange.
DEVICES: dict[str, tuple[str, dict[str, Any]]] = {
    "wgpu": ("wgpu", {}),
    "wgpu with 8 buffers": ("wgpu", EIGHT),
    "wgpu as on a GPU": ("wgpu", {"kind": "discrete"}),
    "wgpu by exchange": ("wgpu", {"atomics": "exchange"}),
    "wgpu by exchange with 8 buffers": ("wgpu", {"atomics": "exchange", **EIGHT}),
    "slangpy": ("slangpy", {}),
    "slangpy as on a GPU": ("slangpy", {"kind": "discrete"}),
    "slangpy with 8 buffers": ("slangpy", EIGHT),
    "slangpy by compare-exchange": ("slangpy", {"atomics": "compare-exchange"}),
}
ATOMIC_CASES = [*atomic.PROGRAMS, *minmax.PROGRAMS, *gather.PROGRAMS]

# Sums of THREADS / ELEMENTS terms of order 1 in float32, in any order.
CLOSE = {"rtol": 2e-5, "atol": 2e-4}
THREADS = 6000
ELEMENTS = 7


@pytest.fixture(scope="module", params=DEVICES)
def lesser(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    """A device with limits forced upon it, entered; its dispatches are held to them."""
    runtime, limits = DEVICES[request.param]
    with (
        entered(runtime, limits, request.param) as opened,
        pytest.MonkeyPatch.context() as patch,
    ):

        def check(pipeline: Any) -> None:
            bindings = pipeline.program.bindings
            bound = [one.name for one in bindings if one.access is not BindingAccess.UNIFORM]
            assert len(bound) <= opened.capabilities.storage_buffer_limit, bound

        on_each_dispatch(opened.runtime, patch, check)
        yield opened


def drawn() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.mark.parametrize("name", ATOMIC_CASES)
def test_cases_with_shared_elements_have_their_primal_and_vjp(
    name: str, lesser: sad.Device
) -> None:
    checks.check_primal(name, lesser)
    checks.check_vjp(name, lesser)


@pytest.mark.parametrize(
    "name", [one for one in ATOMIC_CASES if checks.case_of(one).expected["jvp"]]
)
def test_cases_with_shared_elements_have_their_jvp(name: str, lesser: sad.Device) -> None:
    checks.check_jvp(name, lesser)


def test_gradients_of_elements_that_many_threads_read_are_summed(lesser: sad.Device) -> None:
    draw = drawn()
    colors, weights = draw.normal(size=(ELEMENTS, 3)), draw.normal(size=ELEMENTS)
    corner = draw.integers(0, ELEMENTS, THREADS)
    color_bar = draw.normal(size=(THREADS, 3))
    vertices = {"color": colors, "weight": weights}
    _, pullback = sad.vjp(contention.shade, vertices, corner, 0.5, dim=THREADS)
    vertices_bar, corner_bar, exposure_bar = pullback(color_bar)
    by_color, by_weight, by_exposure = contention.shade_gradients(
        colors, weights, corner, 0.5, color_bar
    )
    assert corner_bar is None
    found = vertices_bar.numpy()
    np.testing.assert_allclose(found["color"], by_color, **CLOSE)
    np.testing.assert_allclose(found["weight"], by_weight, **CLOSE)
    np.testing.assert_allclose(float(exposure_bar), by_exposure, rtol=1e-4)


def test_sums_that_many_threads_add_to_are_complete(lesser: sad.Device) -> None:
    draw = drawn()
    x, bins = draw.normal(size=THREADS), draw.integers(0, ELEMENTS, THREADS)
    call = {"dim": THREADS, "shapes": {"y": ELEMENTS}}
    y, pullback = sad.vjp(contention.bin_squares, x, bins, **call)
    wanted = np.bincount(bins, weights=x * x)
    np.testing.assert_allclose(y.numpy(), wanted, **CLOSE)
    y_bar = draw.normal(size=ELEMENTS)
    np.testing.assert_allclose(pullback(y_bar)[0].numpy(), 2 * x * y_bar[bins], **CLOSE)
    _, y_dot = sad.jvp(contention.bin_squares, (x, bins), (np.ones(THREADS), None), **call)
    np.testing.assert_allclose(y_dot.numpy(), np.bincount(bins, weights=2 * x), **CLOSE)


def test_an_extreme_that_many_threads_attain_has_the_lowest_thread_as_winner(
    lesser: sad.Device,
) -> None:
    draw = drawn()
    x = draw.integers(-20, 20, THREADS).astype(np.float32)
    bins = draw.integers(0, ELEMENTS, THREADS)
    call = {"dim": THREADS, "shapes": {"lo": ELEMENTS, "hi": ELEMENTS}}
    (lo, hi), pullback = sad.vjp(contention.bin_extremes, x, bins, **call)
    lo_bar, hi_bar = draw.normal(size=ELEMENTS), draw.normal(size=ELEMENTS)
    x_bar = np.zeros(THREADS)
    for k in range(ELEMENTS):
        members = np.flatnonzero(bins == k)
        # NumPy gives the first of equals, which is our rule too.
        x_bar[members[np.argmin(x[members])]] += lo_bar[k]
        x_bar[members[np.argmax(x[members])]] += hi_bar[k]
        assert (lo.numpy()[k], hi.numpy()[k]) == (x[members].min(), x[members].max())
    np.testing.assert_allclose(pullback((lo_bar, hi_bar))[0].numpy(), x_bar, rtol=1e-6)


def test_a_backward_that_needs_more_buffers_than_eight_shares_them(lesser: sad.Device) -> None:
    draw = drawn()
    arrays = tuple(draw.normal(size=(4, ELEMENTS)))
    index = draw.integers(0, ELEMENTS, THREADS)
    (total, out), pullback = sad.vjp(
        contention.mix, *arrays, index, dim=THREADS, shapes={"total": ELEMENTS}
    )
    a, b, c, d = arrays
    np.testing.assert_allclose(total.numpy(), np.bincount(index) * a * b, **CLOSE)
    np.testing.assert_allclose(out.numpy(), (b * c + d)[index], **CLOSE)
    total_bar, out_bar = draw.normal(size=ELEMENTS), draw.normal(size=THREADS)
    *found, index_bar = pullback((total_bar, out_bar))
    assert index_bar is None
    wanted = contention.mix_gradients(arrays, index, total_bar, out_bar)
    for got, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-3)


def test_a_kernel_that_needs_more_buffers_than_can_be_shared_is_refused(
    lesser: sad.Device,
) -> None:
    if lesser.capabilities.storage_buffer_limit > 8:
        pytest.skip("this device has bindings enough")
    nothing = np.zeros(1)
    with pytest.raises(sad.Error) as caught:
        contention.read_nine(*[nothing] * 9, dim=1)
    assert caught.value.code == "SR0507"


@pytest.mark.slow
@pytest.mark.swiftshader
@swiftshader.needed
def test_a_driver_without_float_atomics_passes_the_same_tests() -> None:
    # Of array programs those that add to shared elements, and one whose scan has branches; all
    # would take SwiftShader minutes.
    which = "and (not arrays or hist-add or hist-max or one-bin or gather0 or rbi-add)"
    swiftshader.check_passes((Path(__file__).parent,), which)
