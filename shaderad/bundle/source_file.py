"""A Python file -> the kernels and graphs it defines.

The file is imported under its own name, as a script in its folder would import it. Invariant:
whatever goes wrong while it is imported, an error of ours with its line comes out, and the file
is read anew the next time.
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
    from shaderad.frontend.decorators import KernelFunction
    from shaderad.session.graphs import GraphFunction


def split_source(source: str) -> tuple[Path, str]:
    """``model.py:shade`` -> the file and the name of one entry; no name: all of them.

    Raises:
        LanguageError: SR0701, where there is no such file.
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
        LanguageError: SR0702, where the file raises.
    """
    path = path.resolve()
    root, name = _import_name(path)
    search_path = list(sys.path)
    dont_write_bytecode = sys.dont_write_bytecode
    linecache.checkcache(str(path))
    sys.path.insert(0, str(root))
    sys.dont_write_bytecode = True  # a build writes to its output folder alone
    try:
        yield _run(path, name)
    finally:
        sys.dont_write_bytecode = dont_write_bytecode
        sys.path[:] = search_path
        sys.modules.pop(name, None)


@dataclass(frozen=True, slots=True)
class Entries:
    """What a file has to build, by the name that it has in the module."""

    kernels: dict[str, KernelFunction]
    graphs: dict[str, GraphFunction]


def find_entries(module: ModuleType, names: Collection[str]) -> Entries:
    """Kernels and graphs by the name they have in the module, in the order of definition.

    All that are defined in the file, or those called `names`, wherever they are from.

    Raises:
        LanguageError: SR0703, where the file defines none; SR0704, where one of `names` is none;
            SR0738, where two have one name.
    """
    file = module.__file__ or ""
    kernels, graphs = _members(module)
    members: dict[str, KernelFunction | GraphFunction] = {
        key: one for key, one in vars(module).items() if key in kernels or key in graphs
    }
    for name in names:
        if name not in members:
            raise error("SR0704", name=name, file=Path(file).name,
                        known=", ".join(f"`{key}`" for key in members) or "none")  # fmt: skip
    _check_names(Path(file), members)
    wanted = {key: one for key, one in members.items() if key in names}
    found = wanted or _own(members, file)
    if not found:
        raise error("SR0703", file=Path(file).name)
    return Entries(
        {key: one for key, one in kernels.items() if key in found},
        {key: one for key, one in graphs.items() if key in found},
    )


def _members(module: ModuleType) -> tuple[dict[str, KernelFunction], dict[str, GraphFunction]]:
    """All kernels and graphs that the module names."""
    from shaderad.frontend.decorators import KernelFunction

    named = vars(module).items()
    kernels = {key: one for key, one in named if isinstance(one, KernelFunction)}
    # What made a graph has imported this; a file of kernels does without, which is quicker.
    if "shaderad.session.graphs" not in sys.modules:
        return kernels, {}
    from shaderad.session.graphs import GraphFunction

    return kernels, {key: one for key, one in named if isinstance(one, GraphFunction)}


def _check_names(file: Path, members: Collection[str]) -> None:
    """Python forgets the first of two functions of one name; a build must not.

    Raises:
        LanguageError: SR0738.
    """
    found: set[str] = set()
    for node in ast.parse(file.read_bytes()).body:
        if not isinstance(node, ast.FunctionDef) or not node.decorator_list:
            continue
        if node.name not in members:
            continue
        if node.name in found:
            raise error("SR0738", _line(str(file), node.lineno), file=file.name, name=node.name)
        found.add(node.name)


def _own(
    members: Mapping[str, KernelFunction | GraphFunction], file: str
) -> dict[str, KernelFunction | GraphFunction]:
    """Those that the file defines, each under its first name."""
    own: dict[str, KernelFunction | GraphFunction] = {}
    for key, one in members.items():
        is_new = all(one is not other for other in own.values())
        if is_new and one.python.__code__.co_filename == file:
            own[key] = one
    return own


def _import_name(path: Path) -> tuple[Path, str]:
    """The folder to search and the dotted name; packages around the file count."""
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    name = ".".join(parts)
    # A file called like a module that is loaded already must not take its place.
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
    """What an import raised, as an error that shows the line of the user's file."""
    place = _place(failure, path)
    if isinstance(failure, Error):
        return failure if failure.span or place is None else failure.at(place)
    said = " ".join(f"{type(failure).__name__}: {failure}".split()).removesuffix(":")
    return error("SR0702", place, file=path.name, failure=said)


def _place(failure: BaseException, path: Path) -> Span | None:
    """The line of the user's file at which the import failed."""
    if isinstance(failure, SyntaxError) and failure.filename and failure.lineno:
        return _line(failure.filename, failure.lineno)
    frames = traceback.extract_tb(failure.__traceback__)
    own = [frame for frame in frames if frame.filename == str(path) and frame.lineno]
    return _line(own[-1].filename, own[-1].lineno or 1) if own else None


def _line(file: str, number: int) -> Span:
    text = Span(file, number).text()
    return Span(file, number, len(text) - len(text.lstrip()), len(text))
