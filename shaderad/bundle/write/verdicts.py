"""naga's verdicts on the code of a build, for ``--vet``.

naga reads SPIR-V and WGSL for wgpu. It refuses some correct code, and ends the process on other.
With its verdicts in the manifest, a host with the same wgpu-native need not ask itself. `sad.load`
ignores them: it trusts the cache of its own machine alone, which asking here fills. Invariant: the
verdicts are complete or the build fails, so the bytes of a build depend only on its options and on
the version of wgpu-native.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from shaderad.bundle.format.document import Verdicts
from shaderad.bundle.write.programs import EntryPoint
from shaderad.compiler.artifact import Access, Program
from shaderad.compiler.compile import TARGETS, VettingDevice, vet
from shaderad.diagnostics import error


def verdicts_of(points: Iterable[tuple[str, EntryPoint]], tell: Callable[[str], None]) -> Verdicts:
    """The verdicts on the SPIR-V and WGSL files.

    Args:
        points: Every entry point, with the file of its code.
        tell: Called with a line about each file before naga reads it.

    Raises:
        DeviceError: SR0602, SR0603, if wgpu has no device.
        CompileError: SR0750, if the device lacks what a program needs; SR0757, if naga gives no
            verdict; SR0506, if the child process does not start.
    """
    from shaderad.runtime.devices import vetting_device
    from shaderad.runtime.routes import WGPU_TARGETS, readable_by_naga

    device = vetting_device()
    accepts: dict[str, bool] = {}
    for file, point in points:
        program, code = point.lowered.program, point.code
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
        accepts[file] = verdict.is_accepted
    return Verdicts(device.version, dict(sorted(accepts.items())))


def _missing(program: Program, device: VettingDevice) -> list[str]:
    """Features and storage buffers that the program needs and the device does not have."""
    missing = [f"`{feature}`" for feature in sorted(program.features - device.offers)]
    count = sum(b.access is not Access.UNIFORM for b in program.bindings)
    is_crowded = count > device.limits["max-storage-buffers-per-shader-stage"]
    return [*missing, f"{count} storage buffers"] if is_crowded else missing
