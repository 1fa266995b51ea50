"""A folder that `shaderad build` wrote -> its kernels and graphs, to be called and differentiated.

Neither the Python source nor, on wgpu, the Slang compiler is needed. Invariant: every file that
is used has the hash that the manifest says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from shaderad.bundle.description import FILE, SCHEMA, SCHEMA_VERSION
from shaderad.bundle.digest import is_intact
from shaderad.bundle.document import Manifest
from shaderad.bundle.kernel_loading import LoadedKernel, loaded_kernel
from shaderad.bundle.loaded_files import Files
from shaderad.bundle.plain_files import UnreadableError, read_plain
from shaderad.bundle.type_names import TypeNames
from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary

if TYPE_CHECKING:
    from shaderad.session.loaded_graphs import LoadedGraph

    Entry = LoadedKernel | LoadedGraph


class Loaded:
    """The entries of a folder, as attributes: ``loaded.shade(..)``."""

    def __init__(self, folder: Path, entries: Mapping[str, Entry]) -> None:
        self._folder = folder
        self._entries = dict(entries)

    @api_boundary
    def __getattr__(self, name: str) -> Entry:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    @api_boundary
    def __getitem__(self, name: str) -> Entry:
        """The entry called `name`.

        Raises:
            LanguageError: SR0723, where there is none.
        """
        found = self._entries.get(name)
        if found is None:
            known = ", ".join(f"`{k}`" for k in self._entries) or "none"
            raise error("SR0723", name=name, folder=self._folder, known=known)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __dir__(self) -> list[str]:
        return sorted(self._entries)

    def __repr__(self) -> str:
        return f"<shaderad build {str(self._folder)!r}: {', '.join(self._entries)}>"


@api_boundary
def load(folder: str | Path) -> Loaded:
    """The kernels and graphs of a folder that `shaderad build` wrote.

    They are called like those they were built from, also under `sad.vjp` and `sad.grad`; which
    file serves is chosen by the features of the device.

    Args:
        folder: Where ``manifest.json`` lies.

    Returns:
        An object with one callable an entry: ``loaded.shade(..)`` or ``loaded["shade"](..)``.

    Raises:
        CompileError: SR0720 no manifest, or none of ours; SR0721 of another version; SR0722 a
            file that is missing or was changed.
    """
    path = Path(folder)
    return Loaded(path, entries_of(path, read_manifest(path)))


def entries_of(path: Path, manifest: Manifest) -> dict[str, Entry]:
    """The entries of a folder, by name, as `manifest` has them.

    Raises:
        CompileError: SR0720, SR0722.
    """
    files = Files(path, manifest)
    types = TypeNames(manifest.types)
    entries: dict[str, Entry] = {}
    try:
        entries |= {one.name: loaded_kernel(files, types, one) for one in manifest.kernels}
        if manifest.graphs:
            # A folder of kernels need not wait for what runs graphs.
            from shaderad.bundle.graph_loading import loaded_graph

            entries |= {one.name: loaded_graph(files, types, one) for one in manifest.graphs}
    except (KeyError, ValueError) as failure:
        raise error("SR0720", folder=path, reason=f"it speaks of {failure}") from None
    except RecursionError:
        raise error("SR0720", folder=path, reason="it nests too deep") from None
    return entries


class _Version(msgspec.Struct):
    schema: str = ""
    schema_version: int = 0
    shaderad: str = "?"


def read_manifest(folder: Path) -> Manifest:
    """What the manifest of `folder` says.

    Raises:
        CompileError: SR0720, SR0721.
    """
    try:
        text = read_plain(folder, FILE)
        version = msgspec.json.decode(text, type=_Version)
        if version.schema != SCHEMA:
            raise error("SR0720", folder=folder, reason=f"its schema is not `{SCHEMA}`")
        if version.schema_version != SCHEMA_VERSION:
            raise error("SR0721", folder=folder, found=version.schema_version,
                        writer=version.shaderad, wanted=SCHEMA_VERSION)  # fmt: skip
        manifest = msgspec.json.decode(text, type=Manifest)
    except (UnreadableError, msgspec.MsgspecError, UnicodeDecodeError) as failure:
        raise error("SR0720", folder=folder, reason=failure) from None
    except RecursionError:
        raise error("SR0720", folder=folder, reason="it nests too deep") from None
    if not is_intact(text):
        raise error("SR0722", file=FILE, folder=folder, reason="it was changed")
    return manifest
