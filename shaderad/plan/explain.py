"""A plan -> a text of its dispatches and their memory; graphs -> a picture (DOT, SVG or HTML).

In a picture each graph is a panel, side by side. Graphviz draws where it is installed; else nodes
stand in layers, each below its operands.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from shaderad.diagnostics import error
from shaderad.ir import arrays, sizes
from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.dags import in_order
from shaderad.ir.printer import expression_text
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import Access, byte_count
from shaderad.plan.kernels import WIDTH, PlanKernel, kernel_name
from shaderad.plan.literals import literal_operands
from shaderad.plan.nest.row_work import RowSharing
from shaderad.plan.nest.transposed import TILE
from shaderad.plan.nest.words import places_of, words_per_addend, words_text
from shaderad.plan.reductions import operators_of
from shaderad.plan.steps import (
    CallKernel,
    CopyValues,
    Plan,
    Repeat,
    RepeatWhile,
    RunChain,
    RunGroup,
    RunKernel,
    RunPass,
    RunRows,
    RunTiles,
    Step,
)
from shaderad.plan.straight_kernels import reason_to_stay


@dataclass(frozen=True)
class Memory:
    """Bytes that a run needs besides its inputs, at known sizes."""

    live: int
    """The maximum in use at one time."""
    results: int
    between: int
    """Memory of intermediate values, which later runs use again."""


def explain(
    plan: Plan,
    node_count: int,
    known: Mapping[str, int] | None = None,
    memory: Memory | None = None,
) -> str:
    """One line a step; sizes as numbers where they are `known`."""
    return "\n".join(_Text(plan, known).lines(node_count, memory))


class _Text:
    def __init__(self, plan: Plan, known: Mapping[str, int] | None) -> None:
        self._plan = plan
        self._known = known
        self._names = {v: f"in{k}" for k, v in enumerate(plan.inputs)}

    def lines(self, node_count: int, memory: Memory | None) -> Iterator[str]:
        plan = self._plan
        counts = {"node": node_count, "input": len(plan.inputs), "step": len(plan.steps)}
        yield ", ".join(f"{n} {noun}{'' if n == 1 else 's'}" for noun, n in counts.items())
        for v in plan.inputs:
            yield f"  {self._stored(v)}"
        yield from self._steps(plan.steps, "  ")
        results = ", ".join(self._name(v) for v, _ in plan.outputs)
        yield f"results: {results}"
        if memory is not None:
            yield f"most live at one time: {memory.live:,} bytes besides the inputs"
            yield (
                f"allocated: {memory.results + memory.between:,} bytes, "
                f"of which {memory.between:,} serve again after the run"
            )

    def _steps(self, steps: tuple[Step, ...], indent: str) -> Iterator[str]:
        for number, step in enumerate(steps, start=1):
            literals = literal_operands(step.node) if isinstance(step, CallKernel) else ()
            values = (v for v in dict.fromkeys(step.reads) if v not in literals)
            reads = ", ".join(map(self._name, values)) or "nothing"
            writes = ", ".join(self._stored(v) for v in step.writes)
            description = self._description(step) + words_text(step, self._number)
            line = f"{indent}{number}. {description}: {reads} -> {writes}"
            yield line + self._reason(step)
            if isinstance(step, Repeat | RepeatWhile):
                yield from self._steps(step.body.steps, indent + "   ")

    def _reason(self, step: Step) -> str:
        """The reason why a kernel call is not fused with the work around it."""
        if not (isinstance(step, CallKernel) and isinstance(step.node, arrays.KernelCall)):
            return ""
        reason = reason_to_stay(step.node, _KnownSizes(self._known or {}))
        return f"; not fused: {reason}" if reason else ""

    def _description(self, step: Step) -> str:
        match step:
            case RunKernel(work=work):
                accesses = {work.kernel.buffer(name).access for name, _ in work.writes}
                end = ", summed atomically" if Access.ADD in accesses else ""
                return f"{work.kernel.name} over {self._places(work)}{end}"
            case RunPass() | RunChain() | RunRows():
                return self._rows(step)
            case RunTiles():
                return self._tiles(step)
            case CallKernel(call=call):
                mode = f"{' and' if step.stored else ''}{_MODES[type(step.node)]}"
                return f"kernel {call.kernel.name}{mode} over {self._shape(call.dim)}"
            case Repeat():
                return f"loop of {self._size(step.node.count)} iterations"
            case CopyValues(pairs=pairs):
                return "copies" if pairs else "zeros"
            case RunGroup(work=work):
                return f"{work.kernel.name} of one workgroup"
            case RepeatWhile():
                return f"while loop of at most {step.node.limit} iterations"

    def _places(self, work: PlanKernel) -> str:
        """The threads of a kernel, and the elements of each."""
        if any(b.access is Access.GROUP for b in work.kernel.buffers):
            (_, value), *_ = work.writes
            return f"{self._shape(value.shape)} by tiles of {TILE}x{TILE}"
        return self._shape(work.dim) + (f" by {WIDTH}" if work.stores_by_four else "")

    def _pass(self, step: RunPass) -> str:
        node = step.node
        is_scan = isinstance(node, arrays.Scan)
        kind, ops = (
            ("scan", (node.op,))
            if is_scan
            else ("reduce", tuple(op for op, _ in operators_of(node)))
        )
        name, epilogue = step.producer.kernel.name, step.epilogue
        is_read = name in ("input", "map_elements") and len(step.producer.reads) == 1
        fused = "" if is_read else f" of {name}"
        end = f", then {epilogue.name}" if epilogue is not None and epilogue.name else ""
        by = ", ".join(dict.fromkeys(op.name for op in ops))
        return f"{kind} by {by}{fused}{end}"

    def _rows(self, step: RunPass | RunChain | RunRows | RunTiles) -> str:
        """Reductions, a scan, or a chain."""
        if isinstance(step, RunRows):
            return self._rows(step.instead) + self._threads(step)
        if isinstance(step, RunTiles):
            return f"reduce by add over {self._shape(places_of(step))}"
        links = step.links if isinstance(step, RunChain) else (step,)
        names = (s.work.kernel.name if isinstance(s, RunKernel) else self._pass(s) for s in links)
        return f"{', '.join(names)} over {self._shape(places_of(step))}"

    def _tiles(self, step: RunTiles) -> str:
        """A sum over tiles."""
        if step.chosen is None:
            return "sum over tiles"
        tile = step.chosen.tile
        parts = f", {self._size(tile.part_count)} parts" if tile.part_count != 1 else ""
        team = f", shared by {tile.team} threads" if tile.team > 1 else ""
        if tile.is_grouped:
            blocks = [tile.block(axis) for axis in range(len(tile.held))]
            team = f", shared in blocks of {_extents(blocks)}"
        words = f"{words_per_addend(step.sums.work, tile):.3g} words per addend"
        held, steps = _extents(tile.held), _extents(tile.steps)
        return f"sum over tiles of {held}, {steps} addends at a time{team}{parts}, {words}"

    def _threads(self, step: RunRows) -> str:
        """How threads share rows."""
        sharing = step.sharing
        if sharing is None:
            return ""
        lanes, adjacent = sharing.team.lanes, ""
        if isinstance(sharing, RowSharing):
            lanes = 1 if sharing.are_apart else lanes
            if sharing.is_across:
                adjacent = f", {sharing.team.span * sharing.rows} rows at once"
        threads = "a thread" if lanes == 1 else f"{lanes} threads"
        if not step.between:
            return f", {threads} per row{adjacent}"
        parts = self._size(step.between[0].shape[-1])
        return f", {parts} parts per row, {threads} per part{adjacent}"

    # -- values ----------------------------------------------------------------------------

    def _name(self, v: Value) -> str:
        return self._names.setdefault(v, f"t{len(self._names) - len(self._plan.inputs)}")

    def _stored(self, v: Value) -> str:
        size = sizes.multiply(sizes.product(v.shape), byte_count(v.element))
        return f"{self._name(v)} {v.element}{self._shape(v.shape)} ({self._size(size)} bytes)"

    def _shape(self, shape: Shape) -> str:
        return f"[{', '.join(map(self._size, shape))}]"

    def _size(self, size: Size) -> str:
        number = self._number(size)
        return str(size) if number is None else f"{number:,}"

    def _number(self, size: Size) -> int | None:
        """A size that is known."""
        if self._known is None or not sizes.symbols(size) <= self._known.keys():
            return None
        return sizes.evaluate(size, self._known)


@dataclass(frozen=True, slots=True)
class _KnownSizes:
    """Decisions at the sizes of a call."""

    known: Mapping[str, int]

    def are_equal(self, a: Size, b: Size) -> bool:
        return self._value(sizes.subtract(a, b)) == 0

    def is_less(self, a: Size, b: Size) -> bool:
        difference = self._value(sizes.subtract(b, a))
        return difference is not None and difference > 0

    def _value(self, size: Size) -> int | None:
        is_known = sizes.symbols(size) <= self.known.keys()
        return sizes.evaluate(size, self.known) if is_known else None


_MODES = {
    arrays.KernelCall: "",
    arrays.KernelPull: " backward",
    arrays.KernelPush: " forward",
}


# -- pictures ----------------------------------------------------------------------------------

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


def _extents(counts: Sequence[int]) -> str:
    """Extents without those of 1."""
    return "x".join(str(count) for count in counts if count > 1) or "1"
