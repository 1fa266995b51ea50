"""The features and limits of a device as data; checks programs and arrays against them.

Code above `runtime/` reads `Capabilities`; it never asks which runtime it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from shaderad.compiler.artifact import BindingAccess, Program
from shaderad.compiler.launch_shapes import LaunchShape, launch_shape
from shaderad.diagnostics import error

UNIFORM_ALIGNMENT = 16
"""The size of a uniform struct is a multiple of this in every layout."""

WORD_BYTES = 4

Atomics = Literal["native", "compare-exchange", "exchange"]
"""The ways of adding a float to memory that threads share."""

Kind = Literal["discrete", "integrated", "virtual", "software", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The features and limits of an opened device."""

    runtime: str
    """`wgpu` or `slangpy`."""
    adapter: str
    kind: Kind
    api: str
    """`vulkan`, `d3d12`, `metal`, `cuda`."""
    driver: str
    """The driver and version that the runtime reports; part of the key of cached verdicts."""
    features: frozenset[str]
    """A subset of `compiler.artifact.FEATURES`."""
    formats: tuple[str, ...]
    """The formats of code that it accepts, such as `spirv`, preferred ones first."""
    atomics: Atomics
    has_group_float_atomics: bool = False
    """True if native additions of floats work in the memory of a workgroup, too."""
    survives_exchange: bool = True
    """False if adding floats by exchange ends the process."""
    storage_buffer_limit: int
    """Storage buffers that one entry point may bind."""
    binding_bytes_limit: int
    """The most bytes of one storage buffer that a shader can reach."""
    binding_alignment: int
    """The alignment of the start of a binding in bytes; 0 if buffers are always bound whole."""
    buffer_bytes_limit: int
    """The maximum size of a buffer in bytes."""
    uniform_bytes_limit: int
    """The maximum size of a constant buffer in bytes."""
    workgroup_count_limit: int
    """Maximum workgroups along one dimension of a dispatch."""
    workgroup_threads_limit: int
    """Maximum threads per workgroup."""
    group_bytes_limit: int
    """Maximum bytes of group memory per workgroup."""
    subgroup_size: int
    """The smallest size of a subgroup whose lanes follow the order of threads; 1 if the device
    has no such subgroups."""
    texture_formats: frozenset[str]
    """The keys of `texture_formats.TEXTURE_FORMATS` that it supports."""
    filtered_formats: frozenset[str]
    """The texture formats that samplers can filter."""
    texture_extent_limits: tuple[int, int, int]
    """Maximum texels along an axis of textures of one, two and three dimensions."""
    texture_layer_limit: int
    """Maximum layers of a texture."""
    has_line_levels: bool
    """True if textures of one dimension can have mip levels."""
    texture_limit: int
    """Textures that one entry point may bind."""
    sampler_limit: int
    """Samplers that one entry point may bind."""

    @property
    def is_parallel(self) -> bool:
        """True if threads of a workgroup run in parallel; software devices run them in turn."""
        return self.kind != "software"

    @property
    def group_atomics(self) -> Atomics:
        """The kind of atomic additions of floats in group memory."""
        lacks = self.atomics == "native" and not self.has_group_float_atomics
        return "exchange" if lacks else self.atomics

    @property
    def launch_shape(self) -> LaunchShape:
        """How work is laid out over the threads."""
        return launch_shape(
            is_parallel=self.is_parallel,
            has_float_atomics=self.atomics == "native",
            lanes=self.subgroup_size,
            thread_limit=self.workgroup_threads_limit,
            has_long_atomics="int64-atomics" in self.features,
        )


def padded(byte_count: int) -> int:
    """`byte_count` rounded up to whole words, the unit of copies and clears."""
    return (byte_count + WORD_BYTES - 1) // WORD_BYTES * WORD_BYTES


def words_bytes(program: Program) -> int:
    """The size of the words of `program`; 0 without a constant buffer."""
    return WORD_BYTES * len(program.parameter_words) if _has_constants(program) else 0


def uniform_bytes(program: Program) -> int:
    """The size of the constant buffer of `program`, rounded up as layouts do; 0 without one."""
    count = max(1, -(-len(program.parameter_words) * WORD_BYTES // UNIFORM_ALIGNMENT))
    return count * UNIFORM_ALIGNMENT if _has_constants(program) else 0


def _has_constants(program: Program) -> bool:
    return any(binding.access is BindingAccess.UNIFORM for binding in program.bindings)


def check_program(capabilities: Capabilities, program: Program) -> None:
    """Raises SR0606, SR0607, SR0608 or SR0626 if the device lacks what `program` needs."""
    missing = program.features - capabilities.features
    if missing:
        raise error(
            "SR0608",
            program=program.name,
            missing=", ".join(sorted(missing)),
            adapter=capabilities.adapter,
        )
    counts = Counter(binding.access for binding in program.bindings)
    buffers = counts[BindingAccess.READ] + counts[BindingAccess.WRITE]
    for code, count, limit in (
        ("SR0607", buffers, capabilities.storage_buffer_limit),
        ("SR0626", counts[BindingAccess.TEXTURE], capabilities.texture_limit),
        ("SR0634", counts[BindingAccess.SAMPLER], capabilities.sampler_limit),
    ):
        if count > limit:
            adapter = capabilities.adapter
            raise error(code, program=program.name, count=count, adapter=adapter, limit=limit)
    check_bytes(capabilities, words_bytes(program), capabilities.uniform_bytes_limit)


def check_bytes(capabilities: Capabilities, byte_count: int, limit: int) -> None:
    """Raises SR0606 if an array is larger than `limit`, the range that a shader can reach."""
    if byte_count > limit:
        raise error("SR0606", adapter=capabilities.adapter, byte_count=byte_count, limit=limit)


def limited(capabilities: Capabilities, limits: Mapping[str, Any]) -> Capabilities:
    """`capabilities` with the fields in `limits` replaced, for tests and portable builds.

    Raises:
        DeviceError: SR0613, if a name is no field of `Capabilities`; SR0621, if a value has
            another type than the field.
    """
    names = {field.name for field in fields(Capabilities)}
    for name, value in limits.items():
        if name not in names:
            raise error("SR0613", name=name, known=", ".join(sorted(names)))
        current: object = getattr(capabilities, name)
        wanted = type(current)
        if type(value) is not wanted or (isinstance(value, int) and value < 0):
            raise error("SR0621", name=name, found=repr(value), wanted=wanted.__name__)
    forced = replace(capabilities, **limits)
    if "subgroups" not in forced.features:
        forced = replace(forced, subgroup_size=1)
    if forced.atomics != "native":
        return replace(forced, features=forced.features - {"float-atomics"})
    return forced
