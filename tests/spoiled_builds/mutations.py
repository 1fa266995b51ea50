"""A sound build and a seed -> the build spoiled: its manifest, its files, or both.

Mutations of the manifest know its structure: they delete, repeat, swap, nest and retype parts, and
write the numbers, texts and paths that readers trip over. Most manifests then get the hashes that
fit, as forgers would write them; the others stand for accidents.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shaderad.bundle.format.document import with_digest

Pick = random.Random

NUMBERS = (0, 1, -1, 2, 3, 7, 16, 63, 255, 1024, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**32,
           2**63 - 1, -(2**63), 2**64, 10**30, 1e308, -0.0, 1.5)  # fmt: skip
SIZES = ("n", "m", "-n", "n//0", "0//0", "n//(n - n)", "n//(m - 3)", "sqrt(-5)", "sqrt(n - 99)",
         "n - 100", "n*1000000", "n*n*n*n*n*n*n*n", "max(n, 9999999999)", "$start_0", "(" * 3000,
         "unknown", "$group_limit", "1" * 4000, "(" * 30 + "n" + ")" * 30,
         "*".join(["n"] * 200_000),
         "*".join(["n"] * 60), "+".join(f"{k}*n" for k in range(300)), "(n + m + 1)*" * 40 + "n",
         "min(n, 0)", "n +", "n m", "")  # fmt: skip
TEXTS = ("", " ", "\0", "\n", "\x1b[31m", "x" * 5000, "\N{SNOWMAN}", "\ud800", "[]", "__class__",
         "float", "half", "LocalArray[float, 100000]", "LocalArray[" * 400 + "float" + ", 9]" * 400,
         "Cloud", "Mesh", "bwd", "winner", "read", "write", "word of nobody", "9" * 900,
         "nan", "1e999")  # fmt: skip
PATHS = ("../out/manifest.json", "/etc/hostname", "/dev/zero", "/dev/tty", "pipe", "link", "huge",
         "spirv", "", ".", "..", "\0", "manifest.json", "wgsl/../model.h", "x" * 300, "pipe/x",
         "/proc/self/mem", "loop")  # fmt: skip


@dataclass
class Spoiled:
    """One spoiled folder."""

    what: str
    """The mutations, for people."""
    is_forged: bool
    """Whether its hashes fit."""
    entry: str
    """What to call."""


def spoil(sound: Path, folder: Path, seed: int) -> Spoiled:
    """Writes the spoiled build of `seed` to `folder`."""
    pick = Pick(seed)
    shutil.rmtree(folder, ignore_errors=True)
    # Links cost less than copies; what is spoiled is written anew.
    shutil.copytree(sound, folder, copy_function=os.link)
    _add_traps(folder)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    own = pick.choice((*manifest["entries"], *manifest["entries"]))
    entry = own["name"]
    is_forged = pick.random() < 0.8
    told: list[str] = []
    of_files = pick.random() < 0.35
    for _ in range(pick.choice((1, 1, 1, 2, 3))):
        if of_files:
            told.append(_spoil_file(folder, manifest, own, pick))
        else:
            told.append(_spoil_manifest(manifest, own, pick))
    if of_files and not is_forged:
        return Spoiled("; ".join(told), False, entry)
    if of_files:
        _rehash(folder, manifest)
    _write(folder, manifest, pick, told, is_forged=is_forged)
    return Spoiled("; ".join(told), is_forged, entry)


def _add_traps(folder: Path) -> None:
    """What paths may lead to besides files."""
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("/etc/hostname")
    (folder / "loop").symlink_to("loop")
    with (folder / "huge").open("wb") as huge:
        huge.truncate(1 << 40)


def _write(folder: Path, manifest: Any, pick: Pick, told: list[str], *, is_forged: bool) -> None:
    path = folder / "manifest.json"
    text = json.dumps(manifest).encode("utf-8", "surrogatepass")
    text = text.replace(_NEST.encode(), b"[" * 100_000 + b"]" * 100_000)
    if pick.random() < 0.1:
        text, what = _bytes_spoiled(text, pick)
        told.append(f"manifest: {what}")
    if is_forged and b'"digest": "' in text:
        try:
            text = with_digest(text)
        except ValueError:
            told.append("no digest")
    _put(path, text)


def _put(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


def _rehash(folder: Path, manifest: Any) -> None:
    for name in manifest["files"]:
        path = folder / name
        if path.is_file() and path.stat().st_size <= _LARGE:
            manifest["files"][name] = hashlib.sha256(path.read_bytes()).hexdigest()


# -- files ---------------------------------------------------------------------------------------


def _spoil_file(folder: Path, manifest: Any, entry: Any, pick: Pick) -> str:
    used = sorted(_files_of(entry))
    kind = pick.choice(("code", "code", "code", "slang", "library"))
    if kind == "library":
        used = sorted(name for name in manifest["files"] if name.startswith("shaderad/"))
    elif kind == "slang":
        used = [name for name in used if name.endswith(".slang")]
    else:
        used = [name for name in used if not name.endswith(".slang")]
    name = pick.choice(used)
    path = folder / name
    if not _is_readable(path):
        return f"{name}: is a trap already"
    if pick.random() < 0.2:
        return f"{name}: {_replaced(folder, path, used, pick)}"
    content, what = _bytes_spoiled(path.read_bytes(), pick)
    _put(path, content)
    slang = path.with_suffix(".slang")
    if kind == "code" and _is_readable(slang):
        # A device keeps pipelines by their Slang text.
        _put(slang, slang.read_bytes() + f"// {pick.random()}\n".encode())
    return f"{name}: {what}"


def _is_readable(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= _LARGE


def _files_of(entry: Any) -> set[str]:
    found: set[str] = set()

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            found.update(node[key] for key in ("file", "slang") if "entry_point" in node)
            for one in node.values():
                walk(one)
        elif isinstance(node, list):
            for one in node:
                walk(one)

    walk(entry["targets"])
    return found


def _replaced(folder: Path, path: Path, others: list[str], pick: Pick) -> str:
    what = pick.choice(("pipe", "link", "folder", "nothing", "huge", "another", "loop"))
    other = folder / pick.choice(others)
    content = other.read_bytes() if what == "another" and _is_readable(other) else b""
    path.unlink()
    if what == "pipe":
        os.mkfifo(path)
    elif what == "link":
        path.symlink_to("/etc/hostname")
    elif what == "loop":
        path.symlink_to(path.name)
    elif what == "folder":
        path.mkdir()
    elif what == "huge":
        with path.open("wb") as file:
            file.truncate(1 << 40)
    elif what == "another":
        path.write_bytes(content)
    return f"replaced by {what}"


def _bytes_spoiled(content: bytes, pick: Pick) -> tuple[bytes, str]:
    made = bytearray(content)
    at = pick.randrange(len(made) or 1)
    what = pick.choice(("bits", "bits", "bits", "cut", "zero words", "words", "insert", "nothing"))
    if what == "bits":
        for _ in range(pick.choice((1, 1, 2, 8))):
            if made:
                made[pick.randrange(len(made))] ^= 1 << pick.randrange(8)
    elif what == "cut":
        del made[at:]
    elif what == "zero words":
        start = at // 4 * 4
        made[start : start + 4 * pick.choice((1, 1, 4, 64))] = bytes(4 * pick.choice((1, 1, 4, 64)))
    elif what == "words":
        start = at // 4 * 4
        made[start : start + 4] = pick.choice(NUMBERS[:14]).__index__().to_bytes(
            8, "little", signed=True)[:4]  # fmt: skip
    elif what == "insert":
        made[at:at] = pick.randbytes(pick.choice((1, 4, 16)))
    else:
        made.clear()
    return bytes(made), f"{what} at {at}"


# -- the manifest --------------------------------------------------------------------------------

_LARGE = 1 << 30
"""No file of a build is."""
_NEST = "@nest@"
_WEIGHTS = {"targets": 8, "spirv": 2, "primal": 2, "commands": 6, "body": 6, "words": 1, "count": 2,
            "groups": 2}  # fmt: skip
"""How much more often than other keys these are followed: to what is read, and decides most."""


def _spoil_manifest(manifest: Any, entry: Any, pick: Pick) -> str:
    parts = [part for part in ("types", "files") if isinstance(manifest.get(part), dict)]
    root = pick.choice((*[entry] * 7, *(manifest[part] for part in parts), manifest))
    holder, key, path = _place(root, pick)
    if holder is None:
        return "nothing"
    before = json.dumps(holder[key])[:40]
    # Most mutations keep the form, or they would all end at the first look.
    ways = _WAYS if pick.random() < 0.35 else _FITTING[_form(holder, key)]
    what = pick.choice(ways)(holder, key, manifest, pick)
    return f"{path}: {what} (was {before})"


def _place(root: Any, pick: Pick) -> tuple[Any, Any, str]:
    """Somewhere below `root`: what holds it, under which key, and how to get there."""
    holder, key, path = None, None, ""
    node = root
    while isinstance(node, dict | list) and node and (holder is None or pick.random() < 0.88):
        holder = node
        keys = [*node] if isinstance(node, dict) else [*range(len(node))]
        key = pick.choice([*keys, *(one for one in keys for _ in range(_WEIGHTS.get(one, 0)))])
        path += f".{key}"
        node = node[key]
    return holder, key, path[:200]


def _form(holder: Any, key: Any) -> str:
    """Which mutations of a part keep what readers first look at."""
    value = holder[key]
    if key in _SIZED or (isinstance(holder, list) and isinstance(value, int | str)):
        return "size"
    if isinstance(value, bool) or not isinstance(value, int | str):
        return "flag" if isinstance(value, bool) else "part"
    return "number" if isinstance(value, int) else "name"


_SIZED = frozenset({"size", "groups", "if_positive", "byte_count", "count", "source_offset",
                    "target_offset"})  # fmt: skip


def _deleted(holder: Any, key: Any, manifest: Any, pick: Pick) -> str:
    del holder[key]
    return "deleted"


def _repeated(holder: Any, key: Any, manifest: Any, pick: Pick) -> str:
    if isinstance(holder, list):
        holder.insert(pick.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
    else:
        holder[f"{key}_2"] = copy.deepcopy(holder[key])
    return "repeated"


def _swapped(holder: Any, key: Any, manifest: Any, pick: Pick) -> str:
    other, name, _ = _place(holder if pick.random() < 0.5 else manifest, pick)
    if other is not None:
        holder[key] = copy.deepcopy(other[name])
    return "another part"


def _as_a_peer(holder: Any, key: Any, manifest: Any, pick: Pick) -> str:
    """What stands elsewhere under the same key."""
    found: list[Any] = []

    def walk(node: Any) -> None:
        if isinstance(node, dict) and key in node and type(node[key]) is type(holder[key]):
            found.append(node[key])
        for one in node.values() if isinstance(node, dict) else node:
            if isinstance(one, dict | list):
                walk(one)

    walk(manifest if pick.random() < 0.3 or isinstance(holder, list) else holder)
    walk(manifest)
    holder[key] = copy.deepcopy(pick.choice(found or [holder[key]]))
    return f"a peer {json.dumps(holder[key])[:40]}"


def _flipped(holder: Any, key: Any, manifest: Any, pick: Pick) -> str:
    holder[key] = not holder[key]
    return "flipped"


def _nudged(holder: Any, key: Any, manifest: Any, pick: Pick) -> str:
    value = holder[key]
    if isinstance(value, str):
        holder[key] = pick.choice((f"({value}) + 1", f"2*({value})", f"max(({value}) - 1, 0)",
                                   "n", "1", f"({value}) // 2"))  # fmt: skip
    else:
        value = value if isinstance(value, int) else 0
        holder[key] = pick.choice(
            (value + 1, max(value - 1, 0), value * 2, 0, 1, 7, 1000, 2**31 - 1)
        )
    return f"nudged to {holder[key]}"


def _moved_in_its_list(holder: Any, key: Any, manifest: Any, pick: Pick) -> str:
    if isinstance(holder, list):
        holder.insert(pick.randrange(len(holder)), holder.pop(key))
    return "moved"


def _numbered(holder: Any, key: Any, manifest: Any, pick: Pick) -> str:
    value = holder[key]
    if isinstance(value, int) and pick.random() < 0.5:
        holder[key] = pick.choice((value + 1, value - 1, value * 2, -value, value + 1000))
    else:
        holder[key] = pick.choice(NUMBERS)
    return f"{holder[key]}"


def _sized(holder: Any, key: Any, manifest: Any, pick: Pick) -> str:
    holder[key] = pick.choice(SIZES)
    return f"a size {holder[key][:40]}"


def _texted(holder: Any, key: Any, manifest: Any, pick: Pick) -> str:
    value = holder[key]
    if isinstance(value, str) and value and pick.random() < 0.3:
        at = pick.randrange(len(value))
        holder[key] = value[:at] + pick.choice("_x0 ,)$/") + value[at + pick.randrange(2) :]
    else:
        holder[key] = pick.choice(TEXTS)
    return f"a text {holder[key][:40]!r}"


def _pathed(holder: Any, key: Any, manifest: Any, pick: Pick) -> str:
    path = pick.choice(PATHS)
    if isinstance(holder[key], str) and holder[key] in manifest["files"]:
        manifest["files"].setdefault(path, manifest["files"][holder[key]])
    holder[key] = path
    return f"a path {path[:40]!r}"


def _retyped(holder: Any, key: Any, manifest: Any, pick: Pick) -> str:
    holder[key] = pick.choice((None, True, 0, 1.5, "", [], {}, [None], {"a": 1}))
    return f"a {type(holder[key]).__name__}"


def _nested(holder: Any, key: Any, manifest: Any, pick: Pick) -> str:
    value = holder[key]
    if pick.random() < 0.3:
        holder[key] = _NEST
        return "nested 100,000 times"
    for _ in range(pick.choice((1, 20, 40, 300))):
        value = _deeper(copy.deepcopy(value) if isinstance(value, str | int) else value, pick)
    holder[key] = value
    return "nested"


def _deeper(value: Any, pick: Pick) -> Any:
    """A container, a loop or a list around it."""
    if isinstance(value, dict) and "kind" in value:
        return {"kind": "tuple", "parts": [value]}
    if isinstance(value, dict) and "do" in value:
        return {"do": "repeat", "symbol": "k", "count": pick.choice((2, 1000)), "carries": [],
                "is_reversed": False, "rows": [], "start": [], "body": [value]}  # fmt: skip
    return [value]


def _filled_up(holder: Any, key: Any, manifest: Any, pick: Pick) -> str:
    count = pick.choice((100, 10_000))
    if isinstance(holder, list):
        holder += [copy.deepcopy(holder[key]) for _ in range(count)]
    return f"{count} more"


_Way = Callable[[Any, Any, Any, Pick], str]
_WAYS: tuple[_Way, ...] = (
    _deleted, _repeated, _swapped, _swapped, _numbered, _numbered, _numbered, _sized, _sized,
    _texted, _texted, _pathed, _retyped, _nested, _filled_up,
)  # fmt: skip
_FITTING: dict[str, tuple[_Way, ...]] = {
    "size": (_nudged, _nudged, _sized, _as_a_peer, _numbered),
    "number": (_nudged, _nudged, _as_a_peer, _numbered),
    "name": (_as_a_peer, _as_a_peer, _texted, _pathed),
    "flag": (_flipped,),
    "part": (_as_a_peer, _deleted, _repeated, _moved_in_its_list, _filled_up),
}
"""By what stands there."""
