"""The size of subgroups that devices report, on every runtime."""

from __future__ import annotations

from typing import Any

import pytest

from shaderad.runtime import open_runtime
from shaderad.runtime.wgpu_subgroups import subgroup_size
from tests.runtime.conftest import opened_or_skip


@pytest.mark.gpu
def test_subgroups_have_a_size_where_there_are_any(runtime_name: str) -> None:
    capabilities = opened_or_skip(runtime_name).capabilities
    size = capabilities.subgroup_size
    if "subgroups" in capabilities.features:
        assert size >= 4
        assert size.bit_count() == 1
    else:
        assert size == 1


@pytest.mark.gpu
def test_a_device_without_subgroups_has_none_of_any_size(runtime_name: str) -> None:
    opened_or_skip(runtime_name)
    without = open_runtime(runtime_name, limits={"features": frozenset[str]()})
    assert without.capabilities.subgroup_size == 1


@pytest.mark.gpu
def test_the_size_may_be_forced(runtime_name: str) -> None:
    opened_or_skip(runtime_name)
    forced = open_runtime(runtime_name, limits={"subgroup_size": 2})
    assert forced.capabilities.subgroup_size == 2


class _Sizes:
    """A device whose threads found these sizes."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes
        self.queue = self

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self

    def read_buffer(self, _: object) -> bytes:
        return b"".join(size.to_bytes(4, "little") for size in self.sizes)


def test_the_smallest_size_counts_and_lanes_out_of_order_are_no_subgroup() -> None:
    assert subgroup_size(_Sizes([32] * 64)) == 32
    assert subgroup_size(_Sizes([8] * 60 + [4] * 4)) == 4
    assert subgroup_size(_Sizes([32] * 63 + [1])) == 1
