"""Built files -> whether their gradients are right: `--verify`.

Each entry is loaded from the very bytes that will be written, one target at a time, and run on this
machine's wgpu device against finite differences of itself. Invariant: what could not be judged is
said with the reason, never counted as verified.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shaderad.bundle.document import Manifest
from shaderad.bundle.graph_entries import BuiltGraph
from shaderad.bundle.loading import entries_of, read_manifest
from shaderad.bundle.made_up import MadeUp, NotMadeUpError, graph_call, kernel_call
from shaderad.bundle.manifest import BuiltKernel
from shaderad.bundle.programs import launch_shaped_names
from shaderad.check import gradcheck, is_exempt
from shaderad.diagnostics import Error, GradientError, error
from shaderad.ir.nodes import Kernel
from shaderad.runtime import open_runtime
from shaderad.session.built_targets import TARGETS_BY_RUNTIME
from shaderad.session.devices import Device
from shaderad.session.run_graph import kernels_of

Entry = BuiltKernel | BuiltGraph
RUNTIME = "wgpu"


@dataclass(frozen=True, slots=True)
class Verification:
    """What came of one entry for one target."""

    entry: str
    target: str
    reason: str
    """Why it was not verified; empty where it was."""


def verified(
    contents: Mapping[str, bytes], entries: Iterable[Entry], tell: Callable[[str], None]
) -> tuple[Verification, ...]:
    """Checks every entry for every target.

    Raises:
        GradientError: SR0751, where a gradient is wrong.
    """
    entries = tuple(entries)
    try:
        device = Device(open_runtime(RUNTIME))  # not the program's: it becomes nobody's default
    except Error as failure:
        return tuple(_unverified(entries, f"no device: {failure.message}"))
    try:
        with tempfile.TemporaryDirectory() as folder, device:
            for name, content in contents.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            return tuple(_verifications(Path(folder), entries, device, tell))
    finally:
        device.close()


def _unverified(entries: Iterable[Entry], reason: str) -> Iterator[Verification]:
    for entry in entries:
        for target in entry.by_target:
            yield Verification(entry.name, target, reason)


def _verifications(
    folder: Path, entries: Iterable[Entry], device: Device, tell: Callable[[str], None]
) -> Iterator[Verification]:
    for entry in entries:
        for target, programs in entry.by_target.items():
            tell(f"verify {entry.name} for {target}")
            reason = ""
            if target not in TARGETS_BY_RUNTIME[RUNTIME]:
                reason = "no runtime here takes it"
            elif programs.refusal is not None:
                reason = f"it has no backward: {programs.refusal.reason}"
            elif any(map(is_exempt, _kernels(entry))):
                reason = "a derivative in it has `check=False`"
            else:
                manifest = _of_target(read_manifest(folder), target)
                function = entries_of(folder, manifest)[entry.name]
                reason = _judged(entry, target, function, device)
            yield Verification(entry.name, target, reason)


def _of_target(manifest: Manifest, target: str) -> Manifest:
    """The manifest of a build for this target alone."""
    for one in manifest.kernels:
        one.targets = {target: one.targets[target]}
    for one in manifest.graphs:
        one.targets = {target: one.targets[target]}
    return manifest


def _judged(entry: Entry, target: str, function: Callable[..., Any], device: Device) -> str:
    """Why an entry could not be judged; empty where its gradient is right.

    Raises:
        GradientError: SR0751, where it is wrong.
    """
    try:
        call = _made_up(entry)
        gradcheck(function, *call.args, **call.call)
        device.synchronize()
    except NotMadeUpError as lack:
        return str(lack)
    except GradientError as wrong:
        raise error(
            "SR0751",
            entry.span,
            name=entry.name,
            target=target,
            reason=wrong.message,
            adapter=device.capabilities.adapter,
        ) from None
    except Error as failure:
        return f"{failure.code}: {failure.message}"
    return ""


def _kernels(entry: Entry) -> Sequence[Kernel]:
    """What the entry runs of the user's kernels."""
    if isinstance(entry, BuiltKernel):
        return [entry.kernel]
    return kernels_of(entry.graph.variant.graph)


def _made_up(entry: Entry) -> MadeUp:
    if isinstance(entry, BuiltKernel):
        return kernel_call(entry.kernel, launch_shaped_names(entry.kernel))
    return graph_call(entry.graph.signature)
