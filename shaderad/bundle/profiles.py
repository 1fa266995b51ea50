"""What each target of `build` may use: the one table.

A target of `build` is a compiler target with a set of features. The gradients of both SPIR-V
profiles are the same; they are summed in another way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shaderad.diagnostics import error


@dataclass(frozen=True, slots=True)
class Profile:
    """One target: how kernels are lowered for it and what its files are called."""

    name: str
    suffix: str
    atomics: str
    """How floats are added, of `possible_atomics`; see `lower.bindings.Variant`."""
    has_subgroups: bool
    storage_buffer_limit: int
    possible_atomics: tuple[str, ...]
    has_double: bool = True

    @property
    def features(self) -> tuple[str, ...]:
        """What kernels may use besides what their own types ask for."""
        known = {"float-atomics": self.atomics == "native", "subgroups": self.has_subgroups}
        return tuple(name for name, is_allowed in known.items() if is_allowed)


# WebGPU guarantees 8 storage buffers an entry point, which is also what portable SPIR-V may
# take for granted. Elsewhere drivers have more; 16 leaves room beside what the host itself binds.
_PORTABLE_BUFFERS = 8
_NATIVE_BUFFERS = 16

# HLSL and WGSL have no atomic add of floats. The compare-exchange of WGSL and Metal is the weak
# one, of which Slang compares the old value alone: an add could be lost.
_ALL = ("native", "exchange", "compare-exchange")
_WHOLE_NUMBERS = ("exchange", "compare-exchange")
_WITH_WEAK_EXCHANGE = ("native", "exchange")

PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("spirv", ".spv", "native", True, _NATIVE_BUFFERS, _ALL),
        Profile("spirv-core", ".spv", "exchange", False, _PORTABLE_BUFFERS, _ALL),
        Profile("hlsl", ".hlsl", "compare-exchange", True, _NATIVE_BUFFERS, _WHOLE_NUMBERS),
        Profile(
            "wgsl", ".wgsl", "exchange", False, _PORTABLE_BUFFERS, ("exchange",), has_double=False
        ),
        Profile(
            "metal", ".metal", "native", True, _NATIVE_BUFFERS, _WITH_WEAK_EXCHANGE,
            has_double=False,
        ),
    )
}  # fmt: skip
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
