"""Built files -> the outcome of `--verify`: gradients against finite differences.

Each entry is loaded from the bytes that will be written, one target at a time, and run on this
machine's wgpu device. Invariant: an entry that could not be tested is reported with the reason,
never counted as verified.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shaderad.bundle.format.document import Manifest
from shaderad.bundle.read.loading import entries_of, read_manifest
from shaderad.bundle.write.made_up import NotSyntheticError, SyntheticCall, graph_call, kernel_call
from shaderad.bundle.write.programs import AnyBuild, ChosenKernel, launch_shaped_names
from shaderad.check import gradcheck, is_exempt
from shaderad.device.built_targets import TARGETS_BY_RUNTIME
from shaderad.device.devices import Device
from shaderad.diagnostics import Error, GradientError, error
from shaderad.execute.run_graph import kernels_of
from shaderad.ir.nodes import Kernel
from shaderad.lower.bindings import Mode
from shaderad.runtime import open_runtime

RUNTIME = "wgpu"


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome for one entry and target."""

    entry: str
    target: str
    reason: str
    """Why the gradient was not verified; empty if it was."""


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
        device = Device(open_runtime(RUNTIME))  # opened directly, so it becomes no default device
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
            if target not in TARGETS_BY_RUNTIME[RUNTIME]:
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
    for entry in (*manifest.kernels, *manifest.graphs):
        for other in entry.targets.keys() - {target}:
            del entry.targets[other]
    return manifest


def _checked(build: AnyBuild, target: str, function: Callable[..., Any], device: Device) -> str:
    """Runs `gradcheck` on `function`; returns why it could not, or an empty text.

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
