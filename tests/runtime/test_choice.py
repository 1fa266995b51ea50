"""Which adapter is chosen, and what is said where none fits."""

from __future__ import annotations

import pytest

from shaderad.diagnostics import DeviceError
from shaderad.runtime.choice import DeviceInfo, choose
from shaderad.runtime.protocol import Kind


def device(index: int, adapter: str, kind: Kind, api: str = "vulkan") -> DeviceInfo:
    return DeviceInfo(
        runtime="wgpu", index=index, adapter=adapter, kind=kind, api=api, driver="1.2.3"
    )


FOUND = [
    device(0, "llvmpipe", "software"),
    device(1, "Iris", "integrated"),
    device(2, "Radeon", "discrete"),
    device(3, "GeForce", "discrete"),
    device(4, "GeForce", "unknown", "cuda"),
]


@pytest.mark.parametrize(
    ("wanted", "index"),
    [(None, 2), ("", 2), (0, 0), ("1", 1), ("geforce", 3), ("cuda", 4), ("LLVM", 0)],
)
def test_a_position_a_part_of_the_name_or_the_best_is_chosen(
    wanted: str | int | None, index: int
) -> None:
    assert choose("wgpu", FOUND, wanted).index == index


@pytest.mark.parametrize("wanted", [9, "9", "voodoo"])
def test_what_is_not_there_is_refused_with_the_list_of_what_is(wanted: str | int) -> None:
    with pytest.raises(DeviceError, match="3: GeForce") as caught:
        choose("wgpu", FOUND, wanted)
    assert caught.value.code == "SR0602"


def test_a_machine_without_adapters_is_told_so() -> None:
    with pytest.raises(DeviceError, match="no adapter at all"):
        choose("slangpy", [], None)
