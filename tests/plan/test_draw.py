"""Pictures of graphs."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from shaderad.diagnostics import LanguageError
from shaderad.ir import building as b
from shaderad.ir import ops, sizes
from shaderad.ir.arrays import Graph
from shaderad.plan import pictures as drawing
from shaderad.plan.pictures import draw
from shaderad.rules.arrays import vjp
from tests.array_check import array


def graphs() -> dict[str, Graph]:
    x = array((sizes.symbol("n"),))
    primal = Graph((x,), (b.reduce(ops.ADD, b.applied(ops.MUL, x, b.scan(ops.MUL, x))),))
    return {"primal": primal, "gradient": vjp(primal, [True])}


def test_dot_text_holds_both_graphs_side_by_side(tmp_path: Path) -> None:
    draw(tmp_path / "x.dot", graphs())
    text = (tmp_path / "x.dot").read_text()
    assert text.count("subgraph cluster_") == 2
    assert 'label="gradient"' in text
    assert "reduce add" in text


@pytest.mark.parametrize("has_graphviz", [True, False])
@pytest.mark.parametrize("suffix", [".svg", ".html"])
def test_pictures_need_no_graphviz(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, has_graphviz: bool
) -> None:
    if not has_graphviz:
        monkeypatch.setattr(drawing.shutil, "which", lambda _: None)
    path = tmp_path / f"x{suffix}"
    draw(path, graphs())
    text = path.read_text()
    assert "scan mul" in text
    assert "gradient" in text
    if suffix == ".svg":
        ElementTree.fromstring(text)


def test_nodes_stand_below_what_they_need() -> None:
    root = ElementTree.fromstring(drawing.svg_text(graphs()))
    lines = root.findall("{http://www.w3.org/2000/svg}line")
    assert lines
    assert all(float(line.attrib["y1"]) < float(line.attrib["y2"]) for line in lines)


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LanguageError, match="SR0287"):
        draw(tmp_path / "x.png", graphs())
