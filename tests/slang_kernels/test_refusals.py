"""Wrong Slang and wrong definitions end in errors with the line of the source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad

COPY = """void copy(uint i : SV_DispatchThreadID, In<float> x, Out<float> y)
{
    if (i < y.length()) y[i] = x[i];
}
"""
TYPES: dict[str, Any] = {"x": sad.In[float], "y": sad.Out[float]}


def define(source: Any = COPY, types: Any = None, **options: Any) -> Any:
    all_options: dict[str, Any] = {"group": 64} | options
    return sad.slang_kernel(source, "copy", types or TYPES, **all_options)


COMPILER = {
    "name": ("= x[i]", "= sinn(x[i])", 3, "sinn", "undefined identifier 'sinn'"),
    "syntax": ("= x[i];", "= x[i]", 4, "}", "expected ';'"),
    "type": ("= x[i]", "= float3(0)", 3, "(", "expected an expression of type 'float'"),
    "write to an input": ("y[i] =", "x[i] =", 3, "=", "not an l-value"),
    "read of a result": ("y[i] =", "y[i] +=", 3, "if", "no getter"),
    "indices": ("x[i]", "x[i, 0]", 1, "void", "more or fewer indices"),
    "brackets": ("    if", "    { if", 4, "", "unexpected end of file"),
    "brackets at the end": ("[i];\n}", "[i];\n}}", 4, "", "expected identifier"),
}


@pytest.mark.gpu
@pytest.mark.parametrize("case", COMPILER)
def test_compiler_errors_at_the_users_line(device: sad.Device, case: str) -> None:
    old, new, line, marked, label = COMPILER[case]
    assert old in COPY
    with pytest.raises(sad.CompileError) as caught:
        define(COPY.replace(old, new))(np.ones(5, np.float32), dim=5)
    failure = caught.value
    assert failure.code == "SR0510"
    assert label in failure.label
    assert failure.span is not None
    assert failure.span.line == line
    assert failure.span.text()[failure.span.column :].startswith(marked)


@pytest.mark.gpu
def test_compiler_errors_in_included_files(device: sad.Device, tmp_path: Path) -> None:
    included, main = tmp_path / "twice.slang", tmp_path / "copy.slang"
    included.write_text("// twice\nfloat twice(float a)\n{\n    return 2 * b;\n}\n")
    main.write_text(f'#include "twice.slang"\n{COPY.replace("x[i]", "twice(x[i])")}')
    with pytest.raises(sad.CompileError) as caught:
        define(main)(np.ones(5, np.float32), dim=5)
    span = caught.value.span
    assert span is not None
    assert (span.file, span.line, span.column) == (str(included), 4, 15)


@pytest.mark.gpu
def test_options_of_calls(device: sad.Device) -> None:
    kernel, x = define(), np.ones(5, np.float32)
    for code, call in {
        "SR0372": {},
        "SR0373": {"dim": (5, 5)},
        "SR0276": {"dim": 5, "checks": "nan"},
        "SR0376": {"dim": 5, "shapes": {"z": (5,)}},
    }.items():
        with pytest.raises(sad.Error) as caught:
            kernel(x, **call)
        assert caught.value.code == code


SOURCES = {
    "StructuredBuffer<float> z;\n": "SR0270",
    "[[vk::binding(3, 0)]] RWStructuredBuffer<float> z : register(u3);\n": "SR0270",
    "float z[2] = { 1, 2 };\n": "SR0270",
    "namespace n { float z; }\n": "SR0270",
    "cbuffer Z { float z; }\n": "SR0270",
    "import other;\n": "SR0269",
    "__include other;\n": "SR0269",
    '#include "other.slang"\n': "SR0269",
    '#line 3 "other.slang"\n': "SR0269",
    "[numthreads(64, 1, 1)]\n": "SR0278",
    '[shader("compute")]\n': "SR0278",
}


@pytest.mark.parametrize("text", SOURCES)
def test_text_that_no_kernel_contains(text: str) -> None:
    with pytest.raises(sad.LanguageError) as caught:
        define(f"{text}{COPY}")
    assert caught.value.code == SOURCES[text]
    assert caught.value.span is not None
    assert caught.value.span.text() == text.rstrip()


@pytest.mark.gpu
def test_globals_that_are_no_parameters(device: sad.Device) -> None:
    text = """/* float a; import b; */
    // StructuredBuffer<float> c;
    static const float z[2] = { 1, 2 };
    #define TWO 2
    groupshared float cells[64];
    struct A { float a; };
    typedef float F;
    F half_of(F a);
    F half_of(F a) { return a / TWO; }
    namespace N { static float q; float f(float a = 1) { return a; } }
    """
    source = text + COPY.replace("= x[i]", "= half_of(z[1] * x[i]) * N::f()")
    assert define(source)([3.0], dim=1).numpy().tolist() == [3.0]


SIGNATURES = {
    "In<float3> x": "`x` is `In<float>`, found `In<float3>`",
    "In<float, 2> x": "`x` is `In<float>`, found `In<float,2>`",
    "Out<float> x": "`x` is `In<float>`, found `Out<float>`",
    "StructuredBuffer<float> x": "found `StructuredBuffer<float>`",
    "uint j : SV_Target": "`SV_Target` is none of",
    "float3 j : SV_GroupID": "`SV_GroupID` is no `float3`",
    "In<float> z": "no value is called `z`",
    "uint lane : SV_GroupIndex": "it has no parameter `In<float> x`",
}


@pytest.mark.parametrize("parameter", SIGNATURES)
def test_signatures(parameter: str) -> None:
    with pytest.raises(sad.LanguageError) as caught:
        define(COPY.replace("In<float> x", parameter))
    assert caught.value.code == "SR0274"
    assert SIGNATURES[parameter] in caught.value.label
    assert "In<float> x, Out<float> y" in caught.value.note


def test_signatures_of_derivatives() -> None:
    def backward(parameters: str) -> None:
        define(f"{COPY}void pull({parameters}) {{}}", backward="pull")

    backward("Add<float> x_bar, In<float> y_bar, uint i : SV_DispatchThreadID")
    for parameters in ("Add<float> y_bar", "In<float> x_bar", "Out<float> y", "In<float> y_dot"):
        with pytest.raises(sad.LanguageError) as caught:
            backward(parameters)
        assert caught.value.code == "SR0274"
    types = TYPES | {"x_bar": sad.In[float]}
    source = COPY.replace("In<float> x", "In<float> x, In<float> x_bar")
    with pytest.raises(sad.LanguageError) as caught:
        define(f"{source}void pull() {{}}", types, backward="pull")
    assert caught.value.code == "SR0275"


DEFINITIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "no function": ("SR0271", {"source": COPY.replace("copy", "paste")}),
    "a result": ("SR0271", {"source": COPY.replace("void", "float")}),
    "no backward": ("SR0271", {"backward": "pull"}),
    "group of 0": ("SR0272", {"group": 0}),
    "large group": ("SR0272", {"group": (64, 32)}),
    "four axes": ("SR0272", {"group": (1, 1, 1, 1)}),
    "no size": ("SR0272", {"group": (8, True)}),
    "Min": ("SR0273", {"types": TYPES | {"y": sad.Min[float]}}),
    "Const": ("SR0273", {"types": TYPES | {"n": sad.Const[int]}}),
    "Index": ("SR0273", {"types": TYPES | {"i": sad.Index}}),
    "texture": ("SR0273", {"types": TYPES | {"t": sad.Texture2D[float]}}),
    "five axes": ("SR0273", {"types": TYPES | {"x": sad.In[float, 5]}}),
    "sum of halves": ("SR0273", {"types": TYPES | {"y": sad.Add[sad.half]}}),
    "name": ("SR0273", {"types": TYPES | {"a b": float}}),
    "reserved name": ("SR0215", {"types": TYPES | {"dim": float}}),
    "no type": ("SR0301", {"types": TYPES | {"x": list}}),
    "no dict": ("SR0277", {"types": [("x", sad.In[float])]}),
    "no file": ("SR0268", {"source": "nowhere.slang"}),
    "no path": ("SR0268", {"source": Path("nowhere.slang")}),
}


@pytest.mark.parametrize("case", DEFINITIONS)
def test_definitions(case: str) -> None:
    code, options = DEFINITIONS[case]
    with pytest.raises(sad.LanguageError) as caught:
        define(**options)
    assert caught.value.code == code


def test_texts_of_one_line_of_python() -> None:
    texts = [COPY.replace("In<float> x", f"In<float> {name}") for name in "abca"]
    spans: list[Any] = []
    for text in texts:
        with pytest.raises(sad.LanguageError) as caught:
            define(text)
        spans.append(caught.value.span)
    assert [span.text() for span in spans] == [text.splitlines()[0] for text in texts]
    assert spans[0].file == spans[3].file


def test_files_that_include_each_other(tmp_path: Path) -> None:
    path = tmp_path / "loop.slang"
    path.write_text(f'#include "loop.slang"\n{COPY}')
    with pytest.raises(sad.LanguageError, match="cannot be read") as caught:
        define(path)
    assert caught.value.code == "SR0268"
