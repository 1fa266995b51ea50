"""Foreign exceptions in, coded errors out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shaderad.diagnostics import DeviceError
from shaderad.runtime.capabilities import Capabilities, limited
from shaderad.runtime.guard import Guarded, guarded

CAPABILITIES = Capabilities(
    runtime="test",
    adapter="a test",
    kind="software",
    api="none",
    driver="0",
    features=frozenset({"float-atomics", "half"}),
    formats=("spirv", "wgsl"),
    atomics="native",
    storage_buffer_limit=8,
    binding_bytes_limit=1024,
    binding_alignment=256,
    buffer_bytes_limit=1024,
    uniform_bytes_limit=256,
    workgroup_count_limit=100,
    workgroup_threads_limit=64,
    group_bytes_limit=1 << 14,
    subgroup_size=1,
    texture_formats=frozenset(),
    filtered_formats=frozenset(),
    texture_extent_limits=(8192, 8192, 2048),
    texture_layer_limit=256,
    has_line_levels=False,
    texture_limit=16,
    sampler_limit=16,
)


class Failing(Guarded):
    """Raises what it is told to, and counts how often its commands were dropped."""

    foreign_errors = (RuntimeError,)

    def __init__(self) -> None:
        super().__init__(CAPABILITIES)
        self.dropped_count = 0

    @guarded
    def fail(self, text: str) -> None:
        raise RuntimeError(text)

    @guarded
    def succeed(self) -> str:
        return "done"

    def give_up_idle(self) -> None:
        raise AssertionError("nothing is allocated here")

    def drop_recorded(self) -> None:
        self.dropped_count += 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Parent device is lost", "SR0604"),
        ("vkQueueSubmit failed: VK_ERROR_DEVICE_LOST", "SR0604"),
        ("Not enough memory left: Out of Memory", "SR0605"),
        ("Validation Error\n\nCaused by:\n  a {bad} thing", "SR0609"),
    ],
)
def test_foreign_failures_become_coded_errors(text: str, code: str) -> None:
    failing = Failing()
    with pytest.raises(DeviceError) as caught:
        failing.fail(text)
    assert caught.value.code == code
    assert caught.value.__suppress_context__
    assert failing.dropped_count == 1


def test_only_the_loss_of_the_device_is_final() -> None:
    failing = Failing()
    with pytest.raises(DeviceError):
        failing.fail("out of memory")
    assert failing.succeed() == "done"
    with pytest.raises(DeviceError):
        failing.fail("the device was lost")
    with pytest.raises(DeviceError) as caught:
        failing.succeed()
    assert caught.value.code == "SR0604"


def test_giving_up_native_atomics_gives_up_the_feature() -> None:
    forced = limited(CAPABILITIES, {"atomics": "exchange", "storage_buffer_limit": 4})
    assert forced == replace(
        CAPABILITIES, atomics="exchange", storage_buffer_limit=4, features=frozenset({"half"})
    )
