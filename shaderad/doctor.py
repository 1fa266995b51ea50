"""Examines this machine: what shaderad can use, and remedies for what it cannot.

Invariant: a driver, runtime or validator that crashes or hangs costs one finding, never the report.
Each runs in a child process with a time limit; `python -m shaderad.doctor NAME` tries a runtime.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import re
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast

from shaderad.compiler.artifact import FEATURES, Binding, BindingAccess, Program
from shaderad.compiler.cache import Cache, default_cache
from shaderad.compiler.compile import compile_program
from shaderad.compiler.formats import FORMATS
from shaderad.compiler.libslang import find_library
from shaderad.compiler.validate import Judgement, Status, validate, validator_names
from shaderad.diagnostics import Error
from shaderad.runtime.base import Runtime
from shaderad.runtime.devices import RUNTIMES, has_nvidia_driver, runtime_module
from shaderad.runtime.texture_formats import TEXTURE_FORMATS

Kind = Literal["ok", "none", "failed", "fact"]
"""`none` is an optional part that is missing; `fact` is neither good nor bad."""

PROBE_SECONDS = 90
PACKAGES = (*RUNTIMES, "numpy")

DOUBLE = Program(
    name="double_each",
    slang="""
[[vk::binding(0, 0)]] StructuredBuffer<float> x;
[[vk::binding(1, 0)]] RWStructuredBuffer<float> y;

[shader("compute")]
[numthreads(64, 1, 1)]
void double_each(uint3 thread : SV_DispatchThreadID)
{
    if (thread.x < 4)
        y[thread.x] = 2.0 * x[thread.x];
}
""",
    workgroup=(64, 1, 1),
    bindings=(Binding(0, "x", BindingAccess.READ), Binding(1, "y", BindingAccess.WRITE)),
)
"""The smallest program that tests compilation, dispatch and read-back."""

DRIVER_REMEDY = (
    "install a Vulkan driver: your GPU's own, or Mesa 23 or newer\n"
    "Debian, Ubuntu: apt-get install mesa-vulkan-drivers libvulkan1\n"
    "Debian 12: the same with -t bookworm-backports, once backports are among apt's sources"
)
CONTAINER_REMEDY = (
    "in a container with an NVIDIA GPU: NVIDIA_DRIVER_CAPABILITIES=all when it starts, and\n"
    "libvulkan1; until then slangpy's CUDA device is used, with what the CUDA toolkit compiles"
)
REMEDY_BY_SYMPTOM = (
    (
        r"for CUDA here",
        "install the CUDA toolkit, or a Vulkan driver, which needs none",
    ),
    (
        r"cannot open shared object",
        "install the library it names (Debian, Ubuntu: apt-get install libatomic1 libx11-6)",
    ),
    (r"which is not installed", "pip install {runtime}"),
    (r"No module named", f"install it again: pip install --force-reinstall {' '.join(RUNTIMES)}"),
    (r"died of|no answer", "update the driver, or choose another device with SHADERAD_DEVICE"),
    (r"could not open|no adapter|create device", DRIVER_REMEDY),
)
"""Patterns for the text of a failure of `runtime`, with remedies; the first match applies."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one examination."""

    area: str
    subject: str
    status: Kind
    detail: str
    """One line or several."""
    remedy: str = ""


def examine() -> list[Finding]:
    """Examines everything; runtimes in parallel, because each takes a second."""
    with ThreadPoolExecutor(len(RUNTIMES)) as pool:
        runtimes = pool.map(_runtime, RUNTIMES)
        findings = [*_versions(), *_vulkan_drivers(), *_compiler()]
        return [*findings, *chain.from_iterable(runtimes), _cache()]


def examine_deeply() -> list[Finding]:
    """Runs trials on every adapter, one finding each: see `shaderad/deep.py`."""
    # Imported here because it uses the public API, which loads all of shaderad.
    from shaderad.deep import examine_adapters

    findings: list[Finding] = []
    for device, adapter, outcomes in examine_adapters():
        faults = [each for each in outcomes if each.status != "passed"]
        status = "failed" if any(each.status == "failed" for each in faults) else "ok"
        first = f"{len(outcomes) - len(faults)} of {len(outcomes)} pass on {adapter}"
        reasons = [f"{f.name} {f.status}: {f.detail.splitlines()[0]}" for f in faults]
        findings.append(Finding("trials", device, status, "\n".join([first, *reasons])))
    return findings


def can_run(findings: Sequence[Finding]) -> bool:
    """True if at least one runtime works."""
    return any(finding.area == "runtimes" and finding.status == "ok" for finding in findings)


def report_lines(findings: Sequence[Finding]) -> Iterator[tuple[str, Kind | Literal["area"]]]:
    """The lines of the report, each with its kind, which determines its colour."""
    order = dict.fromkeys(finding.area for finding in findings)
    width = max(len(finding.subject) for finding in findings)
    margin = " " * (width + 12)
    for area in order:
        yield area, "area"
        for finding in (each for each in findings if each.area == area):
            status = finding.status
            mark = "" if status == "fact" else status
            first, *rest = finding.detail.splitlines() or [""]
            yield f"  {mark:<6}  {finding.subject:<{width}}  {first}".rstrip(), status
            for line in rest:
                yield margin + line, "fact"
            for line in finding.remedy.splitlines():
                yield f"{margin}-> {line}", status


def _versions() -> Iterator[Finding]:
    yield Finding("versions", "python", "fact", f"{platform.python_version()}, {sys.executable}")
    yield Finding("versions", "system", "fact", platform.platform())
    for package in ("shaderad", *PACKAGES):
        try:
            yield Finding("versions", package, "fact", metadata.version(package))
        except metadata.PackageNotFoundError:
            yield Finding("versions", package, "none", "not installed")


def _vulkan_drivers() -> list[Finding]:
    """The driver manifests that the Vulkan loader reads."""
    if sys.platform != "linux":
        return []
    manifests = sorted(_vulkan_manifests())
    if not manifests:
        remedy = CONTAINER_REMEDY if has_nvidia_driver() else DRIVER_REMEDY
        return [Finding("drivers", "vulkan", "failed", "no driver is installed", remedy)]
    return [Finding("drivers", path.stem, "fact", str(path)) for path in manifests]


def _vulkan_manifests() -> Iterator[Path]:
    chosen = os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES")
    if chosen:
        yield from (Path(name) for name in chosen.split(os.pathsep) if Path(name).is_file())
        return
    data = os.environ.get("XDG_DATA_DIRS", "/usr/local/share:/usr/share").split(os.pathsep)
    home = os.environ.get("XDG_DATA_HOME", str(Path.home() / ".local/share"))
    for folder in dict.fromkeys(("/etc", home, *data)):
        yield from (Path(folder) / "vulkan" / "icd.d").glob("*.json")


def _runtime(name: str) -> Iterator[Finding]:
    """The adapters and capabilities of one runtime, from a child process."""
    answer = _ask_child(name)
    for adapter in answer.get("adapters", ()):
        yield Finding("adapters", name, "fact", adapter)
    if "failure" in answer:
        failure = str(answer["failure"])
        remedies = (text for pattern, text in REMEDY_BY_SYMPTOM if re.search(pattern, failure))
        remedy = next(remedies, "").format(runtime=name)
        yield Finding("runtimes", name, "failed", failure, remedy)
    else:
        detail = _capability_text(answer["capabilities"], answer["route"])
        yield Finding("runtimes", name, "ok", detail)


def _capability_text(capabilities: dict[str, Any], route: str) -> str:
    features = set(capabilities["features"])
    megabytes = capabilities["binding_bytes_limit"] >> 20
    lines = [
        f"{capabilities['adapter']} ({capabilities['kind']}, {capabilities['api']})",
        f"driver {capabilities['driver']}",
        f"has {', '.join(sorted(features)) or 'no optional feature'}",
        f"lacks {', '.join(sorted(FEATURES - features)) or 'nothing'}",
        f"gradients add by {capabilities['atomics']} atomics; {route}",
        f"{capabilities['storage_buffer_limit']} storage buffers of up to {megabytes} MiB",
        _texture_text(capabilities),
    ]
    return "\n".join(lines)


def _texture_text(capabilities: dict[str, Any]) -> str:
    """The limits of textures, the missing formats, and the formats that cannot be filtered."""
    supported = set(capabilities["texture_formats"])
    lacking = sorted(TEXTURE_FORMATS.keys() - supported)
    unfiltered = sorted(supported - set(capabilities["filtered_formats"]))
    extent, layers = capabilities["texture_extent_limits"][1], capabilities["texture_layer_limit"]
    return "; ".join([
        f"textures of up to {extent} x {extent} texels, and {layers} layers",
        f"filters {'all but ' * bool(unfiltered)}{', '.join(unfiltered) or 'all'} of their formats",
        *([f"lacks {', '.join(lacking)}"] if lacking else []),
    ])  # fmt: skip


def _ask_child(runtime: str) -> dict[str, Any]:
    """The output of the child process that tries `runtime`, or a description of how it ended."""
    command = (sys.executable, "-m", "shaderad.doctor", runtime)
    try:
        done = _run(command, PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        return {"failure": f"gave no answer in {PROBE_SECONDS} s"}
    if done.returncode < 0:
        return {"failure": f"its process died of {signal.Signals(-done.returncode).name}"}
    if done.returncode > 0:
        last = done.stderr.strip().splitlines()[-1:] or ["without a word"]
        return {"failure": f"its process ended with {done.returncode}: {last[0]}"}
    # Drivers may print to standard output as well; the answer is the last line.
    return json.loads(done.stdout.splitlines()[-1])


def _try_runtime(name: str) -> dict[str, Any]:
    """Runs in the child process: opens runtime `name`, and runs `DOUBLE` if it can be compiled."""
    from shaderad.runtime import open_runtime

    try:
        # SHADERAD_DEVICE may name an adapter of this runtime.
        chosen = os.environ.get("SHADERAD_DEVICE", "")
        runtime = open_runtime(chosen if chosen.partition(":")[0] == name else name)
        adapters = runtime_module(name).list_devices()
        values = _doubled(runtime) if find_library() else None
    except Error as failure:
        return {"failure": "\n".join(filter(None, (failure.message, failure.note, failure.label)))}
    if values not in (None, (2, 4, 6, 8)):
        return {"failure": f"it doubles 1, 2, 3, 4 to {values}"}
    route = f"programs go in as {runtime.routes()[-1].target}" if values else "no program was tried"
    capabilities = dataclasses.asdict(runtime.capabilities)
    answer = {
        "adapters": [info.summary for info in adapters],
        "capabilities": {name: _jsonable(value) for name, value in capabilities.items()},
        "route": route,
    }
    runtime.close()
    return answer


def _jsonable(value: Any) -> Any:
    return sorted(cast("frozenset[str]", value)) if isinstance(value, frozenset) else value


def _doubled(runtime: Runtime) -> tuple[float, ...]:
    """1, 2, 3, 4 after `DOUBLE`."""
    x, y = runtime.allocate(16), runtime.allocate(16)
    runtime.write(x, 0, struct.pack("<4f", 1, 2, 3, 4))
    runtime.dispatch(runtime.pipeline(DOUBLE), {0: x, 1: y}, b"", (1, 1, 1))
    return struct.unpack("<4f", runtime.read([(y, 0, 16)])[0])


def _compiler() -> Iterator[Finding]:
    """libslang, and the validators of its output."""
    library = find_library()
    if library is None:
        detail = "not found: nothing can be compiled, folders of `shaderad build` run"
        remedy = "pip install --force-reinstall slangpy"
        yield Finding("compiler", "libslang", "none", detail, remedy)
        return
    try:
        # Without the cache, because a cache hit would hide a broken compiler.
        codes = [compile_program(DOUBLE, each, cache=Cache(None)) for each in FORMATS]
    except Error as failure:
        yield Finding("compiler", "libslang", "failed", f"{library}\n{failure.message}")
        return
    yield Finding("compiler", "libslang", "ok", str(library))
    for code in codes:
        for name in validator_names(code.format):
            judgement = validate(code, DOUBLE.name, name)
            if judgement is not None:
                yield _validator(judgement)


def _validator(judgement: Judgement) -> Finding:
    """The finding for a validator: optional, but failed if it is installed and refuses."""
    name, path, reason = judgement.validator, judgement.path, judgement.reason
    if judgement.status is Status.ACCEPTED:
        return Finding("validators", name, "ok", path)
    if not path:
        detail = f"{reason}; artifacts go unchecked by it"
        return Finding("validators", name, "none", detail, judgement.remedy)
    return Finding("validators", name, "failed", f"{path}\n{reason}", judgement.remedy)


def _cache() -> Finding:
    folder, fault = default_cache().folder, default_cache().fault()
    if folder is None:
        return Finding("cache", "folder", "none", "nothing is kept")
    if fault:
        remedy = "make it yours alone (chown, chmod 700), or name another one in SHADERAD_CACHE"
        return Finding("cache", "folder", "failed", f"{folder} {fault}, and is not used", remedy)
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        remedy = "name a folder you may write to in SHADERAD_CACHE"
        return Finding("cache", "folder", "failed", f"{folder} cannot be written to", remedy)
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return Finding("cache", "folder", "ok", f"{folder}, {len(sizes)} files, {sum(sizes) >> 20} MiB")


def _run(command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
        check=False,
    )


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(_try_runtime(sys.argv[1])) + "\n")
