"""A build leaves `print` out, and says so at its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
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


CHECKED = """
import shaderad as sad


@sad.kernel
def tells(i: sad.Index, x: sad.In[float]):
    print(x[i])


@sad.kernel
def checks(i: sad.Index, x: sad.In[float]):
    assert x[i] > 0.0, "x is positive"


@sad.graph
def lowered(x: sad.Array[float, "n"]):
    def step(k, c):
        tells(c, dim=c.shape)
        checks(c, dim=c.shape)
        return c - 1.0

    tells(x, dim=x.shape)
    return {"sum": sad.sum(sad.fori_loop(2, step, x) * x), "x": x}
"""


@pytest.mark.gpu
def test_a_built_graph_keeps_its_checks(tmp_path: Path, device: sad.Device) -> None:
    (tmp_path / "lowered.py").write_text(CHECKED, encoding="utf-8")
    with pytest.warns(UserWarning, match="SR0754"):
        sad.build(tmp_path / "lowered.py:lowered", tmp_path / "out", targets="spirv,wgsl")
    lowered = sad.load(tmp_path / "out").lowered
    x = np.float32([1.5, 3.0])
    out, pullback = sad.vjp(lowered, x)
    assert (out["sum"].item(), [*out]) == (-0.75 + 3.0, ["sum", "x"])
    np.testing.assert_allclose(pullback({"sum": 1.0, "x": None})[0].numpy(), 2 * x - 2.0)
    device.synchronize()
    lowered(np.float32([0.5]))  # the second iteration sees -0.5
    with pytest.raises(sad.BoundsError, match="x is positive"):
        device.synchronize()
