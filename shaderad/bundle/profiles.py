"""What each target of `build` may use: the one table.

A target of `build` is a compiler target with a set of features. The gradients of both SPIR-V
profiles are the same; they are summed in another way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from shaderad.diagnostics import error
from shaderad.lower.bindings import ATOMICS, WORKGROUP_SIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What every device of a target has at least."""

    storage_buffers: int
    workgroup: int
    """Threads of one."""
    spaces: int
    """Descriptor sets, bind groups or register spaces."""
    slots: int
    """Numbers of bindings in one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One target: how kernels are lowered for it and what its files are called."""

    name: str
    suffix: str
    atomics: str
    """How floats are added, of `possible_atomics`; see `lower.bindings.Variant`."""
    has_subgroups: bool
    possible_atomics: tuple[str, ...]
    limits: Limits
    has_double: bool = True
    are_waves_free: bool = True
    """See `lower.bindings.Variant`."""
    workgroup: int = WORKGROUP_SIZE
    space: int = 0
    first_binding: int = 0

    @property
    def features(self) -> tuple[str, ...]:
        """What kernels may use besides what their own types ask for."""
        known = {"float-atomics": self.atomics == "native", "subgroups": self.has_subgroups}
        return tuple(name for name, is_allowed in known.items() if is_allowed)


# WebGPU guarantees 8 storage buffers an entry point, 256 threads a workgroup, 4 bind groups and
# slots up to 999; that is also what portable SPIR-V may take for granted.
_PORTABLE = Limits(storage_buffers=8, workgroup=256, spaces=4, slots=1000)
# Elsewhere drivers have more; 16 buffers leave room beside what the host itself binds.
_NATIVE = Limits(storage_buffers=16, workgroup=1024, spaces=4, slots=1000)
# HLSL has as many spaces as one likes. Metal numbers 31 buffers in one row.
_HLSL = replace(_NATIVE, spaces=1000)
_METAL = replace(_NATIVE, spaces=1, slots=31)

# HLSL and WGSL have no atomic add of floats. The compare-exchange of WGSL and Metal is the weak
# one, of which Slang compares the old value alone: an add could be lost.
PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            name="spirv",
            suffix=".spv",
            atomics="native",
            possible_atomics=ATOMICS,
            has_subgroups=True,
            limits=_NATIVE,
        ),
        Profile(
            name="spirv-core",
            suffix=".spv",
            atomics="exchange",
            possible_atomics=ATOMICS,
            has_subgroups=False,
            limits=_PORTABLE,
        ),
        Profile(
            name="hlsl",
            suffix=".hlsl",
            atomics="compare-exchange",
            possible_atomics=("exchange", "compare-exchange"),
            has_subgroups=True,
            limits=_HLSL,
        ),
        Profile(
            name="wgsl",
            suffix=".wgsl",
            atomics="exchange",
            possible_atomics=("exchange",),
            has_subgroups=False,
            are_waves_free=False,
            has_double=False,
            limits=_PORTABLE,
        ),
        Profile(
            name="metal",
            suffix=".metal",
            atomics="native",
            possible_atomics=("native", "exchange"),
            has_subgroups=True,
            has_double=False,
            limits=_METAL,
        ),
    )
}
DEFAULT_TARGETS = ("spirv", "hlsl", "wgsl")


def profiles_of(targets: Iterable[str]) -> tuple[Profile, ...]:
    """The profiles of `targets`, each once, in the order of the table; commas separate too.

    Raises:
        CompileError: SR0504, where there is no such target; SR0713, where none is named.
    """
    wanted = [name.strip() for each in targets for name in each.split(",") if name.strip()]
    names = ", ".join(f"`{name}`" for name in PROFILES)
    for target in wanted:
        if target not in PROFILES:
            raise error("SR0504", target=target, targets=names)
    if not wanted:
        raise error("SR0713", targets=names)
    return tuple(profile for name, profile in PROFILES.items() if name in wanted)
