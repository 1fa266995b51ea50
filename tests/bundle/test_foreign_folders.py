"""Folders of strangers: what they name is read only where it is theirs, and bounded."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.bundle.format.document import is_intact, with_digest
from shaderad.bundle.read import loaded_files
from shaderad.bundle.read.inspection import inspect
from tests.bundle.conftest import Output
from tests.bundle.test_loading import copied, edit

CODE = "wgsl/levels_primal.wgsl"


def code_of(attempt: Callable[[], Any]) -> str:
    with pytest.raises(sad.Error) as caught:
        attempt()
    return caught.value.code


# -- the manifest's own hash ---------------------------------------------------------------------


def test_a_manifest_carries_the_hash_of_itself(output: Output) -> None:
    text = (output.folder / "manifest.json").read_bytes()
    digest = output.manifest["digest"]
    blank = text.replace(digest.encode(), b"0" * 64, 1)
    assert hashlib.sha256(blank).hexdigest() == digest
    assert is_intact(text)
    assert with_digest(text) == text


@pytest.mark.parametrize(
    ("left", "right"),
    [("role", "input"), ("line", 1), ("workgroup", [32, 1, 1]), ("sizes", [])],
)
def test_a_number_that_was_changed_is_noticed(
    left: str, right: object, output: Output, tmp_path: Path
) -> None:
    folder = copied(output.folder, tmp_path)
    manifest = json.loads(json.dumps(output.manifest))
    dispatch = manifest["entries"][0]["targets"]["wgsl"]["programs"][0]
    entry = manifest["entries"][0]
    holder = {"line": entry, "sizes": entry, "role": dispatch["resources"][0]}
    holder.get(left, dispatch)[left] = right
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    with pytest.raises(sad.CompileError, match=r"`manifest\.json`.*it was changed") as caught:
        sad.load(folder)
    assert caught.value.code == "SR0722"
    assert code_of(lambda: list(inspect(folder))) == "SR0722"


def test_a_manifest_without_its_hash_is_refused(output: Output, tmp_path: Path) -> None:
    folder = copied(output.folder, tmp_path)
    text = json.dumps({k: v for k, v in output.manifest.items() if k != "digest"})
    (folder / "manifest.json").write_text(text, encoding="utf-8")
    assert code_of(lambda: sad.load(folder)) == "SR0720"


# -- files ---------------------------------------------------------------------------------------


def hostile_files() -> dict[str, tuple[str, Callable[[Path], Any]]]:
    """What takes the place of a file, and what is said of it."""

    def lead_out(path: Path) -> None:
        outside = path.parents[2] / "outside"
        outside.write_bytes(path.read_bytes())
        path.unlink()
        path.symlink_to(outside)

    def another(make: Callable[[Path], Any]) -> Callable[[Path], None]:
        def replace(path: Path) -> None:
            path.unlink()
            make(path)

        return replace

    return {
        "a link that leads out": ("outside of the folder", lead_out),
        "a link to itself": ("", another(lambda p: p.symlink_to(p.name))),
        "a pipe": ("no plain file", another(os.mkfifo)),
        "a folder": ("no plain file", another(Path.mkdir)),
        "a device": ("outside of the folder", another(lambda p: p.symlink_to("/dev/zero"))),
        "a huge file": ("more than 64 MiB", lambda p: os.truncate(p, 1 << 40)),
    }


@pytest.mark.parametrize("name", hostile_files())
def test_only_plain_files_of_the_folder_are_read(name: str, output: Output, tmp_path: Path) -> None:
    words, spoil = hostile_files()[name]
    folder = copied(output.folder, tmp_path)
    spoil(folder / CODE)
    with pytest.raises(sad.CompileError) as caught:
        sad.load(folder)
    assert caught.value.code == "SR0722"
    assert words in str(caught.value)
    failed = [text for text, kind in inspect(folder) if kind == "failed"]
    assert len(failed) == 1
    assert words in failed[0]


@pytest.mark.parametrize("name", ["a pipe", "a folder", "a huge file", "a link that leads out"])
def test_a_manifest_is_a_plain_file_too(name: str, output: Output, tmp_path: Path) -> None:
    folder = copied(output.folder, tmp_path / "deeper")
    hostile_files()[name][1](folder / "manifest.json")
    assert code_of(lambda: sad.load(folder)) == "SR0720"


@pytest.mark.parametrize(
    "path", ["/etc/hostname", "../outside", "wgsl/../../outside", "a\0b", "", ".", "x" * 300]
)
def test_names_that_lead_elsewhere_are_refused(path: str, output: Output, tmp_path: Path) -> None:
    folder = copied(output.folder, tmp_path)
    content = (folder / CODE).read_bytes()
    (tmp_path / "outside").write_bytes(content)

    def change(manifest: dict[str, Any]) -> None:
        manifest["entries"][1]["targets"]["wgsl"]["programs"][0]["file"] = path
        manifest["files"][path] = hashlib.sha256(content).hexdigest()

    edit(folder, change)
    assert code_of(lambda: sad.load(folder)) in {"SR0720", "SR0722"}


def test_a_folder_that_is_a_link_is_read(output: Output, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(output.folder)
    assert "levels" in sad.load(tmp_path / "link")
    assert code_of(lambda: sad.load("a\0b")) == "SR0720"


def test_no_more_is_read_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded_files, "LIMIT_BYTES", 10)
    (tmp_path / "file").write_bytes(bytes(10))
    assert len(loaded_files.read_plain(tmp_path, "file")) == 10
    (tmp_path / "file").write_bytes(bytes(11))
    with pytest.raises(loaded_files.UnreadableError):
        loaded_files.read_plain(tmp_path, "file")


def test_a_module_beside_the_library_is_not_imported(output: Output, tmp_path: Path) -> None:
    folder = copied(output.folder, tmp_path)
    module = folder / "shaderad" / "rounding.slang"
    module.write_text(module.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    digest = hashlib.sha256(module.read_bytes()).hexdigest()
    edit(folder, lambda m: m["files"].update({"shaderad/rounding.slang": digest}))
    sad.load(folder)
    os.mkfifo(folder / "shaderad" / "more.slang")
    assert code_of(lambda: sad.load(folder)) == "SR0722"


def test_text_that_is_none_is_refused(output: Output, tmp_path: Path) -> None:
    folder = copied(output.folder, tmp_path)
    content = b"\xff" + (folder / "wgsl/levels_primal.slang").read_bytes()
    (folder / "wgsl/levels_primal.slang").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    edit(folder, lambda m: m["files"].update({"wgsl/levels_primal.slang": digest}))
    assert code_of(lambda: sad.load(folder)) == "SR0722"


# -- manifests that were forged ------------------------------------------------------------------


def kernel_forgeries() -> dict[str, Callable[[dict[str, Any]], Any]]:
    def dispatch(m: dict[str, Any], kernel: int = 0) -> dict[str, Any]:
        return m["entries"][kernel]["targets"]["wgsl"]["programs"][0]

    def words(m: dict[str, Any]) -> dict[str, Any]:
        """A word of a uniform of `splat`."""
        entry = next(one for one in m["entries"] if one["name"] == "splat")
        commands = entry["targets"]["wgsl"]["primal"]["commands"]
        runs = (one for one in commands if one["do"] == "run")
        return next(word for run in runs for word in run["words"] if isinstance(word, dict))

    def resource(m: dict[str, Any], role: str) -> dict[str, Any]:
        return next(one for one in dispatch(m)["resources"] if one["role"] == role)

    def backward(m: dict[str, Any]) -> dict[str, Any]:
        return m["entries"][0]["targets"]["wgsl"]["backward"]

    def types(m: dict[str, Any], **fields: list[str]) -> None:
        empty = {"byte_count": 4, "word_bytes": 4, "scalars": []}
        for name, inner in fields.items():
            parts = [{"name": f"f{k}", "type": one} for k, one in enumerate(inner)]
            m["types"][name] = {**empty, "fields": parts}
        m["entries"][0]["inputs"][0]["type"] = next(iter(fields))

    doubling = {f"T{k}": [f"T{k + 1}"] * 2 for k in range(30)}
    return {
        "a type that holds itself": lambda m: types(m, A=["B"], B=["A"]),
        "a type without end": lambda m: types(m, **doubling, T30=["float"]),
        "a type of nothing": lambda m: types(m, **doubling, T30=[]),
        "a type in many": lambda m: types(
            m, **{f"T{k}": [f"T{k + 1}"] for k in range(500)}, T500=["float"]),
        "an array of a billion": lambda m: types(m, A=["LocalArray[float, 1000000000]"]),
        "arrays in arrays": lambda m: types(m, A=["LocalArray[" * 5000 + "float" + ", 2]" * 5000]),
        "no threads": lambda m: dispatch(m).update(workgroup=[0, 1, 1]),
        "a number of 70 bits": lambda m: dispatch(m)["parameters"].update(slot=1 << 70),
        "a negative number": lambda m: dispatch(m)["parameters"].update(slot=-1),
        "a space without end": lambda m: m["targets"]["wgsl"].update(space=10**12),
        "a name that writes to the terminal": lambda m: m["entries"][0].update(name="\x1b[2J"),
        "a name of two lines": lambda m: m["entries"][0].update(name="a\n"),
        "bounds of nobody": lambda m: m["entries"][0].update(bounds="clamp"),
        "a word too far": lambda m: words(m).update(index=99),
        "an extent of nobody": lambda m: m["entries"][0]["inputs"][0].update(shape=["y.0"]),
        "an input of the launch's shape": lambda m: m["entries"][0]["inputs"][0].update(
            shape=["dim.0"]),
        "an axis too many": lambda m: m["entries"][0]["inputs"][0].update(shape=["x.0", "x.1"]),
        "a size twice": lambda m: m["entries"][0]["sizes"].append("dim.0"),
        "a path of nothing": lambda m: m["entries"][0]["inputs"][0].update(path=[]),
        "a path of nobody": lambda m: m["entries"][0]["inputs"][0].update(path=["nobody"]),
        "a path without end": lambda m: m["entries"][0]["inputs"][0].update(path=["a"] * 999),
        "an array twice": lambda m: m["entries"][0]["inputs"].append(m["entries"][0]["inputs"][0]),
        "an input that is written": lambda m: resource(m, "input").update(access="write"),
        "a report that is an input": lambda m: resource(m, "report").update(role="input"),
        "an output that is read": lambda m: m["entries"][0]["outputs"][0].update(access="In"),
        "a plan without a cotangent": lambda m: backward(m)["inputs"].pop(),
        "a plan with a tangent": lambda m: backward(m)["inputs"].append("x tangent"),
        "a plan of another gradient": lambda m: backward(m)["outputs"][0].update(name="z gradient"),
        "a plan of a mode less": lambda m: m["entries"][0]["targets"]["wgsl"].pop("primal"),
    }  # fmt: skip


@pytest.mark.parametrize("name", kernel_forgeries())
def test_a_forged_kernel_is_refused_when_it_is_loaded(
    name: str, output: Output, tmp_path: Path
) -> None:
    folder = copied(output.folder, tmp_path)
    edit(folder, kernel_forgeries()[name])
    assert code_of(lambda: sad.load(folder)) == "SR0720"


def test_a_manifest_that_nests_without_end_is_refused(tmp_path: Path) -> None:
    text = '{"schema": "shaderad-manifest", "schema_version": 3, "more": %s%s}'
    (tmp_path / "manifest.json").write_text(text % ("[" * 10**6, "]" * 10**6), encoding="utf-8")
    assert code_of(lambda: sad.load(tmp_path)) == "SR0720"


def plan(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    graph = next(one for one in manifest["entries"] if one["name"] == name)
    return graph["targets"]["spirv"]["primal"]


def command(manifest: dict[str, Any], name: str, do: str) -> dict[str, Any]:
    return next(one for one in plan(manifest, name)["commands"] if one["do"] == do)


def repeated(body: list[Any], count: int) -> dict[str, Any]:
    return {"do": "repeat", "symbol": "k", "count": count, "is_reversed": False, "carries": [],
            "rows": [], "start": [], "body": body}  # fmt: skip


def graph_forgeries() -> dict[str, Callable[[dict[str, Any]], Any]]:
    def nested(manifest: dict[str, Any]) -> None:
        commands = plan(manifest, "moved")["commands"]
        for _ in range(200):
            commands[:] = [repeated([*commands], 1)]

    def contained(manifest: dict[str, Any]) -> None:
        graph = next(one for one in manifest["entries"] if one["name"] == "moved")
        for _ in range(200):
            graph["result"] = {"kind": "tuple", "parts": [graph["result"]]}

    def run(manifest: dict[str, Any]) -> dict[str, Any]:
        return command(manifest, "scan_product", "run")

    sizes = {
        "of 200,000 factors": "*".join(["n"] * 200_000),
        "of 60 sums": "*".join(["(n + a + b + c)"] * 60),
        "of 100 factors": "*".join(["n"] * 100),
        "in parentheses": "(" * 900 + "n" + ")" * 900,
        "of 4,000 digits": "9" * 4000,
        "divided by 0": "n//0",
        "divided by what is 0": "n//(n - n)",
    }
    return {
        **{f"a size {name}": lambda m, text=text: run(m).update(groups=text)
           for name, text in sizes.items()},
        "an input that is filled": lambda m: plan(m, "scan_product")["commands"].append(
            {"do": "fill", "target": 0, "word": 0, "byte_count": 4}),
        "an input that is written": lambda m: plan(m, "scan_product")["commands"].append(
            {"do": "copy", "source": 1, "target": 0, "byte_count": 4}),
        "what is written bound twice": lambda m: run(m)["bind"].update(
            dict.fromkeys(run(m)["bind"], max(run(m)["bind"].values()))),
        "a result of a byte": lambda m: plan(m, "scan_product")["buffers"][
            plan(m, "scan_product")["outputs"][0]["buffer"]].update(byte_count=1),
        "a result of another shape": lambda m: plan(m, "scan_product")["outputs"][0].update(
            shape=["n"]),
        "loops in loops": nested,
        "tuples in tuples": contained,
        "a limit of 70 bits": lambda m: command(m, "halved", "while").update(limit=1 << 70),
        "a size that no input has": lambda m: m["entries"][0]["sizes"].append("z"),
        "a name of the plan's own": lambda m: m["entries"][0]["sizes"].append("$start_0"),
    }  # fmt: skip


@pytest.mark.parametrize("name", graph_forgeries())
def test_a_forged_plan_is_refused_when_it_is_loaded(
    name: str, graph_output: Output, tmp_path: Path
) -> None:
    folder = copied(graph_output.folder, tmp_path)
    edit(folder, graph_forgeries()[name])
    assert code_of(lambda: sad.load(folder)) == "SR0720"


def later_forgeries() -> dict[str, tuple[str, str, Callable[[dict[str, Any]], Any]]]:
    """Code, graph and forgery of what only a call can find."""

    def runs(m: dict[str, Any], **fields: Any) -> None:
        for one in plan(m, "scan_product")["commands"]:
            if one["do"] == "run":
                words = fields.get("words", [1]) * len(one["words"])
                one.update(fields, if_positive=1, words=words)

    return {
        "a loop without end": (
            "SR0678", "moved", lambda m: command(m, "moved", "repeat").update(count=1 << 62)),
        "a loop of nothing without end": (
            "SR0678", "moved",
            lambda m: plan(m, "moved")["commands"].insert(0, repeated([], 1 << 62))),
        "a division by what may be 0": (
            "SR0758", "scan_product", lambda m: runs(m, groups="n//(n - 3)")),
        "too many groups": ("SR0611", "scan_product", lambda m: runs(m, groups=1 << 40)),
        "a word that is none": (
            "SR0354", "scan_product", lambda m: runs(m, words=[1 << 40])),
        "a fill beyond the end": (
            "SR0758", "halved", lambda m: plan(m, "halved")["commands"].insert(-1, {
                "do": "fill", "target": len(plan(m, "halved")["buffers"]) - 1, "word": 1,
                "byte_count": 1 << 20})),
    }  # fmt: skip


@pytest.mark.gpu
@pytest.mark.parametrize("name", later_forgeries())
def test_a_forged_plan_is_refused_when_it_is_called(
    name: str, graph_output: Output, tmp_path: Path, device: sad.Device,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("shaderad.execute.prepared.STEP_LIMIT", 1000)
    wanted, graph, forge = later_forgeries()[name]
    folder = copied(graph_output.folder, tmp_path)
    edit(folder, forge)
    loaded, x = sad.load(folder), np.float32([0.5, 1.0, 2.0])
    given = (x, (x, np.int32([0]))) if graph == "moved" else (x,)
    assert code_of(lambda: loaded[graph](*given)) == wanted
    device.synchronize()
    np.testing.assert_allclose((device_sum := sad.sum(sad.array(x))).numpy(), 3.5)
    assert device_sum.device is device


@pytest.mark.gpu
def test_a_loop_that_the_device_never_ends_ends_at_its_limit(
    graph_output: Output, tmp_path: Path, device: sad.Device
) -> None:
    folder = copied(graph_output.folder, tmp_path)

    def forge(manifest: dict[str, Any]) -> None:
        loop = command(manifest, "halved", "while")
        loop["goes_on"] = loop["carries"][0][0]
        loop["body"] = []

    edit(folder, forge)
    out = sad.load(folder).halved(np.float32([3.0, 4.0]))
    with pytest.raises(sad.LimitError) as caught:
        out.numpy()
    assert caught.value.code == "SR0661"
    device.synchronize()


@pytest.mark.gpu
def test_a_build_that_does_not_fit_its_manifest_is_blamed(
    output: Output, tmp_path: Path, device: sad.Device
) -> None:
    """Not shaderad, which only does what the folder says."""
    folder = copied(output.folder, tmp_path)

    def forge(manifest: dict[str, Any]) -> None:
        for programs in manifest["entries"][1]["targets"].values():
            dispatch = programs["programs"][0]
            # wgpu compares their size with the code's.
            dispatch["parameters"]["words"].clear()
            for command in programs["primal"]["commands"]:
                command.get("words", []).clear()
            text = b"// Slang does not take this.\n{"
            (folder / dispatch["slang"]).write_bytes(text)
            manifest["files"][dispatch["slang"]] = hashlib.sha256(text).hexdigest()

    edit(folder, forge)
    with pytest.raises(sad.CompileError, match="contradicts itself") as caught:
        sad.load(folder).levels([0.5], dim=1)
    assert caught.value.code == "SR0758"
    device.synchronize()


@pytest.mark.gpu
def test_a_report_of_no_kernel_is_refused_with_a_code(
    output: Output, tmp_path: Path, device: sad.Device
) -> None:
    folder = copied(output.folder, tmp_path)

    def forge(manifest: dict[str, Any]) -> None:
        for programs in manifest["entries"][2]["targets"].values():
            for dispatch in programs["programs"]:
                dispatch["sites"].clear()
            for command in programs["primal"]["commands"]:
                words = command.get("words", [])
                words[:] = [1 << 20 if word == "$site_base" else word for word in words]

    edit(folder, forge)
    out = sad.load(folder).shuffle([1.0, 2.0], [0, 9], dim=2)
    assert code_of(out.numpy) == "SR0677"
    device.synchronize()
