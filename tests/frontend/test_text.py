"""What the front end makes of Python, read as text: conversions, temporaries, specialisations."""

import importlib.util
import linecache
import math
import textwrap
from pathlib import Path

import pytest

import shaderad as sad
from shaderad import float2, float3
from shaderad.decorators import KernelFunction
from shaderad.ir.printer import kernel_text


@sad.struct
class Light:
    colours: sad.In[float3]
    gain: float

    def colour(self, index: int) -> float3:
        return self.colours[index] * self.gain


@sad.function
def cube(x: float) -> float:
    return x**3


@cube.backward_derivative
def cube_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += 3.0 * x.p * x.p * d_out


@sad.function
def fetch(w: sad.In[float], index: int) -> float:
    return w[index]


@fetch.backward_derivative(check=False)
def fetch_bwd(w: sad.DifferentialPair[sad.In[float]], index: int, d_out: float):
    w.d[index] += d_out * w.p[index]


def text_of(kernel: KernelFunction) -> str:
    return kernel_text(kernel.specialise({}))


def shows(kernel: KernelFunction, wanted: str) -> None:
    assert text_of(kernel).strip() == textwrap.dedent(wanted).strip()


def test_numbers_take_the_type_of_what_they_meet() -> None:
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], u: sad.uint, y: sad.Out[float]):
        y[i] = x[i] * 2 + i / 2 - float(u & 255)

    shows(k, """
        kernel k(i, x: In[float], y: Out[float], u: uint):
            y[i] = (((x[i] * 2.0) + (float(i) / 2.0)) - float((u & uint(255))))
    """)  # fmt: skip


def test_swaps_and_chains_evaluate_once_and_in_order() -> None:
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        a, b = x[i], 2.0
        a, b = b, a
        if 0 < a + b < 3:
            y[i] = a

    shows(k, """
        kernel k(i, x: In[float], y: Out[float]):
            local part_1: float
            local a: float
            local b: float
            local b_1: float
            local a_1: float
            local middle_1: float
            part_1 = x[i]
            a = part_1
            b = 2.0
            b_1 = b
            a_1 = a
            a = b_1
            b = a_1
            middle_1 = (a + b)
            if ((0.0 < middle_1) and (middle_1 < 3.0)):
                y[i] = a
    """)  # fmt: skip


def test_structs_of_arrays_are_specialised_away() -> None:
    @sad.kernel
    def k(i: sad.Index, light: Light, y: sad.Out[float3]):
        y[i].zy = light.colour(i + 1).xy

    shows(k, """
        function Light_colour(self_gain: float, index: int) -> float3 on light_colours:
            return (light_colours[index] * float3(self_gain))

        kernel k(i, light_colours: In[float3], y: Out[float3], light_gain: float):
            y[i].zy = Light_colour(light_gain, (i + 1)).xy
    """)  # fmt: skip


def test_derivatives_are_read_with_their_function() -> None:
    @sad.kernel
    def k(i: sad.Index, w: sad.In[float], y: sad.Out[float], s: sad.Add[float2]):
        p = sad.diff_pair(fetch(w, i))
        sad.bwd_diff(cube)(p, 1)
        y[i] = p.d
        s[0].y -= sad.detach(p.p)

    shows(k, """
        function fetch(index: int) -> float on w:
            return w[index]
        backward function fetch_bwd(index: int, d_out: float) -> None on w:
            w.d[index] += (d_out * w[index])

        function cube(x: float) -> float:
            return powi(x, 3)
        backward function cube_bwd(x: DifferentialPair[float], d_out: float) -> None:
            x.d = (x.d + (((3.0 * x.p) * x.p) * d_out))

        kernel k(i, w: In[float], y: Out[float], s: Add[float2]):
            local p: DifferentialPair[float]
            p = pair(fetch(i), float())
            bwd_diff(cube)(p, 1.0)
            y[i] = p.d
            s[0].y accumulates negate(detach(p.p))
    """)  # fmt: skip


def test_loops_keep_their_own_variable_where_nothing_else_uses_it() -> None:
    @sad.kernel
    def k(i: sad.Index, n: int, y: sad.Out[float]):
        for j in sad.range(2, n, limit=9):
            y[i] += j
        j = 0
        for j in sad.static_range(3):
            if j > i:
                break
        while sad.limit(j < n, 5):
            j += 2
            assert j >= 0
        y[i] = j

    shows(k, """
        kernel k(i, y: Out[float], n: int):
            local j_1: int
            local j: int
            local j_2: int
            for j_1 in range(2, n, 1, limit=9):
                j = j_1
                y[i] = (y[i] + float(j))
            j = 0
            for j_2 in static_range(0, 3, 1):
                j = j_2
                if (j > i):
                    break
            while (j < n), limit=5:
                j = (j + 2)
                assert (j >= 0), 'j >= 0'
            y[i] = float(j)
    """)  # fmt: skip


def test_each_set_of_values_is_compiled_once() -> None:
    @sad.kernel
    def k(i: sad.Index, n: sad.Const[int], y: sad.Out[float]):
        y[i] = n * gain

    gain = 2.0
    first, other = k.specialise({"n": 1}), k.specialise({"n": 2})
    gain = 3.0
    changed = k.specialise({"n": 1})
    gain = 2.0
    assert k.specialise({"n": 1}) is first
    assert k.specialise({"n": 2}) is other
    assert [kernel_text(c).split()[-1] for c in (first, other, changed)] == ["2.0", "4.0", "3.0"]


def test_a_body_may_be_empty() -> None:
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        """Says nothing."""
        ...  # noqa: PIE790

    shows(k, "kernel k(i, y: Out[float]):\n    pass")


def test_a_module_may_be_imported_under_another_name(tmp_path: Path) -> None:
    file = tmp_path / "written.py"
    file.write_text(
        "from __future__ import annotations\n"
        "import shaderad as other\n"
        "@other.struct\n"
        "class P:\n"
        "    x: float\n"
        "    q: Q\n"
        "@other.struct\n"
        "class Q:\n"
        "    z: other.float2\n"
        "@other.kernel\n"
        "def k(i: other.Index, p: P, y: other.Out[float]):\n"
        "    y[i] = p.x + p.q.z.y\n"
    )
    spec = importlib.util.spec_from_file_location("renamed", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shows(module.k, """
        kernel k(i, y: Out[float], p: P):
            y[i] = (p.x + p.q.z.y)
    """)  # fmt: skip


def test_without_source_a_kernel_says_so() -> None:
    space: dict[str, object] = {"sad": sad}
    exec("@sad.kernel\ndef k(i: sad.Index, y: sad.Out[float]):\n    y[i] = 1.0\n", space)
    with pytest.raises(sad.LanguageError, match="`exec` keep no source") as caught:
        text_of(space["k"])  # type: ignore[arg-type]
    assert caught.value.code == "SR0101"


def test_a_source_that_changed_is_noticed() -> None:
    text = "@sad.kernel\ndef k(i: sad.Index, y: sad.Out[float]):\n    y[i] = 1.0\n"
    changed = text.replace("def k", "def other")
    linecache.cache["<changed>"] = (len(changed), None, changed.splitlines(True), "<changed>")
    space: dict[str, object] = {"sad": sad}
    exec(compile(text, "<changed>", "exec"), space)
    with pytest.raises(sad.LanguageError, match="has changed since") as caught:
        text_of(space["k"])  # type: ignore[arg-type]
    assert caught.value.code == "SR0102"


def test_forms_of_the_language_do_nothing_outside_of_kernels() -> None:
    with pytest.raises(sad.LanguageError, match="inside kernels only") as caught:
        sad.fwd_diff(cube)
    assert caught.value.code == "SR0230"


def test_derivatives_are_not_called_themselves() -> None:
    with pytest.raises(sad.LanguageError, match="`cube_bwd` is a derivative") as caught:
        cube_bwd(1.0, 2.0)
    assert caught.value.code == "SR0236"


def test_functions_run_as_python_outside_of_kernels() -> None:
    assert cube(3.0) == 27.0
    assert sad.lerp(1.0, 3.0, 0.5) == 2.0
    assert float3(1, 2, 3).tolist() == [1.0, 2.0, 3.0]


def test_a_constant_base_of_a_logarithm_takes_the_type_of_the_number() -> None:
    @sad.kernel
    def k(i: sad.Index, x: sad.In[sad.double], y: sad.Out[sad.double]):
        y[i] = math.log(x[i], 10)

    shows(k, """
        kernel k(i, x: In[double], y: Out[double]):
            y[i] = (log(x[i]) / log(double(10.0)))
    """)  # fmt: skip


def test_a_parameter_replaced_on_every_path_may_be_changed_in_part() -> None:
    @sad.kernel
    def k(i: sad.Index, c: float3, y: sad.Out[float3]):
        if i > 2:
            c = c * 2.0
        else:
            c = float3(1.0)
        c.x = 0.0
        y[i] = c

    assert "c_1.x = 0.0" in text_of(k)
