"""What naga says of the code of a build, where ``--vet`` asks for it.

naga reads SPIR-V and WGSL for wgpu; it refuses some correct code, and ends the process on other.
With its verdicts in the manifest, a host of the same wgpu-native need not find out by itself.
`sad.load` does not read them: what it believes lies in this machine's cache, where asking here
leaves it. Invariant: they are there whole or the build fails, so that the bytes of a build depend
on what was asked for and on the version of wgpu-native alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from shaderad.bundle.document import Verdicts
from shaderad.bundle.programs import Dispatch
from shaderad.diagnostics import error
from shaderad.lower.artifact import Access, Program
from shaderad.lower.compile import TARGETS, VettingDevice, vet


def verdicts_of(
    dispatches: Iterable[tuple[str, Dispatch]], tell: Callable[[str], None]
) -> Verdicts:
    """The verdicts on what wgpu can be given, by file.

    Raises:
        DeviceError: SR0602, SR0603, where wgpu has no device.
        CompileError: SR0750, where that lacks what some code needs; SR0757, where naga gives no
            verdict; SR0506.
    """
    from shaderad.runtime.devices import vetting_device
    from shaderad.runtime.routes import WGPU_TARGETS, readable_by_naga

    device = vetting_device()
    found: dict[str, bool] = {}
    for file, dispatch in dispatches:
        program, code = dispatch.lowered.program, dispatch.code
        code = replace(code, target=TARGETS[code.target])
        if code.target not in WGPU_TARGETS:
            continue
        missing = _missing(program, device)
        if missing:
            raise error("SR0750", file=file, adapter=device.adapter, missing=", ".join(missing))
        tell(f"naga on {file}")
        verdict = vet(readable_by_naga(code), program.name, device)
        if not verdict.is_final:
            raise error("SR0757", file=file, reason=verdict.reason)
        found[file] = verdict.is_accepted
    return Verdicts(device.version, dict(sorted(found.items())))


def _missing(program: Program, device: VettingDevice) -> list[str]:
    """What would make the device refuse the program, whatever naga says."""
    found = [f"`{feature}`" for feature in sorted(program.features - device.offers)]
    count = sum(b.access is not Access.UNIFORM for b in program.bindings)
    is_crowded = count > device.limits["max-storage-buffers-per-shader-stage"]
    return [*found, f"{count} storage buffers"] if is_crowded else found
