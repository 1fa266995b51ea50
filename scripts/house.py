"""Prints how large the package is and how its parts hang together.

Run ``python scripts/house.py``; with ``--calls`` it also counts the Python calls of pullbacks on
wgpu. A room is a folder of modules. Imports inside functions count like any other, and so do those
under ``if TYPE_CHECKING:``, which upward imports list apart.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "shaderad"
_WEAK_START = re.compile(r"(What|Whether|Of|Those)\b")

PUBLIC_TWICE = {"Texture": ["shaderad.arrays.textures", "shaderad.render.textures"]}
"""Classes whose name is that of another in a public namespace: `sad.Texture` is a resource of a
device, `render.Texture` an array that is looked up with exact filters."""

VAGUE = {"found", "one", "given", "made"}
"""Names that do not say what they hold."""
ROOMS_TO_REBUILD = {"differentiate", "execute", "plan"}
"""Rooms whose names and docstrings are mended with their code, one room after the other."""
FILE_LINES, FUNCTION_LINES = 400, 40
"""A reader keeps so much in view."""

Edge = tuple[str, str]
"""The module that imports, the module that is imported."""


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    name: str
    path: Path

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"))

    @property
    def room(self) -> str:
        """The dotted name of the folder that holds the file."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @property
    def is_to_be_rebuilt(self) -> bool:
        return not ROOMS_TO_REBUILD.isdisjoint(self.room.split(".")[1:2])


class House:
    """The modules of the package, and what is measured of them."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.modules = {module.name: module for module in _modules(root)}
        self.edges, self.type_edges = self._imports()

    def _imports(self) -> tuple[set[Edge], set[Edge]]:
        at_run_time: set[Edge] = set()
        for_types: set[Edge] = set()
        for module in self.modules.values():
            for name, is_typing in _imported(module.tree, self.modules):
                if name != module.name:
                    (for_types if is_typing else at_run_time).add((module.name, name))
        return at_run_time, for_types - at_run_time

    def rooms(self) -> dict[str, int]:
        """The number of files in each room, `__init__.py` included."""
        return dict(sorted(Counter(m.room for m in self.modules.values()).items()))

    def python_lines(self) -> int:
        return sum(_line_count(module.path) for module in self.modules.values())

    def text_lines(self) -> int:
        """Lines of all tracked text outside tests/ and docs/."""
        listed = subprocess.run(
            ["git", "ls-files"], cwd=self.root, capture_output=True, text=True, check=True
        )
        paths = (p for p in listed.stdout.splitlines() if not p.startswith(("tests/", "docs/")))
        return sum(_line_count(self.root / p) for p in paths)

    def circles(self) -> list[list[str]]:
        """Modules that all reach each other by imports, those for types included."""
        found = circles(self.modules, self.edges | self.type_edges)
        return sorted((one for one in found if len(one) > 1), key=len, reverse=True)

    def upward(self, edges: Iterable[Edge]) -> list[Edge]:
        """Imports against the layers of pyproject.toml, whether or not they are excused there."""
        contracts = list(_contracts(self.root))
        return sorted(edge for edge in edges if any(is_upward(edge, each) for each in contracts))

    def shared_class_names(self) -> dict[str, list[str]]:
        """Names of classes that several modules define, with those modules; not `PUBLIC_TWICE`."""
        owners: dict[str, list[str]] = defaultdict(list)
        for module in self.modules.values():
            for node in module.tree.body:
                if isinstance(node, ast.ClassDef):
                    owners[node.name].append(module.name)
        shared = {name: found for name, found in sorted(owners.items()) if len(found) > 1}
        return {n: found for n, found in shared.items() if sorted(found) != PUBLIC_TWICE.get(n)}

    def docstrings(self) -> list[str]:
        return [text for module in self.modules.values() for text in docstrings_of(module.tree)]

    def weak_docstring_share(self) -> float:
        """The share of docstrings that begin with What, Whether, Of or Those."""
        texts = self.docstrings()
        return sum(bool(_WEAK_START.match(text)) for text in texts) / len(texts)

    def vague_names(self) -> dict[str, int]:
        """How often each room binds a name that does not say what it holds."""
        counts = Counter[str]()
        for module in self.modules.values():
            counts[module.room] += sum(name in VAGUE for name in _bound(module.tree))
        return {room: count for room, count in sorted(counts.items()) if count}

    def long_files(self) -> list[str]:
        """Files of more lines than `FILE_LINES`."""
        modules = self.modules.values()
        return sorted(m.name for m in modules if _line_count(m.path) > FILE_LINES)

    def long_functions(self) -> list[str]:
        """Functions of more lines than `FUNCTION_LINES`, without their docstrings."""
        return sorted(
            f"{module.name}.{node.name}"
            for module in self.modules.values()
            for node in ast.walk(module.tree)
            if isinstance(node, ast.FunctionDef) and _code_lines(node) > FUNCTION_LINES
        )


def circles(modules: Iterable[str], edges: Iterable[Edge]) -> list[list[str]]:
    """The strongly connected components of the import graph, by Kosaraju's two sweeps."""
    after: dict[str, list[str]] = defaultdict(list)
    before: dict[str, list[str]] = defaultdict(list)
    for importer, imported in sorted(edges):
        after[importer].append(imported)
        before[imported].append(importer)
    order: list[str] = []
    seen: set[str] = set()
    for module in sorted(modules):
        order += _finished(module, after, seen)
    seen.clear()
    return [component for m in reversed(order) if (component := _finished(m, before, seen))]


def _finished(start: str, after: Mapping[str, list[str]], seen: set[str]) -> list[str]:
    """The unseen nodes that `start` reaches, each after those that it reaches."""
    if start in seen:
        return []
    seen.add(start)
    finished: list[str] = []
    stack = [(start, iter(after.get(start, ())))]
    while stack:
        node, successors = stack[-1]
        successor = next((s for s in successors if s not in seen), None)
        if successor is None:
            finished.append(node)
            stack.pop()
        else:
            seen.add(successor)
            stack.append((successor, iter(after.get(successor, ()))))
    return finished


def _modules(root: Path) -> Iterator[Module]:
    for path in sorted((root / PACKAGE).rglob("*.py")):
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        yield Module(name.removesuffix(".__init__"), path)


def _imported(
    tree: ast.AST, modules: Mapping[str, Module], *, is_typing: bool = False
) -> Iterator[tuple[str, bool]]:
    """Modules of the package that `tree` imports, and whether for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in modules:
                    yield alias.name, is_typing
        elif isinstance(node, ast.ImportFrom):
            home = node.module or ""
            for name in {_home(f"{home}.{alias.name}", home, modules) for alias in node.names}:
                if name in modules:
                    yield name, is_typing
        else:
            typing = is_typing or (
                isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            )
            yield from _imported(node, modules, is_typing=typing)


def _home(full: str, module: str, modules: Mapping[str, Module]) -> str:
    """What ``from module import name`` loads: the submodule `name`, else the module itself."""
    return full if full in modules else module


class _Level(NamedTuple):
    """Where a contract of layers puts a module."""

    height: int
    place: int
    knows_neighbours: bool


def _contracts(root: Path) -> Iterator[dict[str, _Level]]:
    """The contracts of layers in pyproject.toml, each as the levels of the modules it names."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers":
            for container in contract.get("containers", [""]):
                yield levels_of(contract["layers"], container)


def levels_of(layers: Sequence[str], container: str = "") -> dict[str, _Level]:
    """The levels that import-linter reads in `layers`, the highest first."""
    levels: dict[str, _Level] = {}
    for height, layer in enumerate(reversed(layers)):
        for place, part in enumerate(re.split("[|:]", layer)):
            name = part.strip().removeprefix("(").removesuffix(")")
            full = f"{container}.{name}" if container else name
            levels[full] = _Level(height, place, "|" not in layer)
    return levels


def is_upward(edge: Edge, levels: Mapping[str, _Level]) -> bool:
    """Whether a module imports from a higher level, or from a neighbour it must not know."""
    importer, imported = (_level(module, levels) for module in edge)
    if importer is None or imported is None:
        return False
    if importer.height == imported.height:
        return importer.place != imported.place and not importer.knows_neighbours
    return importer.height < imported.height


def _level(module: str, levels: Mapping[str, _Level]) -> _Level | None:
    while module and module not in levels:
        module = module.rpartition(".")[0]
    return levels.get(module)


def docstrings_of(tree: ast.Module) -> Iterator[str]:
    """Docstrings of modules, classes and functions, and the texts below attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str):
                yield text.strip()


def _bound(tree: ast.Module) -> Iterator[str]:
    """Names of variables and parameters, wherever a module binds them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def _code_lines(function: ast.FunctionDef) -> int:
    """The lines of a function's body that are not its docstring."""
    first = function.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    start = (first.end_lineno or 0) + 1 if is_docstring else first.lineno
    return (function.end_lineno or 0) - start + 1


def _line_count(path: Path) -> int:
    data = path.read_bytes()
    return 0 if b"\0" in data else len(data.splitlines())


# -- calls ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calls:
    """The Python of the package that ran."""

    calls: int
    functions: int
    files: int

    def __str__(self) -> str:
        return f"{self.calls:,} calls of {self.functions:,} functions in {self.files} files"


def counted_calls(subject: str) -> dict[str, Calls]:
    """Calls of the first and of a warm derivative of `subject`: ``kernel`` or ``graph``.

    A process of its own counts them, so that nothing is loaded or kept before. One runs ahead
    of it, after which compiled code is on disk: waiting for the compiler is not what is counted.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, __file__, "--subject", subject]
    answers = [subprocess.check_output(command, env=environment) for _ in range(2)]
    return {name: Calls(**found) for name, found in json.loads(answers[-1]).items()}


class _Profile:
    """Counts calls of the package's functions while it is entered."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, int]] = Counter()

    def __enter__(self) -> _Profile:
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _count(self, frame: Any, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and f"/{PACKAGE}/" in code.co_filename and code.co_name != "<module>":
            self._counts[code.co_filename, code.co_name, code.co_firstlineno] += 1

    def calls(self) -> Calls:
        files = {file for file, _, _ in self._counts}
        return Calls(self._counts.total(), len(self._counts), len(files))


def _profiled_kernel(sad: Any) -> dict[str, Calls]:
    @sad.kernel
    def squares(i: sad.Index, x: sad.In[float], y: sad.Out[float]):  # pyright: ignore
        y[i] = x[i] * x[i]

    return _profiled(sad, squares)


def _profiled_graph(sad: Any) -> dict[str, Calls]:
    @sad.graph
    def loss(x: Any) -> Any:
        return sad.sum(sad.sin(x) * x)

    return _profiled(sad, loss)


def _profiled(sad: Any, function: Any) -> dict[str, Calls]:
    sad.open_device("wgpu")
    x = sad.array([0.5, 1.0, 1.5, 2.0], dtype=float)
    with _Profile() as first:
        y, pullback = sad.vjp(function, x)
        pullback(y)
    pullback(y)
    with _Profile() as warm:
        pullback(y)
    return {"first": first.calls(), "warm": warm.calls()}


_SUBJECTS = {"kernel": _profiled_kernel, "graph": _profiled_graph}


# -- the report -------------------------------------------------------------------------------


def _print_figures(house: House) -> None:
    print(f"{house.python_lines():,} lines of Python in {PACKAGE}/")
    print(f"{house.text_lines():,} lines of text outside tests/ and docs/")
    print(f"{100 * house.weak_docstring_share():.0f} % of docstrings begin with What, Whether, ...")
    print("\nFiles a room:")
    for room, count in house.rooms().items():
        print(f"  {count:3} {room}")
    for title, edges in (("imports", house.edges), ("imports for types", house.type_edges)):
        upward = house.upward(edges)
        print(f"\n{len(upward)} upward {title}:")
        for importer, imported in upward:
            print(f"  {importer} -> {imported}")
    print(f"\n{len(house.long_files())} files of over {FILE_LINES} lines:")
    print(f"  {_joined(house.long_files())}")
    print(f"\n{len(house.long_functions())} functions of over {FUNCTION_LINES} lines:")
    print(f"  {_joined(house.long_functions())}")
    vague = house.vague_names()
    print(f"\n{sum(vague.values())} variables called {', '.join(sorted(VAGUE))}:")
    for room, count in vague.items():
        print(f"  {count:3} {room}")
    print(f"\n{len(house.circles())} circles of imports:")
    for circle in house.circles():
        print(f"  {len(circle)} files: {_joined(sorted(circle))}")
    shared = house.shared_class_names()
    print(f"\n{len(shared)} class names with several owners:")
    for name, owners in shared.items():
        print(f"  {name}: {_joined(owners)}")


def _joined(names: Iterable[str]) -> str:
    return ", ".join(name.removeprefix(f"{PACKAGE}.") for name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", action="store_true", help="count the calls of pullbacks, too")
    parser.add_argument("--subject", choices=_SUBJECTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.subject:
        results = _SUBJECTS[arguments.subject](importlib.import_module(PACKAGE))
        print(json.dumps({name: vars(calls) for name, calls in results.items()}))
        return
    _print_figures(House())
    if arguments.calls:
        print()
        for subject in _SUBJECTS:
            for name, calls in counted_calls(subject).items():
                print(f"{name} pullback of a {subject}: {calls}")


if __name__ == "__main__":
    main()
