"""The targets of builds, one row each: a format of code on devices with certain features.

Both SPIR-V targets give the same gradients, summed in different ways.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from shaderad.compiler.launch_shapes import FEWEST_LANES, PORTABLE, LaunchShape, portable_shape
from shaderad.lower.bindings import ATOMICS


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The minimum limits of the devices of a target."""

    storage_buffers: int
    workgroup: int
    """Threads of a workgroup."""
    group_bytes: int
    """Memory of a workgroup."""
    spaces: int
    """Descriptor sets, bind groups or register spaces."""
    slots: int
    """Bindings of one space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One target: the format of its code, and how kernels are lowered for it."""

    name: str
    format: str
    """A key of `compiler.formats.FORMATS`."""
    atomics: str
    """The kind of float atomics, one of `possible_atomics`; see `lower.bindings.Variant`."""
    has_subgroups: bool
    possible_atomics: tuple[str, ...]
    limits: Limits
    has_double: bool = True
    are_waves_free: bool = True
    """See `lower.bindings.Variant`."""
    workgroup: int = PORTABLE.workgroup
    space: int = 0
    first_binding: int = 0

    @property
    def launch_shape(self) -> LaunchShape:
        """The layout of work over threads, on every device that runs the target."""
        has_lanes = self.has_subgroups and self.are_waves_free
        lanes = FEWEST_LANES if has_lanes else 1
        return portable_shape(lanes=lanes, workgroup=self.workgroup)

    @property
    def group_atomics(self) -> str:
        """The kind of float atomics in group memory, where not all devices have native ones."""
        return "exchange" if self.atomics == "native" else self.atomics

    @property
    def features(self) -> tuple[str, ...]:
        """The features that kernels may use, apart from those of their types."""
        allowed = {"float-atomics": self.atomics == "native", "subgroups": self.has_subgroups}
        return tuple(name for name, is_allowed in allowed.items() if is_allowed)


# WebGPU guarantees 8 storage buffers per entry point, 256 threads and 16 KiB per workgroup, 4 bind
# groups, and slots up to 999. Portable SPIR-V keeps to these limits, too.
_PORTABLE = Limits(storage_buffers=8, workgroup=256, group_bytes=1 << 14, spaces=4, slots=1000)
# Other drivers offer more; 16 buffers leave room for bindings of the host.
_NATIVE = Limits(storage_buffers=16, workgroup=1024, group_bytes=1 << 15, spaces=4, slots=1000)
# HLSL does not limit spaces. Metal has one space with 31 buffers.
_HLSL = replace(_NATIVE, spaces=1000)
_METAL = replace(_NATIVE, spaces=1, slots=31)

# Devices prefer the first of the targets of one format that they can run. HLSL and WGSL have no
# atomic add of floats. The compare-exchange of WGSL and Metal is weak, and Slang checks its old
# value only: an add could be lost.
PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            name="spirv",
            format="spirv",
            atomics="native",
            possible_atomics=ATOMICS,
            has_subgroups=True,
            limits=_NATIVE,
        ),
        Profile(
            name="spirv-core",
            format="spirv",
            atomics="exchange",
            possible_atomics=ATOMICS,
            has_subgroups=False,
            limits=_PORTABLE,
        ),
        Profile(
            name="hlsl",
            format="hlsl",
            atomics="compare-exchange",
            possible_atomics=("exchange", "compare-exchange"),
            has_subgroups=True,
            limits=_HLSL,
        ),
        Profile(
            name="wgsl",
            format="wgsl",
            atomics="exchange",
            possible_atomics=("exchange",),
            has_subgroups=False,
            are_waves_free=False,
            has_double=False,
            limits=_PORTABLE,
        ),
        Profile(
            name="metal",
            format="metal",
            atomics="native",
            possible_atomics=("native", "exchange"),
            has_subgroups=True,
            has_double=False,
            limits=_METAL,
        ),
    )
}
DEFAULT_TARGETS = ("spirv", "hlsl", "wgsl")


def targets_in(formats: Iterable[str]) -> tuple[str, ...]:
    """The targets whose code has one of `formats`, in their order, then in that of the table."""
    return tuple(p.name for each in formats for p in PROFILES.values() if p.format == each)
