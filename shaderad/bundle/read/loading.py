"""A folder that `shaderad build` wrote -> its kernels and graphs, callable and differentiable.

Loading needs no Python source and, on wgpu, no Slang compiler. Invariant: every file that is read
has the hash in the manifest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from shaderad.bundle.format.description import FILE, SCHEMA, SCHEMA_VERSION
from shaderad.bundle.format.document import Manifest, is_intact
from shaderad.bundle.format.entries import KernelEntry
from shaderad.bundle.format.type_names import TypeReader
from shaderad.bundle.read.kernel_loading import LoadedKernel, loaded_kernel
from shaderad.bundle.read.loaded_files import Files, UnreadableError, read_plain
from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary

if TYPE_CHECKING:
    from shaderad.differentiate.loaded_graphs import LoadedGraph

    Entry = LoadedKernel | LoadedGraph

__all__ = ["load"]


class Loaded:
    """The entries of a folder, as attributes: ``loaded.shade(...)``."""

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
            LanguageError: SR0723, if the folder has no such entry.
        """
        if name not in self._entries:
            names = ", ".join(f"`{k}`" for k in self._entries) or "none"
            raise error("SR0723", name=name, folder=self._folder, known=names)
        return self._entries[name]

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
    """Loads the kernels and graphs of a folder that `shaderad build` wrote.

    They are called like the functions they were built from, also under `sad.vjp` and `sad.grad`.
    The features of the device decide which target runs.

    Args:
        folder: The folder of ``manifest.json``.

    Returns:
        An object with one callable per entry: ``loaded.shade(...)``, also ``loaded["shade"]``.

    Raises:
        CompileError: SR0720, if the folder has no valid manifest; SR0721, if another version of
            shaderad wrote it; SR0722, if a file is missing or was changed.
    """
    path = Path(folder)
    return Loaded(path, entries_of(path, read_manifest(path)))


def entries_of(path: Path, manifest: Manifest) -> dict[str, Entry]:
    """The entries that `manifest` describes, by name.

    Raises:
        CompileError: SR0720, SR0722.
    """
    files = Files(path, manifest)
    types = TypeReader(manifest.types)
    entries: dict[str, Entry] = {}
    try:
        for entry in manifest.entries:
            if isinstance(entry, KernelEntry):
                entries[entry.name] = loaded_kernel(files, types, entry)
                continue
            # Imported here: a folder of kernels loads without the graph modules.
            from shaderad.bundle.read.graph_loading import loaded_graph

            entries[entry.name] = loaded_graph(files, types, entry)
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
    """The manifest of `folder`.

    Raises:
        CompileError: SR0720, if it is missing or not valid; SR0721, if another version wrote it;
            SR0722, if it was changed.
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
