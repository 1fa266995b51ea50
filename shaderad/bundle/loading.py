"""A folder that `shaderad build` wrote -> its kernels, to be called and differentiated.

Neither the Python source nor, on wgpu, the Slang compiler is needed. Invariant: every file that
is used has the hash that the manifest says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from shaderad.bundle import description
from shaderad.bundle.description import FILE, SCHEMA, SCHEMA_VERSION, Manifest
from shaderad.bundle.type_names import TypeNames
from shaderad.diagnostics import Span, error
from shaderad.frontend.kernels import KernelSignature
from shaderad.frontend.launchable import Launchable
from shaderad.ir import nodes
from shaderad.ir.pointers import POINTED
from shaderad.ir.types import Access, BufferType, Struct, Type
from shaderad.lower import artifact
from shaderad.lower.artifact import Binding, Code, Program, library_folder
from shaderad.lower.bindings import (
    Lowered,
    Mode,
    Resource,
    Role,
    Site,
    SiteKind,
    Word,
    WordKind,
)
from shaderad.lower.compile import TARGETS
from shaderad.session.prebuilt import BuiltModes, Dispatches, PrebuiltKernel


class LoadedKernel(Launchable):
    """A kernel of a folder; it is called and differentiated as the one it was built from."""

    def __init__(self, kernel: PrebuiltKernel) -> None:
        self._kernel = kernel
        self.bounds = kernel.bounds
        self.__name__ = kernel.name

    @property
    def name(self) -> str:
        return self._kernel.name

    @property
    def signature(self) -> KernelSignature:
        parameters = self._kernel.parameters
        return KernelSignature(
            self._kernel.index_names, parameters, (self._kernel.span,) * len(parameters)
        )

    def specialise(self, const_values: Mapping[str, object]) -> nodes.Kernel:
        del const_values  # Compiled in.
        return self._kernel

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self._kernel.parameters)
        return f"<kernel {self.name}({names}) of {self._kernel.folder}>"


class Loaded:
    """The entries of a folder, as attributes: ``loaded.shade(..)``."""

    def __init__(self, folder: Path, kernels: Mapping[str, LoadedKernel]) -> None:
        self._folder = folder
        self._kernels = dict(kernels)

    def __getattr__(self, name: str) -> LoadedKernel:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> LoadedKernel:
        """The entry called `name`.

        Raises:
            LanguageError: SR0723, where there is none.
        """
        found = self._kernels.get(name)
        if found is None:
            known = ", ".join(f"`{k}`" for k in self._kernels) or "none"
            raise error("SR0723", name=name, folder=self._folder, known=known)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __dir__(self) -> list[str]:
        return sorted(self._kernels)

    def __repr__(self) -> str:
        return f"<shaderad build {str(self._folder)!r}: {', '.join(self._kernels)}>"


def load(folder: str | Path) -> Loaded:
    """The kernels of a folder that `shaderad build` wrote.

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
    manifest = read_manifest(path)
    files = _Files(path, manifest)
    types = TypeNames(manifest.types)
    try:
        kernels = {one.name: _Reader(files, types, one).kernel() for one in manifest.kernels}
    except (KeyError, ValueError) as failure:
        raise error("SR0720", folder=path, reason=f"it speaks of {failure}") from None
    return Loaded(path, {name: LoadedKernel(kernel) for name, kernel in kernels.items()})


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
        text = (folder / FILE).read_bytes()
        version = msgspec.json.decode(text, type=_Version)
        if version.schema != SCHEMA:
            raise error("SR0720", folder=folder, reason=f"its schema is not `{SCHEMA}`")
        if version.schema_version != SCHEMA_VERSION:
            raise error("SR0721", folder=folder, found=version.schema_version,
                        writer=version.shaderad, wanted=SCHEMA_VERSION)  # fmt: skip
        return msgspec.json.decode(text, type=Manifest)
    except OSError as failure:
        raise error("SR0720", folder=folder, reason=failure.strerror) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as failure:
        raise error("SR0720", folder=folder, reason=failure) from None


class _Files:
    """The files that a manifest lists, read and checked when they are needed."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self._hashes = manifest.files
        self.library = self._library(manifest.slang_library)

    def content(self, name: str) -> bytes:
        try:
            content = (self.folder / name).read_bytes()
        except OSError as failure:
            raise error("SR0722", file=name, folder=self.folder, reason=failure.strerror) from None
        if _hash(content) != self._hashes[name]:
            raise error("SR0722", file=name, folder=self.folder, reason="it was changed")
        return content

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
        return (self.folder / name).resolve()


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class _Reader:
    """One kernel of a manifest."""

    def __init__(self, files: _Files, types: TypeNames, entry: description.KernelEntry) -> None:
        self._files = files
        self._types = types
        self._entry = entry

    def kernel(self) -> PrebuiltKernel:
        entry = self._entry
        buffers = tuple(self._buffer(one) for one in entry.arrays)
        uniforms = tuple(
            nodes.Uniform(name=u.name, path=(*u.path,), type=self._types.type(u.type))
            for u in entry.uniforms
        )
        type_by_path: dict[tuple[str, ...], Type] = {b.path: b.type for b in buffers}
        type_by_path |= {u.path: u.type for u in uniforms}
        return PrebuiltKernel(
            name=entry.name,
            index_names=(*entry.index_names,),
            parameters=tuple(
                nodes.KernelParameter(name=p.name, type=_gathered(type_by_path, (p.name,), p.type))
                for p in entry.parameters
                if p.kind != "constant"
            ),
            buffers=buffers,
            uniforms=uniforms,
            body=(),
            local_types={},
            span=self._span(entry.file, entry.line),
            folder=str(self._files.folder),
            bounds=entry.bounds,
            launch_shaped=frozenset(a.name for a in entry.arrays if a.has_launch_shape),
            by_target={name: self._modes(name, one) for name, one in entry.targets.items()},
        )

    def _buffer(self, one: description.ArrayEntry) -> nodes.Buffer:
        t = BufferType(Access(one.access), self._types.type(one.type), one.rank)
        return nodes.Buffer(name=one.name, path=(*one.path,), type=t)

    def _span(self, file: str, line: int) -> Span:
        """The source is not here: its name says so."""
        return Span(f"{file} as built", line) if file else nodes.NO_SPAN

    # -- dispatches ------------------------------------------------------------------------

    def _modes(self, target: str, entry: description.ProgramsEntry) -> BuiltModes:
        by_mode = {
            Mode.PRIMAL: self._dispatches(target, entry.primal),
            Mode.BACKWARD: self._dispatches(target, entry.backward),
        }
        refusal = entry.no_backward
        why_not = {} if refusal is None else {Mode.BACKWARD: refusal.reason}
        return BuiltModes(by_mode, why_not)

    def _dispatches(self, target: str, given: list[description.DispatchEntry]) -> Dispatches:
        return tuple(self._dispatch(target, one) for one in given)

    def _dispatch(self, target: str, one: description.DispatchEntry) -> Lowered:
        files = self._files
        code = Code(TARGETS[target], files.content(one.file))
        resources = tuple(self._resource(r) for r in one.resources)
        bindings = [Binding(one.parameters.slot, one.parameters.name, artifact.Access.UNIFORM)]
        bindings += [Binding(r.slot, r.name, artifact.Access(r.access)) for r in one.resources]
        program = Program(
            name=one.entry_point,
            slang=files.content(one.slang).decode(),
            workgroup=one.workgroup,
            bindings=tuple(bindings),
            parameter_words=tuple(w.name for w in one.parameters.words),
            features=frozenset(one.features),
            library=files.library,
            code=code,
        )
        return Lowered(
            program=program,
            mode=Mode(one.mode),
            resources=resources,
            words=tuple(_word(w) for w in one.parameters.words),
            sites=tuple(
                Site(SiteKind(s.kind), self._span(s.file, s.line), s.name) for s in one.sites
            ),
            group_limit=one.group_limit,
            is_single_group=one.is_single_group,
            threads_of=one.thread_for_each.removeprefix("word of ").removeprefix("index"),
            strategies=dict(one.strategies),
        )

    def _resource(self, one: description.ResourceEntry) -> Resource:
        return Resource(
            slot=one.slot,
            role=Role(one.role),
            members=tuple(m.name for m in one.members),
            fill_word=one.fill_word,
            is_covered_by_launch=one.is_covered_by_launch,
            types=tuple(self._types.type(m.type) for m in one.members),
        )


def _word(one: description.WordEntry) -> Word:
    role = Role(one.role) if one.role else None
    return Word(WordKind(one.kind), one.of, one.index, role)


def _gathered(
    type_by_path: Mapping[tuple[str, ...], Type], path: tuple[str, ...], name: str
) -> Type:
    """The type of a parameter; one that comes apart is a struct of its arrays and uniforms."""
    if path in type_by_path:
        return type_by_path[path]
    depth = len(path)
    fields = dict.fromkeys(
        at[depth] for at in type_by_path if at[:depth] == path and POINTED not in at
    )
    return Struct(name, tuple((f, _gathered(type_by_path, (*path, f), f)) for f in fields))
