"""`manifest.json`: what a host needs, and nothing of the machine that wrote it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import shaderad as sad
from tests.bundle.conftest import SOURCE, Output, programs_of
from tests.bundle.manifest_schema import PATH, schema_text

PACKED = np.dtype([("color", np.float32, 3), ("id", np.uint32), ("weight", np.float32, (2, 2))])
"""`Texel` below as NumPy packs it: the layout that the manifest promises."""

STRUCTS = """
import shaderad as sad
from shaderad import float3, float2x2


@sad.struct
class Texel:
    color: float3
    id: sad.uint
    weight: float2x2


@sad.kernel
def shade(i: sad.Index, x: sad.In[Texel], y: sad.Out[float]):
    y[i] = x[i].color.x * x[i].weight[0, 1]
"""


def test_every_file_is_listed_with_its_hash_and_no_other(output: Output) -> None:
    found = contents(output.folder)
    del found["manifest.json"]
    assert output.manifest["files"] == {
        name: hashlib.sha256(content).hexdigest() for name, content in found.items()
    }


def test_the_schema_is_what_the_structs_say() -> None:
    assert PATH.read_text(encoding="utf-8") == schema_text(), "run `scripts/run golden`"


def test_it_names_nothing_of_this_machine(output: Output) -> None:
    for path, content in contents(output.folder).items():
        for name in (output.folder, SOURCE.parent, Path.home()):
            assert os.fsencode(name) not in content, path


def test_constants_carry_the_values_they_were_built_with(output: Output) -> None:
    (levels,) = (k for k in output.manifest["entries"] if k["name"] == "levels")
    constants = {p["name"]: p["value"] for p in levels["parameters"] if p["kind"] == "constant"}
    assert constants == {"count": 8, "top": "inf"}


def test_parameters_are_told_apart_by_what_a_host_binds(output: Output) -> None:
    (splat,) = (k for k in output.manifest["entries"] if k["name"] == "splat")
    assert {p["name"]: p["kind"] for p in splat["parameters"]} == {
        "cloud": "struct of arrays",
        "x_1": "array",
        "bin": "array",
        "gain": "uniform",
        "words": "array",
        "total": "array",
        "low": "array",
    }
    arrays = {a["name"]: a for a in splat["inputs"]}
    assert arrays["cloud_points"]["path"] == ["cloud", "points"]
    assert [(a["name"], a["access"]) for a in splat["outputs"]] == [
        ("words", "Out"),
        ("total", "Add"),
        ("low", "Min"),
    ]
    assert [n for n, a in arrays.items() if a["is_differentiable"]] == [
        "cloud_points",
        "cloud_sizes",
        "x_1",
    ]


def test_a_min_array_is_differentiated_in_three_dispatches(output: Output) -> None:
    (splat,) = (k for k in output.manifest["entries"] if k["name"] == "splat")
    for programs in splat["targets"].values():
        primal, backward = programs_of(programs, "primal"), programs_of(programs, "backward")
        assert [p["entry_point"] for p in primal] == ["splat_primal", "low_decode"]
        assert [p["entry_point"] for p in backward[:3]] == [
            "splat_winner",
            "splat_winner",
            "splat_bwd",
        ]
        assert len({p["file"] for p in primal + backward[:3]}) == 5


def test_a_kernel_without_gradient_says_why(output: Output) -> None:
    (shuffle,) = (k for k in output.manifest["entries"] if k["name"] == "shuffle")
    for programs in shuffle["targets"].values():
        assert "backward" not in programs
        assert programs["no_backward"]["code"] == "SR0414"
        assert "`y` is written at indices that may repeat" in programs["no_backward"]["reason"]
        line = SOURCE.read_text(encoding="utf-8").splitlines()[programs["no_backward"]["line"] - 1]
        assert line.startswith("def shuffle(")


def test_elements_are_laid_out_as_numpy_packs_them(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(STRUCTS, encoding="utf-8")
    sad.build(tmp_path / "model.py", tmp_path / "out", targets="metal")
    texel = read(tmp_path / "out")["types"]["Texel"]
    assert texel["byte_count"] == PACKED.itemsize
    starts = {name: PACKED.fields[name][1] for name in PACKED.names or ()}
    for name, start in starts.items():
        offsets = [s["byte_offset"] for s in texel["scalars"] if s["path"][0] == name]
        assert offsets == list(range(start, start + PACKED[name].itemsize, 4))


def test_members_of_enums_are_their_numbers(tmp_path: Path) -> None:
    source = tmp_path / "model.py"
    source.write_text(
        "import enum\n"
        "import shaderad as sad\n\n\n"
        "class Mode(enum.Enum):\n    SOFT = 1\n    HARD = 2\n\n\n"
        "@sad.kernel\n"
        "def shade(i: sad.Index, x: sad.In[float], mode: sad.Const[Mode], y: sad.Out[float]):\n"
        "    y[i] = x[i] if mode == Mode.HARD else 0.5 * x[i]\n",
        encoding="utf-8",
    )
    sad.build(source, tmp_path / "out", targets="metal", defines={"mode": 2})
    (kernel,) = read(tmp_path / "out")["entries"]
    assert next(p["value"] for p in kernel["parameters"] if p["name"] == "mode") == 2


def read(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def test_the_bytes_depend_on_no_hash_seed_or_place(tmp_path: Path) -> None:
    written: list[dict[str, bytes]] = []
    for seed in ("1", "77"):
        place = tmp_path / seed
        place.mkdir()
        (place / "kernels.py").write_bytes(SOURCE.read_bytes())
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = "import shaderad; shaderad.build('kernels.py:splat', 'out', targets='metal')"
        subprocess.run([sys.executable, "-c", command], cwd=place, env=environment, check=True)
        written.append(contents(place / "out"))
    assert len(written[0]) > 10
    assert written[0] == written[1]


def test_the_bytes_depend_on_no_validator(tmp_path: Path) -> None:
    for name, validates in (("asked", True), ("unasked", False)):
        source, out = f"{SOURCE}:shuffle", tmp_path / name
        sad.build(source, out, targets="spirv,hlsl,wgsl", validate=validates)
    assert contents(tmp_path / "asked") == contents(tmp_path / "unasked")


def contents(folder: Path) -> dict[str, bytes]:
    paths = (p for p in folder.rglob("*") if p.is_file())
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in paths}


POINTERS = """
import shaderad as sad
from shaderad import float3


@sad.struct
class Mesh:
    scale: float
    points: sad.Pointer[float3]


@sad.struct
class Scene:
    meshes: sad.Pointer[Mesh]


@sad.kernel
def look(i: sad.Index, scene: Scene, out: sad.Out[float]):
    mesh = scene.meshes[i]
    out[i] = mesh.points[0].y * mesh.scale
"""


def test_pointers_are_words_that_name_the_array_they_lead_into(tmp_path: Path) -> None:
    source = tmp_path / "pointers.py"
    source.write_text(POINTERS, encoding="utf-8")
    sad.build(source, tmp_path / "out", targets=("spirv", "wgsl"), validate=False)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    (kernel,) = manifest["entries"]
    assert kernel["parameters"][0] == {"name": "scene", "type": "Scene", "kind": "struct of arrays"}
    arrays = {tuple(a["path"]): a for a in kernel["inputs"]}
    meshes = arrays["scene", "meshes", "[]"]
    points = arrays["scene", "meshes", "[]", "points", "[]"]
    assert points["type"] == "float3"
    mesh = manifest["types"][meshes["type"]]
    assert mesh["pointers"] == [{"path": ["points"], "target": points["name"]}]
    assert mesh["byte_count"] == 12
    assert [(s["path"], s["type"], s["byte_offset"]) for s in mesh["scalars"]] == [
        (["scale"], "float", 0),
        (["points", "base"], "uint", 4),
        (["points", "count"], "uint", 8),
    ]
    (uniform,) = kernel["uniforms"]
    layout = manifest["types"][uniform["type"]]
    assert layout["pointers"] == [{"path": [], "target": meshes["name"]}]
    backward = kernel["targets"]["wgsl"]["backward"]
    (run,) = [command for command in backward["commands"] if command["do"] == "run"]
    words = [w for w in run["words"] if isinstance(w, dict)]
    assert words == [{"uniform": uniform["name"], "index": k} for k in (0, 1)]
    written = {output["name"] for output in backward["outputs"]}
    assert written == {f"{meshes['name']} gradient", f"{points['name']} gradient"}
