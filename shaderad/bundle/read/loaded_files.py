"""The files that a manifest lists, and the programs in them.

Invariant: every file that is read has the hash in the manifest.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from shaderad.bundle.format.document import Manifest
from shaderad.bundle.format.plans import ProgramEntry
from shaderad.compiler.artifact import Binding, BindingAccess, Code, Program, library_folder
from shaderad.diagnostics import Span, error
from shaderad.ir.nodes import NO_SPAN
from shaderad.lower.targets import PROFILES


class Files:
    """The files that a manifest lists, read and checked on demand."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self._hashes = manifest.files
        self._targets = manifest.targets
        self._library = self._own_library(manifest.slang_library)

    def program(self, target: str, entry: ProgramEntry) -> Program:
        """The program of an entry point.

        Raises:
            CompileError: SR0722, if a file is missing or was changed.
            ValueError: The slots are invalid for a program.
        """
        options = self._targets.get(target)
        return Program(
            name=entry.entry_point,
            slang=self._text(entry.slang),
            workgroup=entry.workgroup,
            bindings=_bindings(entry),
            parameter_words=tuple(entry.parameters.words),
            features=frozenset(entry.features),
            library=self._library,
            space=0 if options is None else options.space,
            code=Code(PROFILES[target].format, self._content(entry.file)),
        )

    def _content(self, name: str) -> bytes:
        try:
            content = read_plain(self.folder, name)
        except UnreadableError as failure:
            raise error("SR0722", file=name, folder=self.folder, reason=failure) from None
        if _hash(content) != self._hashes[name]:
            raise error("SR0722", file=name, folder=self.folder, reason="it was changed")
        return content

    def _text(self, name: str) -> str:
        try:
            return self._content(name).decode()
        except UnicodeDecodeError:
            raise error("SR0722", file=name, folder=self.folder, reason="it is no text") from None

    def _own_library(self, name: str) -> Path | None:
        """The Slang library in the folder; `None` if the installed one is the same."""
        listed = [file for file in self._hashes if file.startswith(f"{name}/")]
        installed = library_folder()
        for file in listed:
            own = installed / file.partition("/")[2]
            if not own.is_file() or _hash(own.read_bytes()) != self._hashes[file]:
                break
        else:
            return None
        for file in listed:
            self._content(file)
        # The compiler imports modules by name, even if the manifest does not list them.
        folder = (self.folder / name).resolve()
        for path in folder.glob("*.slang"):
            if f"{name}/{path.name}" not in self._hashes:
                raise error("SR0722", file=f"{name}/{path.name}", folder=self.folder,
                            reason="the manifest does not list it")  # fmt: skip
        return folder


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def span_in(file: str, line: int) -> Span:
    """A line of the Python source; its file name shows that the source is not available."""
    return Span(f"{file} as built", line) if file and line else NO_SPAN


def _bindings(entry: ProgramEntry) -> tuple[Binding, ...]:
    first = entry.parameters.slot
    bindings = [Binding(first, entry.parameters.name, BindingAccess.UNIFORM)]
    bindings += [Binding(r.slot, r.name, r.access, r.view, r.is_filtered) for r in entry.resources]
    for b in bindings:
        if (b.access is BindingAccess.TEXTURE) != (b.view is not None):
            raise ValueError(f"a view of `{b.name}`")
    slots = [binding.slot for binding in bindings]
    if sorted(slots) != [*range(first, first + len(slots))]:
        raise ValueError(f"slots {slots} of one program")
    return tuple(bindings)


LIMIT_BYTES = 64 << 20


class UnreadableError(Exception):
    """A file that cannot be read; the text is the reason."""


def plain_name(name: str) -> str:
    """`name` with `_` for characters that names of built files may not contain."""
    return "".join(c if c.isprintable() else "_" for c in name)


def plain_path(folder: Path, name: str) -> Path:
    """The path of the file `name` in `folder`, with links resolved.

    Raises:
        UnreadableError: The path leads out of the folder.
    """
    if not name.isprintable():
        raise UnreadableError("its name cannot be printed")
    path, root = map(os.path.realpath, (folder / name, folder))
    if Path(name).is_absolute() or not Path(path).is_relative_to(root):
        raise UnreadableError("it lies outside of the folder")
    return Path(path)


def read_plain(folder: Path, name: str) -> bytes:
    """The bytes of the file `name` of `folder`.

    Raises:
        UnreadableError: It is missing, outside the folder, not a regular file, or too large.
    """
    try:
        path = plain_path(folder, name)
        _check(path.stat())
        # The file may have been replaced since then, and opening a pipe must not block.
        flags = ("O_NONBLOCK", "O_NOFOLLOW", "O_BINARY")
        descriptor = os.open(path, os.O_RDONLY | sum(getattr(os, flag, 0) for flag in flags))
        with os.fdopen(descriptor, "rb") as file:
            _check(os.fstat(descriptor))
            content = file.read(LIMIT_BYTES + 1)
    except OSError as failure:
        raise UnreadableError(failure.strerror or str(failure)) from None
    except ValueError as failure:  # The name of the folder holds a null character.
        raise UnreadableError(str(failure)) from None
    _check_size(len(content))
    return content


def _check(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableError("it is no plain file")
    _check_size(status.st_size)


def _check_size(byte_count: int) -> None:
    if byte_count > LIMIT_BYTES:
        raise UnreadableError(f"it has more than {LIMIT_BYTES >> 20} MiB")
