"""A build leaves `print` out, and says so at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

import shaderad as sad

SOURCE = """
import shaderad as sad


@sad.function
def told(x: float) -> float:
    print("x", x)
    return x * x


@told.backward_derivative
def told_bwd(x: sad.DifferentialPair[float], d: float):
    print("d", d)
    x.d += 2.0 * told(x.p) / x.p * d


@sad.kernel
def shade(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = told(x[i])


@sad.graph
def total(x: sad.Array[float, "n"]) -> sad.Array[float]:
    return sad.sum(shade(x, dim=x.shape))
"""


@pytest.mark.parametrize("entry", ["shade", "total"])
def test_what_is_built_prints_nothing_and_a_warning_names_each_line(
    entry: str, tmp_path: Path
) -> None:
    (tmp_path / "told.py").write_text(SOURCE, encoding="utf-8")
    with pytest.warns(UserWarning, match="SR0754") as warned:
        sad.build(f"{tmp_path / 'told.py'}:{entry}", tmp_path / "out", targets="spirv",
                  validate=False)  # fmt: skip
    found = {(Path(one.filename).name, one.lineno) for one in warned}
    assert found == {("told.py", 7), ("told.py", 13)}
    texts = [path.read_text(encoding="utf-8") for path in (tmp_path / "out/spirv").glob("*.slang")]
    assert len(texts) >= 2
    assert not any("Printer" in text or "print_words" in text for text in texts)
