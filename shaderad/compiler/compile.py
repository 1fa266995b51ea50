"""A `Program` -> `Code` of one target, through libslang in a child process and the disk cache.

The same program, library and compiler give the same bytes. A compiler that refuses, crashes or
hangs raises a `CompileError` in the host.
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

from shaderad.compiler import precompiled, slang_log
from shaderad.compiler.artifact import Code, Program, SlangDiagnostic, library_folder
from shaderad.compiler.cache import Cache, default_cache, key_of
from shaderad.compiler.child import Child, ChildDied, Children, ChildTimedOut, ChildUnavailable
from shaderad.compiler.options import FORMATS, OPTIONS
from shaderad.diagnostics import Error, error
from shaderad.diagnostics.progress import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

T = TypeVar("T")
_IMPORT = re.compile(r"^import (\w+);", re.MULTILINE)

TIMEOUT_SECONDS = 60.0
"""Limit of the child's processor time."""
PROCESSES = min(os.cpu_count() or 1, 4)
"""The number of child processes that compile side by side."""
# Part of the cache key: increment it whenever vetting becomes stricter.
_VETTING = "verdict 3"

_NAMES = {
    "": "the process that compiles",
    "Slang": "the Slang compiler",
    "naga": "naga, which reads shaders for wgpu,",
    "driver": "the driver's compiler",
    "device": "the driver, while it opened the device,",
}
"""The stages of the child in messages."""

# Profiles of `build` -> the compiler's target; the SPIR-V profiles differ in emitted text only.
TARGETS = {
    "spirv": "spirv",
    "spirv-core": "spirv",
    "hlsl": "hlsl",
    "wgsl": "wgsl",
    "metal": "metal",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The acceptance of code by a driver's compiler."""

    is_accepted: bool
    reason: str = ""
    """The compiler's message, the signal it died of, or the cause of a missing answer."""
    is_final: bool = True
    """False if another attempt may differ: no device, or a compiler that was stopped."""


@dataclass(frozen=True, slots=True)
class VettingDevice:
    """The device that vets, with the adapter, features and limits of the host's device."""

    adapter: str
    api: str
    driver: str
    """Name and version; `adapter`, `api` and `driver` are part of a verdict's cache key."""
    features: tuple[str, ...]
    """Names of the runtime."""
    limits: Mapping[str, int]
    version: str
    """The version of wgpu-native, which contains naga; part of the cache key."""
    offers: frozenset[str] = frozenset()
    """The features that it has of `lower.artifact.FEATURES`."""


def compile_program(
    program: Program,
    target: str,
    *,
    cache: Cache | None = None,
    library: Path | None = None,
    timeout: float = TIMEOUT_SECONDS,
    before: Callable[[], object] | None = None,
) -> Code:
    """Compiles the entry point of `program` for `target`, or reads it from the cache.

    The code of a module is its binary form.

    Args:
        program: An entry point, or a module.
        target: A key of `TARGETS`.
        cache: The cache of compiled code; `None`: `default_cache`.
        library: The folder of `shaderad.slang`; `None`: the installed one.
        timeout: Seconds of processor time after which the compiler is killed.
        before: Called before a compilation, not before a read of the cache.

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
    stored = _decoded(cache.get(key), tuple[bytes, tuple[SlangDiagnostic, ...]])
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
    """As `compile_program`, in parallel; raises the error of the first program that has one."""
    threads = ThreadPoolExecutor(PROCESSES, "compilers")
    try:
        codes = [threads.submit(compile_program, p, target, before=before) for p in programs]
        return [code.result() for code in codes]
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def code_with_lines(program: Program, target: str) -> Code | None:
    """The code with line directives to `program.slang`, for messages of validators.

    `None` if the compiler fails; bypasses the cache.
    """
    cache = default_cache()
    request = _request(program, target, cache, library_folder()) | {"lines": True}
    try:
        reply = _ask(request, program, target, cache, TIMEOUT_SECONDS)
    except Error:
        return None
    return Code(target, reply["code"]) if reply["code"] else None


def _request(program: Program, target: str, cache: Cache, library: Path) -> dict[str, Any]:
    """The child's request to compile `program`."""
    folders = library_path(cache=cache, library=library, modules=modules_of(program))
    return {
        "kind": "compile",
        "slang": program.slang,
        "entry": "" if program.is_module else program.name,
        "target": TARGETS[target],
        "folders": list(map(str, folders)),
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

    The first folders hold `modules` in binary form, if the cache folder can be written.
    """
    cache = cache or default_cache()
    folder = library or library_folder()
    cache_folder = cache.made()
    if cache_folder is None:
        return [folder]
    root, digest = cache_folder / "library", _library_digest(folder)
    binaries: list[Path] = []
    with _making.lock:
        for module in modules:
            key = key_of("library", module, repr(OPTIONS), digest, compiler_version())
            if (folder / f"{module}.slang").is_file():
                binary = precompiled.find_or_make(root, module, folder, key, children())
                binaries += [binary] if binary is not None else []
    return [*binaries, folder]


class _Making:
    """A lock under which threads precompile the library one after the other."""

    def __init__(self) -> None:
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        self.lock = threading.Lock()


_making = _Making()


@functools.cache
def prepare() -> None:
    """Starts to precompile the library in the background, once a process."""
    if compiler_version():
        threading.Thread(target=_make_library, daemon=True).start()


def _make_library() -> None:
    # A compilation reports faults of the cache.
    with contextlib.suppress(Error, OSError):
        library_path(modules=precompiled.MODULES[:2])


def modules_of(program: Program) -> tuple[str, ...]:
    """The modules of the library that `program` imports."""
    imports = frozenset(_IMPORT.findall(program.slang))
    return tuple(module for module in precompiled.MODULES if module in imports)


_FORMS = {"spirv": "SPIR-V", "wgsl": "WGSL"}


def vet(
    code: Code,
    entry: str,
    device: VettingDevice,
    *,
    cache: Cache | None = None,
    timeout: float = TIMEOUT_SECONDS,
) -> Verdict:
    """Creates a wgpu pipeline of SPIR-V or WGSL in the child process; final verdicts are cached.

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
    """Opens the device of the vetting process in the background."""
    if not vetter().is_started:
        threading.Thread(target=_open, args=(device,), daemon=True).start()


def _open(device: VettingDevice) -> None:
    with contextlib.suppress(ChildDied, ChildTimedOut, ChildUnavailable):
        vetter().request({"kind": "open", **_identity(device)}, TIMEOUT_SECONDS)


def _identity(device: VettingDevice) -> dict[str, Any]:
    """The part of a request by which the vetting process selects the device."""
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
    """As `vet`, on the best device of `process`; bypasses the cache.

    Raises:
        CompileError: SR0506, no child process.
    """
    target = TARGETS[code.target]
    request = {"kind": "vet", "target": target, "content": code.content, "entry": entry}
    return _verdict(request, timeout, process)


@functools.cache
def compiler_version() -> str:
    """The version of slangpy, whose wheel carries the compiler; empty if it is not installed."""
    try:
        return importlib.metadata.version("slangpy")
    except importlib.metadata.PackageNotFoundError:
        return ""


@functools.cache
def children() -> Children:
    """The processes that compile, each started at its first request."""
    return Children(PROCESSES)


@functools.cache
def vetter() -> Child:
    """The process that vets: it holds an open device, and any code may end it."""
    return Child()


def _library_digest(folder: Path) -> str:
    parts: list[str | bytes] = []
    for path in sorted(folder.glob("*.slang")):
        parts += [path.name, path.read_bytes()]
    return key_of(*parts)


def _decoded(stored: bytes | None, kind: type[T]) -> T | None:
    """The content of a cache entry; `None` for an entry in the form of another version."""
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


def _refusal(
    program: Program, target: str, diagnostics: tuple[SlangDiagnostic, ...], log: str
) -> Error:
    first = slang_log.failure(diagnostics)
    if first is None:
        first = SlangDiagnostic(
            "error", "", log.strip() or "no code, and no reason given", "", 0, ""
        )
    # The place of an internal error is in a separate note.
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
    """Writes the module to a file that a user can attach to an issue; returns its path."""
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
    cache_folder = cache.made()
    if cache_folder is not None:
        yield cache_folder / "failed"
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
    if "failure" in reply:  # No device, for example: the code is not at fault.
        return Verdict(False, reply["failure"], is_final=False)
    return Verdict("refused" not in reply, reply.get("refused", ""))


def _panic(stderr: str) -> str:
    """The message of a Rust panic, or the last printed line."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if "panicked at" in line:
            return " ".join(lines[number : number + 2])
    return lines[-1] if lines else ""
