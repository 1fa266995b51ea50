"""Where the manifest says a resource is bound, held against what the compiler wrote.

Nothing of shaderad reads the code here: SPIR-V is taken apart by its own decorations, text by
patterns of its own.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import shaderad as sad
from shaderad.compiler.artifact import Binding, BindingAccess, Program
from shaderad.compiler.places import hlsl_places as places_in_hlsl
from shaderad.diagnostics import Error
from tests.bundle.conftest import SOURCE, Output

Places = dict[str, tuple[Any, bool]]
"""By resource: where it is bound, and whether it may be written."""

OP_NAME, OP_MEMBER_DECORATE, OP_DECORATE = 5, 72, 71
OP_ENTRY_POINT, OP_EXECUTION_MODE = 15, 16
BINDING, DESCRIPTOR_SET, NON_WRITABLE, OFFSET = 33, 34, 24, 35
LOCAL_SIZE = 17


@dataclass
class Spirv:
    """What the decorations of a module say."""

    names: dict[int, str] = field(default_factory=dict[int, str])
    decorations: dict[int, dict[int, int]] = field(default_factory=dict[int, dict[int, int]])
    offsets: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    entry_point: str = ""
    local_size: tuple[int, ...] = ()


def text_of(words: tuple[int, ...]) -> str:
    return struct.pack(f"<{len(words)}I", *words).partition(b"\0")[0].decode()


def read_spirv(content: bytes) -> Spirv:
    words = struct.unpack(f"<{len(content) // 4}I", content)
    assert words[0] == 0x07230203
    module, position = Spirv(), 5
    while position < len(words):
        count, op = words[position] >> 16, words[position] & 0xFFFF
        operands = words[position + 1 : position + count]
        position += count
        if op == OP_NAME:
            module.names[operands[0]] = text_of(operands[1:])
        elif op == OP_DECORATE:
            value = operands[2] if len(operands) > 2 else 1
            module.decorations.setdefault(operands[0], {})[operands[1]] = value
        elif op == OP_MEMBER_DECORATE and operands[2] == OFFSET:
            module.offsets.setdefault(operands[0], []).append(operands[3])
        elif op == OP_ENTRY_POINT:
            module.entry_point = text_of(operands[2:])
        elif op == OP_EXECUTION_MODE and operands[1] == LOCAL_SIZE:
            module.local_size = operands[2:]
    return module


def spirv_places(module: Spirv) -> Places:
    return {
        module.names[each]: (
            {"set": known[DESCRIPTOR_SET], "binding": known[BINDING]},
            NON_WRITABLE not in known,
        )
        for each, known in module.decorations.items()
        if BINDING in known
    }


def wgsl_places(text: str) -> Places:
    pattern = r"@binding\((\d+)\) @group\((\d+)\) var<(\w+)(?:, (\w+))?> (\w+)_\d+ :"
    return {
        name: ({"set": int(group), "binding": int(slot)}, access == "read_write")
        for slot, group, _, access, name in re.findall(pattern, text)
    }


def hlsl_places(text: str) -> Places:
    found: Places = {}
    for line in text.splitlines():
        head, is_bound, rest = line.partition(": register(")
        if is_bound:
            name = head.split()[-1].rpartition("_")[0]
            register, _, space = rest.partition(")")[0].partition(", space")
            place = {"register": register, "space": int(space or 0)}
            found[name] = (place, head.startswith("RW"))
    return found


def metal_places(text: str) -> dict[str, dict[str, int]]:
    """Metal's text does not tell which buffers are only read."""
    return {
        name: {"buffer": int(slot)}
        for name, slot in re.findall(r"\b(\w+)_\d+ \[\[buffer\((\d+)\)\]\]", text)
    }


def said(dispatch: dict[str, Any]) -> Places:
    """What the manifest says."""
    parameters = dispatch["parameters"]
    resources = [(r["name"], (r["place"], r["access"] == "write")) for r in dispatch["resources"]]
    return {parameters["name"]: (parameters["place"], False), **dict(resources)}


def check(output: Output, target: str, found: Callable[[dict[str, Any]], Places]) -> None:
    dispatches = output.dispatches(target)
    assert dispatches
    for dispatch in dispatches:
        known = {name: place for name, place in said(dispatch).items() if place[0]}
        assert found(dispatch) == known, dispatch["entry_point"]


@pytest.mark.parametrize("target", ["spirv", "spirv-core"])
def test_spirv_binds_where_the_manifest_says(output: Output, target: str) -> None:
    def found(dispatch: dict[str, Any]) -> Places:
        module = read_spirv((output.folder / dispatch["file"]).read_bytes())
        assert module.entry_point == dispatch["entry_point"]
        assert module.local_size == tuple(dispatch["workgroup"])
        bound = spirv_places(module)
        is_uniform = dispatch["parameters"]["name"]
        return {n: (place, w and n != is_uniform) for n, (place, w) in bound.items()}

    check(output, target, found)


@pytest.mark.parametrize("target", ["spirv", "spirv-core"])
def test_parameters_lie_word_after_word(output: Output, target: str) -> None:
    for dispatch in output.dispatches(target):
        module = read_spirv((output.folder / dispatch["file"]).read_bytes())
        offsets = [
            places
            for each, places in module.offsets.items()
            if module.names[each].startswith("Parameters")
        ]
        words = dispatch["parameters"]["words"]
        assert offsets == [[4 * k for k in range(len(words))]], dispatch["entry_point"]


def test_wgsl_binds_where_the_manifest_says(output: Output) -> None:
    check(output, "wgsl", lambda dispatch: wgsl_places(output.text(dispatch)))


def test_hlsl_registers_are_those_that_slang_numbered(output: Output) -> None:
    check(output, "hlsl", lambda dispatch: hlsl_places(output.text(dispatch)))


def test_metal_buffers_are_those_that_slang_numbered(output: Output) -> None:
    for dispatch in output.dispatches("metal"):
        known = {name: place for name, (place, _) in said(dispatch).items() if place}
        assert metal_places(output.text(dispatch)) == known, dispatch["entry_point"]


@pytest.mark.parametrize("target", ["spirv", "spirv-core"])
def test_a_resource_that_the_compiler_dropped_has_no_place(output: Output, target: str) -> None:
    (dispatch,) = (d for d in output.dispatches(target) if d["entry_point"] == "levels_bwd")
    # The derivative of `round` is 0: the cotangent is not read.
    unread = {r["name"]: r["place"] for r in dispatch["resources"] if r["access"] == "read"}
    assert set(unread) == {"y_bar_words"}
    assert not any(unread.values())


def test_entry_points_and_workgroups_of_text_are_those_of_the_manifest(output: Output) -> None:
    for dispatch in output.dispatches("hlsl"):
        x, y, z = dispatch["workgroup"]
        head = rf"\[numthreads\({x}, {y}, {z}\)\]\s+void {dispatch['entry_point']}\("
        assert re.search(head, output.text(dispatch))
    for dispatch in output.dispatches("wgsl"):
        x, y, z = dispatch["workgroup"]
        head = rf"@workgroup_size\({x}, {y}, {z}\)\s+fn {dispatch['entry_point']}\("
        assert re.search(head, output.text(dispatch))


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> Output:
    """`splat`, with everything in space 1 from slot 4 on, which validators accept."""
    folder = tmp_path_factory.mktemp("placed") / "out"
    targets = ("spirv", "spirv-core", "hlsl", "wgsl")
    sad.build(f"{SOURCE}:splat", folder, targets=targets, space=1, binding_base=4, workgroup=96)
    return Output(folder, json.loads((folder / "manifest.json").read_text(encoding="utf-8")))


def test_what_was_asked_for_holds_on_every_target(placed: Output) -> None:
    check(placed, "wgsl", lambda dispatch: wgsl_places(placed.text(dispatch)))
    check(placed, "hlsl", lambda dispatch: hlsl_places(placed.text(dispatch)))
    for target in ("spirv", "spirv-core", "hlsl", "wgsl"):
        for dispatch in placed.dispatches(target):
            assert dispatch["workgroup"] == [96, 1, 1]
            slots = [r["slot"] for r in (dispatch["parameters"], *dispatch["resources"])]
            assert slots == [4 + k for k in range(len(slots))]
            for one in (dispatch["parameters"], *dispatch["resources"]):
                check_place(one["place"], one["slot"])
        assert placed.manifest["targets"][target]["space"] == 1
        assert placed.manifest["targets"][target]["first_binding"] == 4


def check_place(place: dict[str, Any], slot: int) -> None:
    """A place of space 1 with the number of the slot, or none."""
    if "register" in place:
        assert (place["register"][1:], place["space"]) == (str(slot), 1)
    elif place:
        assert place == {"set": 1, "binding": slot}


def test_metal_buffers_start_where_it_was_asked_for(tmp_path: Path) -> None:
    sad.build(f"{SOURCE}:shuffle", tmp_path / "out", targets="metal", binding_base=4)
    text = (tmp_path / "out/metal/shuffle_primal.metal").read_text(encoding="utf-8")
    assert {p["buffer"] for p in metal_places(text).values()} == {4, 5, 6, 7, 8}


def test_a_register_that_belongs_to_no_binding_is_our_bug() -> None:
    program = Program("k", "", (64, 1, 1), (Binding(1, "x_words", BindingAccess.READ),))
    fine = b"StructuredBuffer<uint > x_words_0 : register(t0);"
    assert places_in_hlsl(program, fine) == {"x_words": {"register": "t0", "space": 0}}
    for text in (
        b"RWByteAddressBuffer x_words_0 : register(u0);",
        b"T y_0 : register(t1);",
        b"StructuredBuffer<uint > x_words_0 : register(t0, space1);",
    ):
        with pytest.raises(Error) as caught:
            places_in_hlsl(program, text)
        assert caught.value.code == "SR0714"
        assert "bug in shaderad" in caught.value.message


CROWDED = """
import shaderad as sad


@sad.kernel
def doubled(i: sad.Index, x: sad.In[float], x_words: sad.In[float], report: sad.Out[float]):
    report[i] = x[i] * x[i] * x_words[i // 2]
"""


def test_arrays_named_like_what_we_declare_are_told_apart(tmp_path: Path) -> None:
    source = tmp_path / "crowded.py"
    source.write_text(CROWDED)
    sad.build(source, tmp_path / "out", targets="hlsl,metal", validate=False)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    (kernel,) = manifest["entries"]
    for target, word in (("hlsl", "register"), ("metal", "buffer")):
        for point in kernel["targets"][target]["programs"]:
            found = [resource["place"][word] for resource in point["resources"]]
            assert len(set(found)) == len(found) >= 4
