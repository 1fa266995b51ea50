"""Graphs -> a picture (DOT, SVG or HTML).

Each graph is a panel, side by side. Graphviz draws where it is installed; else nodes stand in
layers, each below its operands.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from html import escape
from pathlib import Path

from shaderad.diagnostics import error
from shaderad.ir import arrays
from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.dags import in_order
from shaderad.ir.printer import expression_text
from shaderad.plan.clusters import kernel_name

FORMATS = (".svg", ".html", ".dot")
_LABEL_PARTS = 6
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 210, 40, 20, 34
_SECONDS = 60


def draw(path: str | Path, graphs: Mapping[str, Graph]) -> None:
    """Writes a picture of `graphs`, by their titles.

    Raises:
        LanguageError: SR0287, where the name of the file ends in none of `FORMATS`.
    """
    target = Path(path)
    if target.suffix not in FORMATS:
        raise error("SR0287", path=str(path), formats=", ".join(FORMATS))
    text = dot_text(graphs)
    if target.suffix != ".dot":
        svg = _by_graphviz(text) or svg_text(graphs)
        text = svg if target.suffix == ".svg" else html_text(svg, " and ".join(graphs))
    target.write_text(text, encoding="utf-8")


def label(node: Node) -> str:
    """The text in a node's box."""
    if isinstance(node, arrays.Elementwise):
        if len(in_order(node.expr)) > _LABEL_PARTS:
            return kernel_name(node.result)
        return expression_text(node.expr)
    name = type(node).__name__.lower()
    if isinstance(node, arrays.Reduce | arrays.Scan):
        return f"{name} {node.op.name}"
    if isinstance(node, arrays.KernelCall):
        return node.kernel.name
    if isinstance(node, arrays.KernelPull | arrays.KernelPush):
        return f"{node.call.kernel.name} {name.removeprefix('kernel')}"
    return name


class _Numbered:
    """The boxes of one graph: inputs first, then nodes."""

    def __init__(self, graph: Graph) -> None:
        self.boxes: list[tuple[str, str, bool]] = []
        """Name, types of the results, and True for inputs and outputs."""
        self.edges: list[tuple[int, int]] = []
        self._number_by_node: dict[Node, int] = {}
        self._number_by_input = {v: k for k, v in enumerate(graph.inputs)}
        self.boxes += [(f"input {k}", str(v.type), True) for k, v in enumerate(graph.inputs)]
        for node in graph.nodes:
            self._number_by_node[node] = len(self.boxes)
            self.boxes.append((label(node), ", ".join(str(v.type) for v in node.results), False))
            self._join(node.operands, len(self.boxes) - 1)
        for k, v in enumerate(graph.outputs):
            self.boxes.append((f"output {k}", str(v.type), True))
            self._join((v,), len(self.boxes) - 1)

    def _join(self, values: tuple[Value, ...], target: int) -> None:
        for v in dict.fromkeys(values):
            source = (
                self._number_by_input.get(v)
                if v.producer is None
                else self._number_by_node[v.producer]
            )
            if source is not None:
                self.edges.append((source, target))

    def layers(self) -> list[list[int]]:
        """Boxes by the longest path to them; within a layer, below the mean of their operands."""
        depth = [0] * len(self.boxes)
        for source, target in self.edges:  # operands come before users
            depth[target] = max(depth[target], depth[source] + 1)
        layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
        for k, at in enumerate(depth):
            layers[at].append(k)
        place: dict[int, float] = {}
        for layer in layers:
            for k in layer:
                above = [place[source] for source, target in self.edges if target == k]
                place[k] = sum(above) / len(above) if above else float(k)
            layer.sort(key=lambda k: place[k])
            place.update((k, float(position)) for position, k in enumerate(layer))
        return layers


# -- DOT --------------------------------------------------------------------------------------


def dot_text(graphs: Mapping[str, Graph]) -> str:
    """One cluster a graph."""
    lines = ["digraph {", "  rankdir=TB; node [shape=box, fontname=monospace, fontsize=10];"]
    for number, (title, graph) in enumerate(graphs.items()):
        numbered = _Numbered(graph)
        lines += [f"  subgraph cluster_{number} {{", f"    label={_quoted(title)};"]
        for k, (name, types, is_end) in enumerate(numbered.boxes):
            style = ", style=rounded" if is_end else ""
            text = _quoted(name + "\n" + types)
            lines.append(f"    n{number}_{k} [label={text}{style}];")
        lines += [f"    n{number}_{a} -> n{number}_{b};" for a, b in numbered.edges]
        lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _by_graphviz(text: str) -> str | None:
    program = shutil.which("dot")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "-Tsvg"], input=text, capture_output=True, text=True, timeout=_SECONDS,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


# -- SVG --------------------------------------------------------------------------------------


def svg_text(graphs: Mapping[str, Graph]) -> str:
    """Panels from left to right."""
    parts: list[str] = []
    left, height = _GAP_X, 0
    for title, graph in graphs.items():
        panel, width, panel_height = _panel(title, graph, left)
        parts += panel
        left += width + 2 * _GAP_X
        height = max(height, panel_height)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left}" height="{height}" '
        'font-family="monospace" font-size="10" text-anchor="middle">'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def _panel(title: str, graph: Graph, left: int) -> tuple[list[str], int, int]:
    numbered = _Numbered(graph)
    layers = numbered.layers()
    width = max((len(layer) for layer in layers), default=1) * (_WIDTH + _GAP_X)
    at: dict[int, tuple[int, int]] = {}
    for depth, layer in enumerate(layers):
        start = left + (width - len(layer) * (_WIDTH + _GAP_X)) // 2
        for k, box in enumerate(layer):
            at[box] = (start + k * (_WIDTH + _GAP_X), 2 * _GAP_Y + depth * (_HEIGHT + _GAP_Y))
    parts = [f'<text x="{left + width // 2}" y="{_GAP_Y}" font-size="14">{escape(title)}</text>']
    for source, target in numbered.edges:
        (x1, y1), (x2, y2) = at[source], at[target]
        parts.append(
            f'<line x1="{x1 + _WIDTH // 2}" y1="{y1 + _HEIGHT}" x2="{x2 + _WIDTH // 2}" '
            f'y2="{y2}" stroke="gray"/>'
        )
    for k, (name, types, is_end) in enumerate(numbered.boxes):
        x, y = at[k]
        middle = x + _WIDTH // 2
        parts.append(
            f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" '
            f'rx="{12 if is_end else 2}" fill="{"#eef" if is_end else "white"}" stroke="black"/>'
        )
        parts.append(f'<text x="{middle}" y="{y + 16}">{escape(name)}</text>')
        parts.append(f'<text x="{middle}" y="{y + 31}" fill="gray">{escape(types[:36])}</text>')
    return parts, width, 3 * _GAP_Y + len(layers) * (_HEIGHT + _GAP_Y)


def html_text(svg: str, title: str) -> str:
    """A page that shows the picture."""
    start = svg.index("<svg")
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f"<title>{escape(title)}</title>\n{svg[start:]}</html>\n"
    )
