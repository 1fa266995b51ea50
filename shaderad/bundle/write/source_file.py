"""A Python file -> the kernels and graphs it defines.

The file is imported under its own name, as by a script in its folder. Invariant: any failure of
the import becomes an `Error` with its line, and the next build reads the file again.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import linecache
import sys
import traceback
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from shaderad.diagnostics import Error, Span, error

if TYPE_CHECKING:
    from shaderad.calls.graphs import GraphFunction
    from shaderad.decorators import KernelFunction
    from shaderad.slang_kernels import SlangKernelFunction

    AnyKernel = KernelFunction | SlangKernelFunction


def split_source(source: str) -> tuple[Path, str]:
    """``model.py:shade`` -> the file and the name of one entry; an empty name selects all.

    Raises:
        LanguageError: SR0701, if the file does not exist.
    """
    path, name = Path(source), ""
    if not path.is_file():
        head, colon, tail = source.rpartition(":")
        if colon and tail.isidentifier():
            path, name = Path(head), tail
    if not path.is_file():
        raise error("SR0701", path=path)
    return path, name


@contextmanager
def imported(path: Path) -> Generator[ModuleType]:
    """The module of a Python file, importable by its name until the block ends.

    Raises:
        LanguageError: SR0702, if the file raises.
    """
    path = path.resolve()
    root, name = _import_name(path)
    search_path = list(sys.path)
    dont_write_bytecode = sys.dont_write_bytecode
    linecache.checkcache(str(path))
    sys.path.insert(0, str(root))
    sys.dont_write_bytecode = True  # a build writes to its output folder only
    try:
        yield _run(path, name)
    finally:
        sys.dont_write_bytecode = dont_write_bytecode
        sys.path[:] = search_path
        sys.modules.pop(name, None)


@dataclass(frozen=True, slots=True)
class Entries:
    """The kernels and graphs of a file, by their name in the module."""

    kernels: dict[str, AnyKernel]
    graphs: dict[str, GraphFunction]


def find_entries(module: ModuleType, names: Collection[str]) -> Entries:
    """The kernels and graphs to build, in the order of definition.

    Args:
        module: The imported file.
        names: Names in the module, imported ones included; empty for all that the file defines.

    Raises:
        LanguageError: SR0703, if the file defines none; SR0704, if a name is no kernel or graph;
            SR0738, if two definitions have the same name.
    """
    file = module.__file__ or ""
    kernels, graphs = _members(module)
    members: dict[str, AnyKernel | GraphFunction] = {
        name: value for name, value in vars(module).items() if name in kernels or name in graphs
    }
    for name in names:
        if name not in members:
            raise error("SR0704", name=name, file=Path(file).name,
                        known=", ".join(f"`{key}`" for key in members) or "none")  # fmt: skip
    _check_names(Path(file), members)
    chosen = {name for name in members if name in names} or _own(members, file)
    if not chosen:
        raise error("SR0703", file=Path(file).name)
    return Entries(
        {name: kernel for name, kernel in kernels.items() if name in chosen},
        {name: graph for name, graph in graphs.items() if name in chosen},
    )


def _members(module: ModuleType) -> tuple[dict[str, AnyKernel], dict[str, GraphFunction]]:
    """All kernels and graphs in the namespace of the module."""
    from shaderad.decorators import KernelFunction
    from shaderad.slang_kernels import SlangKernelFunction

    members = vars(module).items()
    kernels = {name: value for name, value in members
               if isinstance(value, KernelFunction | SlangKernelFunction)}  # fmt: skip
    # `sad.graph` imports this module; a file of kernels skips the import, which is slow.
    if "shaderad.calls.graphs" not in sys.modules:
        return kernels, {}
    from shaderad.calls.graphs import GraphFunction

    return kernels, {name: value for name, value in members if isinstance(value, GraphFunction)}


def _check_names(file: Path, members: Collection[str]) -> None:
    """Checks that no definition replaces another one of the same name.

    Raises:
        LanguageError: SR0738, if one does.
    """
    seen: set[str] = set()
    for node in ast.parse(file.read_bytes()).body:
        if not isinstance(node, ast.FunctionDef) or not node.decorator_list:
            continue
        if node.name not in members:
            continue
        if node.name in seen:
            raise error("SR0738", _line(str(file), node.lineno), file=file.name, name=node.name)
        seen.add(node.name)


def _own(members: Mapping[str, AnyKernel | GraphFunction], file: str) -> set[str]:
    """The names of members that the file defines; the first one if a member has several."""
    name_by_id: dict[int, str] = {}
    for name, member in members.items():
        if member.file == file:
            name_by_id.setdefault(id(member), name)
    return {*name_by_id.values()}


def _import_name(path: Path) -> tuple[Path, str]:
    """The folder for the search path, and the dotted name with the packages around the file."""
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    name = ".".join(parts)
    # The file must not replace a loaded module of the same name.
    while len(parts) == 1 and name in sys.modules:
        name += "_"
    return root, name


def _run(path: Path, name: str) -> ModuleType:
    try:
        if "." in name:
            importlib.import_module(name.rpartition(".")[0])
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise error("SR0701", path=path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as failure:
        raise _at_its_line(failure, path) from failure
    return module


def _at_its_line(failure: BaseException, path: Path) -> Error:
    """The error for an exception of the import, at the line of the user's file."""
    span = _failed_line(failure, path)
    if isinstance(failure, Error):
        return failure if failure.span or span is None else failure.at(span)
    text = " ".join(f"{type(failure).__name__}: {failure}".split()).removesuffix(":")
    return error("SR0702", span, file=path.name, failure=text)


def _failed_line(failure: BaseException, path: Path) -> Span | None:
    """The line of the user's file at which the import failed."""
    if isinstance(failure, SyntaxError) and failure.filename and failure.lineno:
        return _line(failure.filename, failure.lineno)
    frames = traceback.extract_tb(failure.__traceback__)
    own = [frame for frame in frames if frame.filename == str(path) and frame.lineno]
    return _line(own[-1].filename, own[-1].lineno or 1) if own else None


def _line(file: str, number: int) -> Span:
    text = Span(file, number).text()
    return Span(file, number, len(text) - len(text.lstrip()), len(text))
