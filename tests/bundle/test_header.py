"""`NAME.h`: C and C++ compilers take it, and it says what the manifest says."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import shaderad as sad
from shaderad.bundle.write.header import Identifiers, identifier
from tests.bundle.conftest import TARGETS, Output

COMPILERS = {"gcc": ("-xc", "-std=c11"), "g++": ("-xc++", "-std=c++17")}

AWKWARD = """
import shaderad as sad
from shaderad import float2x2, float3, half3, bool2, double2


@sad.struct
class register:
    union: sad.half
    default: half3
    near: bool2


@sad.struct
class Halves:
    a: sad.half
    b: half3


@sad.struct
class Case:
    a: float
    A: int
    x_: float3
    inner: register
    many: sad.LocalArray[register, 3]
    grid: sad.LocalArray[sad.LocalArray[float2x2, 2], 4]
    flags: sad.LocalArray[bool, 3]
    halves: sad.LocalArray[Halves, 3]
    last: sad.half


@sad.struct
class Wide:
    first: float
    second: double2
    third: sad.half
    NULL: sad.double


@sad.struct
class Node:
    weight: float
    next_ones: sad.Pointer[float3]


@sad.kernel
def case(i: sad.Index, x: sad.In[Case], h: sad.In[Halves], auto: float, flag: bool, gain: sad.half,
         y: sad.Out[float]):
    if flag:
        y[i] = x[i].a * auto + float(h[i].a * gain) + x[i].grid[1][0][0, 1]


@sad.kernel
def Case_(i: sad.Index, x: sad.In[Wide], scale: Wide, y: sad.Out[sad.double]):
    y[i] = x[i].NULL * scale.second.x


def another():
    @sad.struct
    class Case:
        other: float

    return Case


Other = another()


@sad.kernel
def CASE(i: sad.Index, x: sad.In[Other], nodes: sad.Pointer[Node], y: sad.Out[float]):
    y[i] = x[i].other * nodes[i].weight * nodes[i].next_ones[0].y


@sad.kernel
def lowest(i: sad.Index, x: sad.In[float], low: sad.Min[float]):
    low[0] = sad.min(low[0], x[i] * x[i])
"""


@pytest.fixture(scope="module")
def awkward(tmp_path_factory: pytest.TempPathFactory) -> Output:
    """A build whose names are C's own, differ in case alone, or belong to two structs."""
    place = tmp_path_factory.mktemp("header")
    source = place / "2nd-model.py"
    source.write_text(AWKWARD, encoding="utf-8")
    sad.build(source, place / "out", targets="spirv", validate=False)
    return Output.read(place / "out")


def compile_header(compiler: str, header: Path, program: str = "") -> None:
    """Includes `header` twice, as programs of several parts do."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    include = f'#include "{header}"\n'
    source = f"{include}{include}{program}\nint main(void) {{ return 0; }}\n"
    done = subprocess.run(
        [compiler, *COMPILERS[compiler], "-Wall", "-Wextra", "-Wpedantic", "-Werror",
         "-fsyntax-only", "-"],
        input=source, text=True, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler", COMPILERS)
def test_it_compiles_without_warnings(compiler: str, output: Output, graph_output: Output) -> None:
    compile_header(compiler, output.folder / "kernels.h")
    compile_header(compiler, graph_output.folder / "graphs.h")


@pytest.mark.parametrize("compiler", COMPILERS)
def test_no_name_clashes_and_no_field_is_moved(compiler: str, awkward: Output) -> None:
    compile_header(compiler, awkward.folder / "2nd-model.h")


def test_every_struct_is_held_to_the_offsets_of_the_manifest(awkward: Output) -> None:
    text = (awkward.folder / "2nd-model.h").read_text(encoding="utf-8")
    assert awkward.manifest["header"] == "2nd-model.h"
    structs = {name: one for name, one in awkward.manifest["types"].items() if "fields" in one}
    assert {"register", "Case", "Case_2", "Wide", "Node", "Halves"} <= set(structs)
    for name, layout in structs.items():
        assert f"static_assert(sizeof(n2nd_model_{name}) == {layout['byte_count']}," in text
        offsets = re.findall(rf"offsetof\(n2nd_model_{name}, \w+\) == (\d+)", text)
        starts = [s["byte_offset"] for field in layout["fields"] for s in layout["scalars"]
                  if s["path"][0] == field["name"]]  # fmt: skip
        firsts = {field["name"]: None for field in layout["fields"]}
        for scalar in reversed(layout["scalars"]):
            firsts[scalar["path"][0]] = scalar["byte_offset"]
        assert [int(one) for one in offsets] == list(firsts.values())
        assert set(map(int, offsets)) <= set(starts)


def test_scalars_of_buffers_are_c_types_of_their_size(awkward: Output) -> None:
    fields = struct_fields(awkward, "n2nd_model_register")
    assert fields == ["uint16_t union_", "uint8_t padding[2]", "uint16_t default_[3]",
                      "uint8_t padding_2[2]", "uint32_t near_[2]"]  # fmt: skip
    assert struct_fields(awkward, "n2nd_model_Halves") == ["uint16_t a", "uint16_t b[3]"]
    assert "double second[2]" in struct_fields(awkward, "n2nd_model_Wide")
    assert "n2nd_model_pointer next_ones" in struct_fields(awkward, "n2nd_model_Node")
    assert "float grid[4][2][2][2]" in struct_fields(awkward, "n2nd_model_Case")


def test_words_of_the_constant_buffer_are_in_the_order_of_the_manifest(awkward: Output) -> None:
    fields_by_kernel: dict[str, list[str]] = {}
    for kernel in awkward.manifest["entries"]:
        primal = kernel["targets"]["spirv"]["programs"][0]
        name = identifier("2nd-model", "spirv", Path(primal["file"]).stem, "parameters")
        fields = fields_by_kernel[kernel["name"]] = struct_fields(awkward, name)
        words = primal["parameters"]["words"]
        assert [f.split()[1].removesuffix("_") for f in fields[: len(words)]] == words
    of_case = {"float auto_", "uint32_t flag", "float gain", "uint32_t thread_count"}
    assert of_case <= set(fields_by_kernel["case"])
    of_wide = {"uint32_t scale_second_0_low", "uint32_t scale_second_0_high"}
    assert of_wide <= set(fields_by_kernel["Case_"])


def struct_fields(built: Output, name: str) -> list[str]:
    """The declarations in a struct of the header."""
    text = (built.folder / built.manifest["header"]).read_text(encoding="utf-8")
    body = re.search(rf"typedef struct {name} {{(.*?)}} {name};", text, re.S)
    assert body is not None, name
    return re.findall(r"^    (\S.*?);", body[1], re.M)


def test_bindings_and_workgroups_are_those_of_the_manifest(output: Output) -> None:
    text = (output.folder / "kernels.h").read_text(encoding="utf-8")
    defined = dict(re.findall(r"^#define (\w+) (.+)$", text, re.M))
    assert defined.pop("KERNELS_REPORT_BYTES") == str(output.manifest["report_bytes"])
    checked = 0
    for target in TARGETS:
        for dispatch in output.dispatches(target):
            for name, value in constants(dispatch):
                stem = Path(dispatch["file"]).stem
                macro = identifier("kernels", target, stem, name).upper()
                assert defined.pop(macro) == value, macro
                checked += 1
    assert checked > 300
    for name, value in fill_words(output):
        assert defined[name] == value, name
    assert {name.rsplit("_", 2)[1] for name in defined} == {"FILL", "GROUP"}


def fill_words(built: Output) -> Iterator[tuple[str, str]]:
    """Constants of words that plans fill buffers with, just before a dispatch."""
    for entry in built.manifest["entries"]:
        for target, plans in entry["targets"].items():
            stems = {p["name"]: Path(p["file"]).stem for p in plans["programs"]}
            commands = plans["primal"]["commands"]
            for fill, run in pairwise(commands):
                names = [n for n, k in run.get("bind", {}).items() if k == fill.get("target")]
                if fill["do"] == "fill" and names:
                    macro = (target, stems[run["program"]], names[0], "fill_word")
                    yield identifier("kernels", *macro).upper(), f"{fill['word']:#x}u"


def constants(dispatch: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What the header must say of a dispatch."""
    yield "entry_point", f'"{dispatch["entry_point"]}"'
    yield "file", f'"{dispatch["file"]}"'
    yield from zip(("workgroup_x", "workgroup_y", "workgroup_z"),
                   map(str, dispatch["workgroup"]), strict=True)  # fmt: skip
    for resource in (dispatch["parameters"], *dispatch["resources"]):
        place = dict(resource["place"])
        if "register" in place:
            register = place.pop("register")
            yield f"{resource['name']}_register_class", f"'{register[0]}'"
            yield f"{resource['name']}_register", register[1:]
        yield from ((f"{resource['name']}_{key}", str(value)) for key, value in place.items())


def test_the_commands_of_a_kernel_are_those_of_its_plan(output: Output) -> None:
    text = (output.folder / "kernels.h").read_text(encoding="utf-8")
    steps = 0
    for place, plans, mode in modes(output):
        listed = re.search(rf"^// {place}, {mode}:\n((?://   .*\n)+)", text, re.M)
        assert listed is not None
        numbered = re.findall(r"^//   \d+\. (.*)$", listed[1], re.M)
        for line, command in zip(numbered, plans[mode]["commands"], strict=True):
            if command["do"] == "run":
                assert f"dispatch {command['groups']} workgroups," in line
                sizes = sizes_of(command, plans["programs"])
                assert all(f" {name} = {value}\n" in listed[1] for name, value in sizes)
            else:
                assert line.startswith(f"{command['do']} {command['byte_count']} bytes")
            steps += 1
    assert steps > 20


def modes(built: Output) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Target and entry as the header writes them, the plans, and each mode that has one."""
    for entry in built.manifest["entries"]:
        for target, plans in entry["targets"].items():
            for mode in {"primal", "backward"} & set(plans):
                yield f"{target}, {entry['name']}", plans, mode


def sizes_of(run: dict[str, Any], programs: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The words of a dispatch that depend on sizes, but not on the host."""
    (program,) = [p for p in programs if p["name"] == run["program"]]
    words = zip(program["parameters"]["words"], run["words"], strict=True)
    return [
        (name, value)
        for name, value in words
        if isinstance(value, str) and "$start_" not in value and "$site_base" not in value
    ]


def test_two_hosts_may_include_the_headers_of_two_builds(
    output: Output, graph_output: Output
) -> None:
    defined: list[str] = []
    for built in (output, graph_output):
        text = (built.folder / built.manifest["header"]).read_text(encoding="utf-8")
        defined += re.findall(r"^#define (\w+)|^\} (\w+);", text, re.M)
    assert len(set(defined)) == len(defined)


def test_names_are_identifiers_and_never_given_twice() -> None:
    names = Identifiers()
    given = [names.claim(text) for text in ("float", "a b", "a_b", "3d", "x__y_", "INT8_MAX", "a")]
    assert given == ["float_", "a_b", "a_b_2", "n3d", "x_y", "INT8_MAX_", "a"]
