"""Builds that must fail: what is built, how, and what has to be said; see test_broken_builds.py."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from shaderad.compiler.cache import Cache
from shaderad.compiler.child import Child, ChildDied, ChildTimedOut, ChildUnavailable
from shaderad.compiler.validate import Judgement, Status

Break = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Broken:
    """One build that fails."""

    code: str
    """Of the error; empty where the command line itself is wrong."""
    words: str
    """What else standard error says."""
    source: str | bytes = ""
    """Of ``model.py``; empty: two kernels that are right."""
    arguments: tuple[str, ...] = ()
    """After ``build model.py -o out --no-validate``."""
    instead: tuple[str, ...] = ()
    """In place of all of it."""
    breaks: Break | None = None
    files: dict[str, str] = field(default_factory=dict[str, str])
    """More files beside the earlier build."""


HEAD = "import shaderad as sad\nfrom shaderad import float3\n\n\n"
FINE = f"""{HEAD}@sad.kernel
def scale(i: sad.Index, x: sad.In[float], by: float, y: sad.Out[float]):
    y[i] = x[i] * by


@sad.kernel
def shuffle(i: sad.Index, x: sad.In[float], target: sad.In[int], y: sad.Out[float]):
    y[target[i]] = x[i]
"""
THREE = ("--target", "spirv,hlsl,wgsl")


def kernel(body: str, parameters: str = "x: sad.In[float], y: sad.Out[float]") -> str:
    return f"{HEAD}@sad.kernel\ndef scale(i: sad.Index, {parameters}):\n    {body}\n"


def graph(parameters: str, body: str, before: str = "") -> str:
    return f"{HEAD}{before}@sad.graph\ndef energy({parameters}):\n    {body}\n"


# -- what breaks around a build -------------------------------------------------------------


def fails_to_write(number: int) -> Break:
    """The third file of a build cannot be written."""

    def break_it(patch: pytest.MonkeyPatch) -> None:
        write, written = Path.write_bytes, list[Path]()

        def write_bytes(path: Path, content: bytes) -> int:
            written.append(path)
            if len(written) == 3:
                raise OSError(number, errno.errorcode[number])
            return write(path, content)

        patch.setattr(Path, "write_bytes", write_bytes)

    return break_it


def has_no_room_for_a_folder(patch: pytest.MonkeyPatch) -> None:
    def mkdtemp(**kwargs: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")

    patch.setattr("shaderad.bundle.write.folder.tempfile.mkdtemp", mkdtemp)


def child(reply: dict[str, Any] | Exception) -> Break:
    """The compiler's process gives this answer, and nothing is in the cache."""

    def nothing(self: Cache, key: str) -> None:
        del self, key

    def break_it(patch: pytest.MonkeyPatch) -> None:
        def request(self: Child, message: dict[str, Any], timeout: float) -> dict[str, Any]:
            if isinstance(reply, Exception):
                raise reply
            return reply

        patch.setattr(Child, "request", request)
        patch.setattr(Cache, "get", nothing)

    return break_it


def validators_refuse(patch: pytest.MonkeyPatch) -> None:
    def judge(*question: object) -> Judgement:
        return Judgement("spirv-val", Status.REFUSED, "line 3: bad operand")

    patch.setattr("shaderad.bundle.write.validators.validate", judge)
    patch.setattr("shaderad.bundle.write.validators.default_cache", lambda: Cache(None))


def we_have_a_bug(patch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> bytes:
        raise KeyError("slot")

    patch.setattr("shaderad.bundle.write.stages.manifest_bytes", broken)


def a_person_interrupts(patch: pytest.MonkeyPatch) -> None:
    def interrupted(*given: object) -> bytes:
        raise KeyboardInterrupt

    patch.setattr("shaderad.bundle.write.stages.manifest_bytes", interrupted)


CROWDED = kernel(
    "y[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i]",
    ", ".join(f"{name}: sad.In[float]" for name in "abcdefgh") + ", y: sad.Out[float]",
)
DOUBLE = kernel("y[i] = x[i] * x[i]", "x: sad.In[sad.double], y: sad.Out[sad.double]")
CONST = kernel("y[i] = x[i] * n", "x: sad.In[float], n: sad.Const[int], y: sad.Out[float]")

CASES: dict[str, Broken] = {
    # The file.
    "no such file": Broken("SR0701", "nowhere.py", instead=("build", "nowhere.py", "-o", "out")),
    "a folder as file": Broken("SR0701", "`out`", instead=("build", "out", "-o", "other")),
    "not Python": Broken(
        "SR0701", "notes.txt", instead=("build", "notes.txt", "-o", "out"), files={"notes.txt": "x"}
    ),
    "syntax": Broken("SR0702", "def scale(:", f"{HEAD}def scale(:\n"),
    "indentation": Broken("SR0702", "IndentationError", f"{HEAD}def scale():\npass\n"),
    "import": Broken("SR0702", "nowhere_at_all", f"{HEAD}import nowhere_at_all\n"),
    "failing import": Broken("SR0702", "ZeroDivisionError", f"{HEAD}x = 1 / 0\n"),
    "exit": Broken("SR0702", "SystemExit", f"{HEAD}import sys\nsys.exit(0)\n"),
    "encoding": Broken("SR0702", "SyntaxError", b"x = '\xff'\n"),
    "no kernel": Broken("SR0703", "defines no kernel", HEAD),
    "no such entry": Broken("SR0704", "`scale`", instead=("build", "model.py:scael", "-o", "out")),
    "no such entry by option": Broken("SR0704", "`shuffle`", arguments=("--entry", "scael")),
    "two entries of one name": Broken(
        "SR0738", "def scale", kernel("y[i] = x[i]") + kernel("y[i] = 2.0 * x[i]")
    ),
    # Kernels and graphs.
    "type": Broken("SR0202", "y[i] = 'text'", kernel("y[i] = 'text'")),
    "unknown name": Broken("SR0203", "y[i] = z", kernel("y[i] = z")),
    "annotation": Broken("SR0229", "sad.InOut", kernel("y[i] = 1.0", "y: sad.InOut[float]")),
    "double in one of three": Broken("SR0711", "`wgsl`", DOUBLE, THREE),
    "too many arrays for one of three": Broken("SR0507", "`wgsl` has 8", CROWDED, THREE),
    "graph without axes": Broken("SR0730", "`x`", graph("x", "return sad.sum(x)")),
    "size without a name": Broken(
        "SR0731", "`n-1`", graph('x: sad.Array[float, "n-1"]', "return sad.sum(x)")
    ),
    "captured array": Broken(
        "SR0734",
        "`energy`",
        graph('x: sad.Array[float, "n"]', "return sad.sum(x * W)", "W = sad.array([1.0])\n\n\n"),
    ),
    "no gradient where one is required": Broken(
        "SR0710", "`y` is written at indices", arguments=("--require-bwd",)
    ),
    # Options.
    "constant without value": Broken("SR0705", "--define n=VALUE", CONST),
    "definition without value": Broken("SR0706", "`n`", CONST, ("--define", "n")),
    "definition of nothing": Broken("SR0707", "`m`", CONST, ("--define", "n=1", "--define", "m=1")),
    "definition of another type": Broken("SR0303", "n", CONST, ("--define", "n=1.5")),
    "glsl": Broken("SR0504", "`wgsl`", arguments=("--target", "glsl")),
    "misspelt target": Broken("SR0504", "`spriv`", arguments=("--target", "wgsl,spriv")),
    "no target": Broken(
        "SR0713", "`metal`", instead=("build", "model.py", "-o", "out", "--target", " , ")
    ),
    "atomics of no target": Broken("SR0740", "`cas`", arguments=("--atomics", "cas")),
    "no feature": Broken("SR0741", "`waves`", arguments=("--features", "waves")),
    "atomics of another target": Broken(
        "SR0742", "`metal`", arguments=("--atomics", "metal:native")
    ),
    "native atomics in HLSL": Broken("SR0743", "`hlsl`", arguments=(*THREE, "--atomics", "native")),
    "contradiction": Broken(
        "SR0744", "leave one", arguments=("--features", "subgroups,no-subgroups")
    ),
    "no threads": Broken("SR0745", "from 1 to 256", arguments=("--workgroup", "0")),
    "too many threads": Broken("SR0745", "from 1 to 256", arguments=("--workgroup", "1024")),
    "space in Metal": Broken("SR0745", "`metal`", arguments=("--target", "metal", "--space", "1")),
    "negative slot": Broken("SR0745", "--binding-base -1", arguments=("--binding-base", "-1")),
    "derivative by nothing": Broken("SR0746", "`by`", arguments=("--wrt", "gain")),
    "derivative by an integer": Broken("SR0747", "target", arguments=("--wrt", "target")),
    "no such option": Broken("", "--fast", arguments=("--fast",)),
    "no number": Broken("", "--workgroup", arguments=("--workgroup", "8x8")),
    "no such bounds": Broken("", "--bounds", arguments=("--bounds", "clamp")),
    "no folder given": Broken("", "--out", instead=("build", "model.py")),
    # The folder.
    "a file as folder": Broken(
        "SR0708", "it is a file", instead=("build", "model.py", "-o", "model.py")
    ),
    "a folder in a file": Broken(
        "SR0708", "`model.py` is a file", instead=("build", "model.py", "-o", "model.py/out")
    ),
    "unwritable folder": Broken("SR0708", "Permission denied", breaks=has_no_room_for_a_folder),
    "full disk": Broken("SR0708", "ENOSPC", breaks=fails_to_write(errno.ENOSPC)),
    "disk that went away": Broken("SR0708", "EIO", breaks=fails_to_write(errno.EIO)),
    "file of somebody else": Broken(
        "SR0709",
        "metal/scale_primal.metal",
        arguments=("--target", "metal"),
        files={"out/metal/scale_primal.metal": "mine"},
    ),
    # The compiler and its judges.
    "compiler refuses": Broken(
        "SR0501",
        "no such thing",
        breaks=child({"code": b"", "log": "error[E30015]: no such thing"}),
    ),
    "compiler dies": Broken(
        "SR0502", "signal SIGSEGV", breaks=child(ChildDied("signal SIGSEGV", ""))
    ),
    "compiler hangs": Broken(
        "SR0503", "60 s", breaks=child(ChildTimedOut("Slang", "used 60 s of processor time"))
    ),
    "no compiler": Broken("SR0505", "slangpy", breaks=child({"missing": True})),
    "no process": Broken("SR0506", "no memory", breaks=child(ChildUnavailable("no memory"))),
    "validator refuses": Broken(
        "SR0712",
        "line 3: bad operand",
        arguments=("--target", "spirv", "--validate"),
        breaks=validators_refuse,
    ),
    "a bug of ours": Broken("SR0739", "KeyError", breaks=we_have_a_bug),
}
"""By what is wrong."""
