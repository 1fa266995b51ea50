"""The same derivatives where a device has no float atomics, no subgroups, or eight buffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.devices import entered
from tests.lower import crowded_cases, function_cases, loop_cases, output_cases
from tests.lower.checking import check

pytestmark = pytest.mark.gpu

NOTHING = frozenset[str]()
# The exchange loop ends lavapipe under slangpy, compare-exchange ends naga (FACTS.md, section 4).
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "exchange": ("wgpu", {"atomics": "exchange", "features": NOTHING, "storage_buffer_limit": 10}),
    "compare-exchange": (
        "slangpy",
        {"atomics": "compare-exchange", "features": NOTHING, "storage_buffer_limit": 10},
    ),
    "arenas": ("wgpu", {"storage_buffer_limit": 10}),
}
CASES = {
    "crowded": crowded_cases.CROWDED,
    "outputs_in_loops": loop_cases.CASES["outputs_in_loops"],
    "sums_in_functions": output_cases.CASES["sums_in_functions"],
    "fixed_sums": output_cases.CASES["fixed_sums"],
    "elements_at_constants": output_cases.CASES["elements_at_constants"],
}


@pytest.fixture(scope="module", params=VARIANTS)
def forced(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    with entered(*VARIANTS[request.param]) as opened:
        yield opened


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CASES)
def test_derivatives_do_not_depend_on_what_the_device_has(name: str, forced: sad.Device) -> None:
    check(CASES[name], forced)


def test_structs_sum_without_float_atomics(forced: sad.Device) -> None:
    kernel = function_cases.marches
    sad.gradcheck(kernel, *function_cases.ARGUMENTS[kernel], dim=7)


@pytest.mark.parametrize("runtime", ["wgpu", "slangpy"])
def test_eight_buffers_are_enough_for_five_arrays(runtime: str) -> None:
    with entered(runtime, {"storage_buffer_limit": 8}) as opened:
        check(crowded_cases.WIDE, opened)


def test_a_kernel_that_needs_more_buffers_is_refused_by_name() -> None:
    case = crowded_cases.WIDE
    refused = pytest.raises(sad.CompileError, match=r"SR0507.*`wide_primal` needs 6")
    with entered("wgpu", {"storage_buffer_limit": 3}), refused:
        case.kernel(*case.args, **case.call)


def test_halves_share_no_arena_with_words() -> None:
    h, x = np.float16([0.5, 0.75, 1.25]), loop_cases.floats(3)
    with entered("wgpu", {"storage_buffer_limit": 7}) as opened:
        if "half" not in opened.capabilities.features:
            pytest.skip(f"{opened.capabilities.adapter} has no half")
        _, pullback = sad.vjp(mixed_gradients, h, x, x, dim=3)
        gradients = pullback((np.ones(3, np.float32), np.ones(3, np.float32)))
        np.testing.assert_allclose(gradients[0].numpy(), x + x, rtol=2e-3)
        np.testing.assert_allclose(gradients[1].numpy(), h, rtol=2e-3)


@sad.kernel
def mixed_gradients(
    i: sad.Index,
    h: sad.In[sad.half],
    x: sad.In[float],
    w: sad.In[float],
    y: sad.Out[float],
    z: sad.Out[float],
):
    y[i] = float(h[i]) * x[i]
    z[i] = float(h[i]) * w[i]
