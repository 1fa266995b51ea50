"""Which target of a build serves a device."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shaderad.compiler.artifact import Binding, BindingAccess, Program
from shaderad.device.prebuilt import Offer, OfferedMode, lacking
from shaderad.diagnostics import Error
from shaderad.lower.bindings import Lowered, Mode
from shaderad.lower.targets import PROFILES, targets_in
from shaderad.runtime import Capabilities

DEVICE = Capabilities(
    runtime="wgpu",
    adapter="Lamp",
    kind="discrete",
    api="vulkan",
    driver="1",
    features=frozenset({"float-atomics", "subgroups"}),
    formats=("spirv", "wgsl"),
    atomics="native",
    storage_buffer_limit=9,
    binding_bytes_limit=1 << 27,
    binding_alignment=256,
    buffer_bytes_limit=1 << 27,
    uniform_bytes_limit=1 << 16,
    workgroup_count_limit=65535,
    workgroup_threads_limit=1024,
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


def offer(target: str, buffer_count: int = 1, features: tuple[str, ...] = ()) -> Offer[str]:
    bindings = (Binding(0, "parameters", BindingAccess.UNIFORM),)
    bindings += tuple(Binding(k, f"x{k}", BindingAccess.READ) for k in range(1, 1 + buffer_count))
    program = Program("shade_bwd", "", (64, 1, 1), bindings, features=frozenset(features))
    return Offer(target, [Lowered(program, Mode.BACKWARD, (), ())])


OFFERS = {
    "hlsl": offer("hlsl"),
    "wgsl": offer("wgsl"),
    "spirv-core": offer("spirv-core"),
    "spirv": offer("spirv", 9, ("float-atomics", "subgroups")),
}


def entry(*targets: str, **others: str) -> OfferedMode[str]:
    offers = {**{target: OFFERS[target] for target in targets}, **others}
    return OfferedMode("shade", "out", Mode.BACKWARD, offers)


def refused(built: OfferedMode[str], device: Capabilities = DEVICE) -> Error:
    with pytest.raises(Error) as caught:
        built.serving(device)
    return caught.value


def test_targets_are_tried_from_the_most_able_one() -> None:
    assert entry(*OFFERS).serving(DEVICE) == ["spirv", "spirv-core", "wgsl"]
    assert entry(*OFFERS).serving(replace(DEVICE, formats=("hlsl", "spirv")))[0] == "hlsl"


def test_targets_follow_the_order_of_formats_then_of_the_table() -> None:
    assert targets_in(("wgsl", "spirv")) == (
        *(name for name, profile in PROFILES.items() if profile.format == "wgsl"),
        *(name for name, profile in PROFILES.items() if profile.format == "spirv"),
    )
    assert targets_in(()) == ()


def test_a_driver_that_dies_of_exchanges_is_given_none() -> None:
    fragile = replace(DEVICE, survives_exchange=False)
    (lowered,) = offer("spirv").programs
    exchanging = replace(lowered, program=replace(lowered.program, slang="addByExchange<float>(x)"))
    assert lacking(exchanging, fragile) == ["adds by exchange"]
    assert lacking(exchanging, DEVICE) == lacking(lowered, fragile) == []


def test_a_target_that_the_device_is_too_small_for_is_passed_over() -> None:
    without_atomics = replace(DEVICE, features=frozenset({"subgroups"}))
    assert entry(*OFFERS).serving(without_atomics) == ["spirv-core", "wgsl"]
    with_few_buffers = replace(DEVICE, storage_buffer_limit=8)
    assert entry("spirv", "wgsl").serving(with_few_buffers) == ["wgsl"]


def test_a_target_without_the_mode_is_passed_over() -> None:
    assert entry("wgsl", spirv="it writes no floats").serving(DEVICE) == ["wgsl"]


def test_a_mode_that_no_target_has_is_refused_with_its_reason() -> None:
    failure = refused(entry("hlsl", spirv="it writes no floats", wgsl="another"))
    assert failure.code == "SR0725"
    assert "without `backward`: it writes no floats" in str(failure)


def test_what_a_device_lacks_is_named_for_each_target() -> None:
    failure = refused(entry("spirv"), replace(DEVICE, features=frozenset(), storage_buffer_limit=8))
    assert failure.code == "SR0724"
    assert (
        "for `spirv` the device lacks 9 storage buffers (`shade_bwd` binds them, it has 8), "
        "`float-atomics`, `subgroups`"
    ) in str(failure)


def test_a_folder_for_other_hosts_says_what_to_build() -> None:
    failure = refused(entry("hlsl"))
    assert failure.code == "SR0724"
    text = str(failure)
    taken = ", ".join(f"`{target}`" for target in targets_in(DEVICE.formats))
    assert f"built for `hlsl`; wgpu accepts {taken}" in text
    assert "build for `wgsl`" in text
