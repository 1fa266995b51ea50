"""A `Program` -> `Code` of one target, through libslang in a child process and the disk cache.

The same program, library and compiler give the same bytes, whoever compiled them. A compiler that
refuses, crashes or hangs becomes a `CompileError`; it never takes the host down.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import re
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from shaderad.diagnostics import Error, error
from shaderad.diagnostics.progress import Work
from shaderad.lower import precompiled, slang_log
from shaderad.lower.artifact import Code, Diagnostic, Program, library_folder
from shaderad.lower.cache import Cache, default_cache, key_of
from shaderad.lower.child import Child, ChildDied, Children, ChildTimedOut, ChildUnavailable
from shaderad.lower.options import FORMATS, OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

T = TypeVar("T")
_IMPORT = re.compile(r"^import (\w+);", re.MULTILINE)

TIMEOUT_SECONDS = 60.0
"""Of the child's processor time."""
PROCESSES = min(os.cpu_count() or 1, 4)
"""That compile side by side."""
# Raised whenever the child asks more of a module, so that earlier verdicts are forgotten.
_VETTING = "verdict 3"

_NAMES = {
    "": "the process that compiles",
    "Slang": "the Slang compiler",
    "naga": "naga, which reads shaders for wgpu,",
    "driver": "the driver's compiler",
    "device": "the driver, while it opened the device,",
}
"""What the stages of the child are called."""

# A profile of `build` -> the compiler's target; both SPIR-V profiles differ in emitted text only.
TARGETS: dict[str, str] = {
    "spirv": "spirv",
    "spirv-core": "spirv",
    "hlsl": "hlsl",
    "wgsl": "wgsl",
    "metal": "metal",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a driver's own compiler takes some code."""

    is_accepted: bool
    reason: str = ""
    """Why not: its message, the signal it died of, or why it gave no answer."""
    is_final: bool = True
    """Asking again gives the same. Not so where there is no device, where the driver or naga was
    stopped because it took too long, or was killed."""


@dataclass(frozen=True, slots=True)
class VettingDevice:
    """The device that vets: the same adapter, features and limits as the host's."""

    adapter: str
    api: str
    driver: str
    """With its version; these three are part of the key under which a verdict is kept."""
    features: tuple[str, ...]
    """The runtime's own names."""
    limits: Mapping[str, int]
    version: str
    """Of wgpu-native, which holds naga; part of the cache key."""
    offers: frozenset[str] = frozenset()
    """The features out of `lower.artifact.FEATURES`."""


def compile_program(
    program: Program,
    target: str,
    *,
    cache: Cache | None = None,
    library: Path | None = None,
    timeout: float = TIMEOUT_SECONDS,
    before: Callable[[], object] | None = None,
) -> Code:
    """Compiles the entry point of `program` for `target`, or finds it in the cache.

    The code of a module is its binary form.

    Args:
        program: What to compile.
        target: A key of `TARGETS`.
        cache: Where finished code is kept; the user's cache folder if not given.
        library: The folder of `shaderad.slang`; the installed one if not given.
        timeout: Seconds of processor time after which the compiler is killed.
        before: Called before the compiler is asked, where it has to be.

    Raises:
        CompileError: SR0501 refused, SR0502 crashed, SR0503 took too long, SR0504 no such target,
            SR0505 no compiler installed, SR0506 no child process, SR0508 killed.
    """
    if target not in TARGETS:
        raise error("SR0504", target=target, targets=", ".join(f"`{name}`" for name in TARGETS))
    form = TARGETS[target]
    cache = cache or default_cache()
    folder = library or library_folder()
    digest = _library_digest(folder)
    options = repr((OPTIONS, FORMATS[form]))
    key = key_of("code", program.slang, program.name, form, options, digest, compiler_version())
    stored = _decoded(cache.get(key), tuple[bytes, tuple[Diagnostic, ...]])
    if stored is not None:
        return Code(target, *stored)
    if before is not None:
        before()
    with Work(program.name, "Slang"):
        request = _request(program, target, cache, folder)
        reply = _ask(request, program, target, cache, timeout)
    diagnostics = slang_log.parse(reply["log"])
    if not reply["code"] or slang_log.failure(diagnostics) or "error[" in reply["log"]:
        raise _refusal(program, target, diagnostics, reply["log"])
    cache.put(key, msgspec.msgpack.encode((reply["code"], diagnostics)))
    return Code(target, reply["code"], diagnostics)


def compile_programs(
    programs: Sequence[Program], target: str, *, before: Callable[[], object] | None = None
) -> list[Code]:
    """As `compile_program`, side by side; the error is that of the first that has one."""
    threads = ThreadPoolExecutor(PROCESSES, "compilers")
    try:
        codes = [threads.submit(compile_program, p, target, before=before) for p in programs]
        return [code.result() for code in codes]
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def code_with_lines(program: Program, target: str) -> Code | None:
    """As `compile_program`, but the code says which lines of `program.slang` it comes from.

    That is what the reader of a complaint about the code needs; nothing is kept.
    """
    cache = default_cache()
    request = _request(program, target, cache, library_folder()) | {"lines": True}
    try:
        reply = _ask(request, program, target, cache, TIMEOUT_SECONDS)
    except Error:
        return None
    return Code(target, reply["code"]) if reply["code"] else None


def _request(program: Program, target: str, cache: Cache, library: Path) -> dict[str, Any]:
    """What the child is told to compile."""
    folders = library_path(cache=cache, library=library, modules=modules_of(program))
    return {
        "kind": "compile",
        "slang": program.slang,
        "entry": "" if program.is_module else program.name,
        "target": TARGETS[target],
        "folders": [str(one) for one in folders],
        "digest": _library_digest(library),
        "lines": False,
    }


def library_path(
    *,
    cache: Cache | None = None,
    library: Path | None = None,
    modules: Sequence[str] = precompiled.MODULES,
) -> list[Path]:
    """The folders that a Slang session searches for the library, first to last.

    The first hold its `modules` in binary form, made at their first use, where the cache allows it.
    """
    cache = cache or default_cache()
    folder = library or library_folder()
    kept = cache.made()
    if kept is None:
        return [folder]
    root, digest = kept / "library", _library_digest(folder)
    found: list[Path] = []
    with _making.lock:
        for module in modules:
            key = key_of("library", module, repr(OPTIONS), digest, compiler_version())
            if (folder / f"{module}.slang").is_file():
                made = precompiled.find_or_make(root, module, folder, key, children())
                found += [made] if made is not None else []
    return [*found, folder]


class _Making:
    """Threads make modules of the library in turn, each of them once."""

    def __init__(self) -> None:
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        self.lock = threading.Lock()


_making = _Making()


@functools.cache
def prepare() -> None:
    """Begins, beside what goes on, what the first compilation on a machine would wait for.

    Once in a process: later devices find it made.
    """
    if compiler_version():
        threading.Thread(target=_make_library, daemon=True).start()


def _make_library() -> None:
    # Whoever compiles is told what is wrong with a cache.
    with contextlib.suppress(Error, OSError):
        library_path(modules=precompiled.MODULES[:2])


def modules_of(program: Program) -> tuple[str, ...]:
    """The modules of the library that `program` imports."""
    imports = frozenset(_IMPORT.findall(program.slang))
    return tuple(one for one in precompiled.MODULES if one in imports)


_FORMS = {"spirv": "SPIR-V", "wgsl": "WGSL"}


def vet(
    code: Code,
    entry: str,
    device: VettingDevice,
    *,
    cache: Cache | None = None,
    timeout: float = TIMEOUT_SECONDS,
) -> Verdict:
    """Whether wgpu makes a pipeline of SPIR-V or WGSL without coming to harm.

    The child tries it, unless it has done so before on this machine: whoever made the code is
    never believed. What is not final is not kept.

    Raises:
        CompileError: SR0506, no child process.
    """
    cache = cache or default_cache()
    request = {
        "kind": "vet",
        "target": TARGETS[code.target],
        "content": code.content,
        "entry": entry,
        **_identity(device),
    }
    key = key_of(_VETTING, device.version, msgspec.msgpack.encode(request))
    stored = _decoded(cache.get(key), Verdict)
    if stored is not None:
        return stored
    with Work(entry, "naga"):
        verdict = _verdict(request, timeout, vetter())
    if verdict.is_final:
        cache.put(key, msgspec.msgpack.encode(verdict))
    return verdict


def prepare_to_vet(device: VettingDevice) -> None:
    """Opens the device of the process that vets, beside what goes on, where there is none yet."""
    if not vetter().is_started:
        threading.Thread(target=_open, args=(device,), daemon=True).start()


def _open(device: VettingDevice) -> None:
    with contextlib.suppress(ChildDied, ChildTimedOut, ChildUnavailable):
        vetter().request({"kind": "open", **_identity(device)}, TIMEOUT_SECONDS)


def _identity(device: VettingDevice) -> dict[str, Any]:
    """What the process that vets finds the device by."""
    return {
        "adapter": device.adapter,
        "api": device.api,
        "driver": device.driver,
        "features": list(device.features),
        "limits": dict(sorted(device.limits.items())),
    }


def ask_naga(
    code: Code, entry: str, process: Child, *, timeout: float = TIMEOUT_SECONDS
) -> Verdict:
    """As `vet`, on the best device that `process` finds; nothing is kept.

    Raises:
        CompileError: SR0506, no child process.
    """
    target = TARGETS[code.target]
    request = {"kind": "vet", "target": target, "content": code.content, "entry": entry}
    return _verdict(request, timeout, process)


@functools.cache
def compiler_version() -> str:
    """The version of slangpy, whose wheel carries the compiler; empty where it is missing."""
    try:
        return importlib.metadata.version("slangpy")
    except importlib.metadata.PackageNotFoundError:
        return ""


@functools.cache
def children() -> Children:
    """The processes that compile, none of which is started before it is asked."""
    return Children(PROCESSES)


@functools.cache
def vetter() -> Child:
    """The process that vets: it has a device open, and may end by any code."""
    return Child()


def _library_digest(folder: Path) -> str:
    parts: list[str | bytes] = []
    for path in sorted(folder.glob("*.slang")):
        parts += [path.name, path.read_bytes()]
    return key_of(*parts)


def _decoded(stored: bytes | None, kind: type[T]) -> T | None:
    """What a cache entry says; `None` for one that another version wrote in another form."""
    if stored is None:
        return None
    try:
        return msgspec.msgpack.decode(stored, type=kind)
    except msgspec.MsgspecError:
        return None


def _ask(
    request: dict[str, Any], program: Program, target: str, cache: Cache, timeout: float
) -> dict[str, Any]:
    values: dict[str, Any] = {"entry": program.name, "target": target}
    size = len(program.slang.encode())
    try:
        reply = children().request(request, timeout)
    except ChildDied as death:
        stderr = death.stderr[-500:] or "it printed nothing"
        values |= {"cause": death.cause, "stderr": stderr}
        if death.was_killed:
            raise error("SR0508", **values, size=size) from None
        raise error("SR0502", **values, path=_keep_text(program, cache)) from None
    except ChildTimedOut as late:
        values |= {"compiler": _NAMES[late.stage], "excess": late.excess, "size": size}
        raise error("SR0503", **values, path=_keep_text(program, cache)) from None
    except ChildUnavailable as failure:
        raise error("SR0506", reason=failure) from None
    if "missing" in reply:
        raise error("SR0505")
    if "failure" in reply:
        path = _keep_text(program, cache)
        raise error("SR0502", **values, cause=reply["failure"], path=path, stderr="")
    return reply


def _refusal(program: Program, target: str, diagnostics: tuple[Diagnostic, ...], log: str) -> Error:
    first = slang_log.failure(diagnostics)
    if first is None:
        first = Diagnostic("error", "", log.strip() or "no code, and no reason given", "", 0, "")
    # An internal error names the place in a note of its own.
    placed = first if first.line else next((d for d in diagnostics if d.line), first)
    return error(
        "SR0501",
        slang_log.span_of(placed, program),
        entry=program.name,
        target=target,
        message=first.message,
        number=first.code or "no code",
        excerpt=placed.excerpt or "(no place given)",
    )


def _keep_text(program: Program, cache: Cache) -> Path:
    """Writes the module where a user can find and attach it."""
    name = f"{program.name}-{key_of(program.slang)[:12]}.slang"
    for folder in _folders_of_failures(cache):
        try:
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(program.slang, encoding="utf-8")
        except OSError:
            continue
        return folder / name
    return Path(name)


def _folders_of_failures(cache: Cache) -> Iterator[Path]:
    kept = cache.made()
    if kept is not None:
        yield kept / "failed"
    # Of a name that nobody else could have taken.
    yield Path(tempfile.mkdtemp(prefix="shaderad-"))


def _verdict(request: dict[str, Any], timeout: float, process: Child) -> Verdict:
    size = f"{len(request['content'])} bytes of {_FORMS[request['target']]}"
    try:
        reply = process.request(request, timeout)
    except ChildDied as death:
        if death.was_killed:
            reason = f"its process was killed over {size} ({death.cause}), as where memory ran out"
            return Verdict(False, reason, is_final=False)
        return Verdict(False, f"{death.cause}; {_panic(death.stderr)}".rstrip("; "))
    except ChildTimedOut as late:
        return Verdict(False, f"{_NAMES[late.stage]} {late.excess} over {size}", is_final=False)
    except ChildUnavailable as failure:
        raise error("SR0506", reason=failure) from None
    if "failure" in reply:  # No device, say: nothing that the code did.
        return Verdict(False, reply["failure"], is_final=False)
    return Verdict("refused" not in reply, reply.get("refused", ""))


def _panic(stderr: str) -> str:
    """The line of a Rust panic that says what happened; else the last that was printed."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if "panicked at" in line:
            return " ".join(lines[number : number + 2])
    return lines[-1] if lines else ""
