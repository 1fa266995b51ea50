"""The files that a manifest lists, and what it says of the source.

Invariant: every file that is used has the hash that the manifest says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from shaderad.bundle.description import NoDerivative, Parameters, ResourceEntry, SiteEntry
from shaderad.bundle.document import Manifest
from shaderad.bundle.graph_description import BindingEntry, WordsEntry
from shaderad.bundle.plain_files import UnreadableError, read_plain
from shaderad.diagnostics import Span, error
from shaderad.ir.nodes import NO_SPAN
from shaderad.lower.artifact import Access, Binding, Code, library_folder
from shaderad.lower.bindings import Mode, Site
from shaderad.lower.compile import TARGETS


class Files:
    """The files that a manifest lists, read and checked when they are needed."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self._hashes = manifest.files
        self._targets = manifest.targets
        self.library = self._library(manifest.slang_library)

    def space(self, target: str) -> int:
        """Where the code of `target` binds everything."""
        known = self._targets.get(target)
        return 0 if known is None else known.space

    def content(self, name: str) -> bytes:
        try:
            content = read_plain(self.folder, name)
        except UnreadableError as failure:
            raise error("SR0722", file=name, folder=self.folder, reason=failure) from None
        if _hash(content) != self._hashes[name]:
            raise error("SR0722", file=name, folder=self.folder, reason="it was changed")
        return content

    def code(self, target: str, name: str) -> Code:
        """The compiled program in a file."""
        return Code(TARGETS[target], self.content(name))

    def text(self, name: str) -> str:
        """The Slang text in a file."""
        try:
            return self.content(name).decode()
        except UnicodeDecodeError:
            raise error("SR0722", file=name, folder=self.folder, reason="it is no text") from None

    def _library(self, name: str) -> Path | None:
        """The folder's own Slang library, where it is not the installed one."""
        listed = [one for one in self._hashes if one.startswith(f"{name}/")]
        installed = library_folder()
        for one in listed:
            own = installed / one.partition("/")[2]
            if not own.is_file() or _hash(own.read_bytes()) != self._hashes[one]:
                break
        else:
            return None
        for one in listed:
            self.content(one)
        # The compiler finds what it is told to import by its name, listed or not.
        folder = (self.folder / name).resolve()
        for path in folder.glob("*.slang"):
            if f"{name}/{path.name}" not in self._hashes:
                raise error("SR0722", file=f"{name}/{path.name}", folder=self.folder,
                            reason="the manifest does not list it")  # fmt: skip
        return folder


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def span_in(file: str, line: int) -> Span:
    """A line of the source, which is not here: its name says so."""
    return Span(f"{file} as built", line) if file and line else NO_SPAN


def bindings(
    parameters: Parameters | WordsEntry, resources: Sequence[ResourceEntry | BindingEntry]
) -> tuple[Binding, ...]:
    """What a program binds.

    Raises:
        ValueError: Where slots are not those of any program.
    """
    found = [Binding(parameters.slot, parameters.name, Access.UNIFORM)]
    found += [Binding(r.slot, r.name, r.access) for r in resources]
    slots, first = sorted(one.slot for one in found), parameters.slot
    if first < 0 or slots != [*range(first, first + len(found))]:
        raise ValueError(f"slots {[one.slot for one in found]} of one program")
    return tuple(found)


def sites(given: Iterable[SiteEntry]) -> tuple[Site, ...]:
    """The places in the source that a program may report."""
    return tuple(Site(s.kind, span_in(s.file, s.line), s.name) for s in given)


def reasons(no_backward: NoDerivative | None, no_forward: NoDerivative | None) -> dict[Mode, str]:
    """Why modes were not built."""
    given = {Mode.BACKWARD: no_backward, Mode.FORWARD: no_forward}
    found = {mode: one.reason for mode, one in given.items() if one is not None}
    return {Mode.FORWARD: "it was built without `--jvp`", **found}
