"""Built files -> the outcome of `--verify`, which compares gradients with finite differences.

Each entry is loaded from the bytes that will be written, one target at a time, and run on this
machine's wgpu device with synthetic arguments. Every extent is `EXTENT`, so integers below it are
valid indices of every array. Integer arrays are permutations, so writes at their elements hit no
element twice. Invariant: an entry that could not be tested is reported with the reason, and never
counted as verified.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from shaderad.arrays import trees
from shaderad.bundle.format.document import Manifest
from shaderad.bundle.read.loading import entries_of, read_manifest
from shaderad.bundle.write.programs import AnyBuild, ChosenKernel, launch_shaped_names
from shaderad.calls.signatures import GraphSignature
from shaderad.check import gradcheck, is_exempt
from shaderad.device.devices import Device
from shaderad.diagnostics import Error, GradientError, error
from shaderad.execute.derivative_graphs import kernels_of
from shaderad.ir.nodes import Kernel
from shaderad.ir.types import (
    Access,
    BufferType,
    Kind,
    Matrix,
    ResourceType,
    Scalar,
    Struct,
    Type,
    Vector,
)
from shaderad.lower.bindings import Mode
from shaderad.lower.targets import targets_in
from shaderad.runtime import open_runtime
from shaderad.trace.calls import Placeholder

RUNTIME = "wgpu"


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome for one entry and target."""

    entry: str
    target: str
    reason: str
    """The reason why the gradient was not verified; empty if it was."""


def verified(
    contents: Mapping[str, bytes], builds: Sequence[AnyBuild], tell: Callable[[str], None]
) -> tuple[Verification, ...]:
    """Checks every entry for every target.

    Args:
        contents: The files of the output folder, by path.
        builds: The entries.
        tell: Called with a line about each check before it runs.

    Raises:
        GradientError: SR0751, if a gradient is wrong.
    """
    try:
        # Not by `open_device`, so it does not become the default.
        device = Device(open_runtime(RUNTIME))
    except Error as failure:
        reason = f"no device: {failure.message}"
        return tuple(
            Verification(build.name, target, reason)
            for build in builds
            for target in build.by_target
        )
    try:
        with tempfile.TemporaryDirectory() as folder, device:
            for name, content in contents.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            return tuple(_verifications(Path(folder), builds, device, tell))
    finally:
        device.close()


def _verifications(
    folder: Path, builds: Iterable[AnyBuild], device: Device, tell: Callable[[str], None]
) -> Iterator[Verification]:
    for build in builds:
        for target, programs in build.by_target.items():
            tell(f"verify {build.name} for {target}")
            refusal = programs.refusals.get(Mode.BACKWARD)
            if target not in targets_in(device.capabilities.formats):
                reason = "no runtime here takes it"
            elif refusal is not None:
                reason = f"it has no backward: {refusal.reason}"
            elif any(map(is_exempt, _kernels(build))):
                reason = "a derivative in it has `check=False`"
            else:
                manifest = _for_target(read_manifest(folder), target)
                function = entries_of(folder, manifest)[build.name]
                reason = _checked(build, target, function, device)
            yield Verification(build.name, target, reason)


def _for_target(manifest: Manifest, target: str) -> Manifest:
    """`manifest`, reduced in place to one target."""
    for entry in manifest.entries:
        for other in entry.targets.keys() - {target}:
            del entry.targets[other]
    return manifest


def _checked(build: AnyBuild, target: str, function: Callable[..., Any], device: Device) -> str:
    """Runs `gradcheck` on `function`; returns the reason if that is impossible, else "".

    Raises:
        GradientError: SR0751, if the gradient is wrong.
    """
    try:
        call = _synthetic_call(build)
        gradcheck(function, *call.args, **call.keywords)
        device.synchronize()
    except NotSyntheticError as lack:
        return str(lack)
    except GradientError as wrong:
        raise error(
            "SR0751",
            build.span,
            name=build.name,
            target=target,
            reason=wrong.message,
            adapter=device.capabilities.adapter,
        ) from None
    except Error as failure:
        return f"{failure.code}: {failure.message}"
    return ""


def _kernels(build: AnyBuild) -> Sequence[Kernel]:
    """The user's kernels that the entry runs."""
    source = build.source
    if isinstance(source, ChosenKernel):
        return [source.kernel]
    return kernels_of(source.variant.graph)


def _synthetic_call(build: AnyBuild) -> SyntheticCall:
    source = build.source
    if isinstance(source, ChosenKernel):
        return kernel_call(source.kernel, launch_shaped_names(source.kernel))
    return graph_call(source.signature)


EXTENT = 5
"""Odd, and larger than the number of components of a vector."""
_LOW, _HIGH = 0.25, 1.25
"""The range of floats, which avoids 0 and other points without a derivative."""


class NotSyntheticError(Exception):
    """A parameter has no synthetic argument; the text names the parameter or its type."""


@dataclass(frozen=True, slots=True)
class SyntheticCall:
    """The positional arguments and keywords of a call."""

    args: list[Any]
    keywords: dict[str, Any] = field(default_factory=dict[str, Any])


def kernel_call(kernel: Kernel, launch_shaped: frozenset[str]) -> SyntheticCall:
    """A call of a kernel.

    Raises:
        NotSyntheticError: The kernel takes pointers, or writes to arrays in structs.
    """
    random = np.random.default_rng(0)
    written = {b.path for b in kernel.buffers if b.access is not Access.IN}
    args = [
        _parameter(p.type, p.name, random)
        for p in kernel.parameters
        if not p.is_const and (p.name,) not in written
    ]
    shapes = {
        b.name: (EXTENT,) * b.type.rank
        for b in kernel.buffers
        if b.access is not Access.IN and b.name not in launch_shaped
    }
    keywords: dict[str, Any] = {"dim": (EXTENT,) * len(kernel.index_names)}
    return SyntheticCall(args, {**keywords, "shapes": shapes} if shapes else keywords)


def graph_call(signature: GraphSignature) -> SyntheticCall:
    """A call of a graph; every named size is `EXTENT`.

    Raises:
        NotSyntheticError: The graph takes pointers.
    """
    random = np.random.default_rng(0)

    def argument(leaf: Any) -> Any:
        if not isinstance(leaf, Placeholder):
            return leaf
        wanted = signature.wanted[leaf.position]
        shape = [EXTENT if isinstance(n, str) else n for n in wanted.extents or ()]
        return _values(wanted.element, shape, random)

    passed = (tree for name, tree in signature.skeleton.items() if name not in signature.fixed)
    return SyntheticCall([trees.mapped(argument, tree) for tree in passed])


def _parameter(t: Type, name: str, random: np.random.Generator) -> Any:
    if isinstance(t, ResourceType):
        raise NotSyntheticError(f"`{name}` is a `{t}`")
    if isinstance(t, BufferType):
        if t.access is not Access.IN:
            raise NotSyntheticError(f"`{name}` is written through a struct")
        return _values(t.element, (EXTENT,) * t.rank, random)
    if isinstance(t, Struct):
        return {field: _parameter(inner, field, random) for field, inner in t.fields}
    return _values(t, (), random)


def _values(t: Type, shape: Sequence[int], random: np.random.Generator) -> Any:
    """An array of `shape` with elements of type `t`; a dict of arrays for a struct."""
    if isinstance(t, Struct):
        return {name: _values(inner, shape, random) for name, inner in t.fields}
    if isinstance(t, Matrix):
        return _numbers(t.element, (*shape, t.row_count, t.column_count), random)
    if isinstance(t, Vector):
        return _numbers(t.element, (*shape, t.count), random)
    if isinstance(t, Scalar):
        return _numbers(t, shape, random)
    raise NotSyntheticError(f"there is no synthetic argument for `{t}`")


def _numbers(t: Scalar, shape: Sequence[int], random: np.random.Generator) -> Any:
    count = prod(shape)
    if t.kind in (Kind.FLOAT, Kind.HALF, Kind.DOUBLE):
        flat = random.uniform(_LOW, _HIGH, count)
    elif t.kind is Kind.BOOL:
        flat = random.integers(0, 2, count).astype(bool)
    else:
        rows = -(-count // EXTENT)
        flat = np.concatenate([random.permutation(EXTENT) for _ in range(max(1, rows))])[:count]
    values = flat.reshape(tuple(shape))
    return values if shape else values.item()
