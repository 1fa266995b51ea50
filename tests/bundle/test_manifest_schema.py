"""`manifest.schema.json` is what the structs say, and manifests of every kind keep to it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from shaderad.bundle.format.description import SCHEMA_FILE
from tests.bundle.conftest import Output
from tests.bundle.manifest_schema import PATH

jsonschema = pytest.importorskip("jsonschema")

Manifest = dict[str, Any]


def problems(manifest: Manifest) -> list[str]:
    """Where `manifest` is not what the schema says."""
    validator = jsonschema.Draft202012Validator(json.loads(PATH.read_text(encoding="utf-8")))
    return [deepest(each).json_path for each in validator.iter_errors(manifest)]


def deepest(problem: Any) -> Any:
    """The cause of a problem in an alternative: that of the one which fits furthest."""
    while problem.context:
        problem = max(problem.context, key=lambda each: len(each.absolute_path))
    return problem


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(PATH.read_text(encoding="utf-8")))


def test_its_id_names_the_version_of_manifests(output: Output) -> None:
    schema = json.loads(PATH.read_text(encoding="utf-8"))
    assert schema["$id"] == f"urn:shaderad:manifest:{output.manifest['schema_version']}"


def test_a_build_holds_the_schema_that_its_manifest_names(output: Output) -> None:
    assert output.manifest["$schema"] == SCHEMA_FILE
    assert (output.folder / SCHEMA_FILE).read_bytes() == PATH.read_bytes()
    assert SCHEMA_FILE in output.manifest["files"]


def test_manifests_of_kernels_and_graphs_for_every_target_are_valid(
    output: Output, graph_output: Output
) -> None:
    assert problems(output.manifest) == []
    assert problems(graph_output.manifest) == []


def test_every_field_that_is_written_is_described(output: Output, graph_output: Output) -> None:
    schema = json.loads(PATH.read_text(encoding="utf-8"))
    unknown: set[str] = set()
    for manifest in (output.manifest, graph_output.manifest):
        closed = close(copy.deepcopy(schema))
        validator = jsonschema.Draft202012Validator(closed)
        unknown |= {each.json_path for each in validator.iter_errors(manifest)}
    assert not unknown


def close(schema: Any) -> Any:
    """`schema` with no room for fields that it does not name."""
    if isinstance(schema, list):
        return [close(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: close(value) for key, value in schema.items()}
    if "properties" in found and isinstance(found["properties"], dict):
        found.setdefault("additionalProperties", False)
    return found


def first_dispatch(manifest: Manifest) -> Manifest:
    return manifest["entries"][0]["targets"]["spirv"]["programs"][0]


SPOILED: dict[str, tuple[Callable[[Manifest], object], str]] = {
    "no files": (lambda m: m.pop("files"), "$"),
    "no version": (lambda m: m.pop("schema_version"), "$"),
    "another version": (lambda m: m.update(schema_version=1), "$.schema_version"),
    "another schema": (lambda m: m.update(schema="model"), "$.schema"),
    "entries by name": (lambda m: m.update(entries={"a": {}}), "$.entries"),
    "no entry point": (lambda m: first_dispatch(m).pop("entry_point"), ".programs[0]"),
    "a flat workgroup": (lambda m: first_dispatch(m).update(workgroup=[64]), ".workgroup"),
    "an unknown role": (lambda m: first_dispatch(m)["resources"][0].update(role="x"), ".role"),
    "an unknown feature": (lambda m: first_dispatch(m).update(features=["x"]), ".features[0]"),
    "a binding in words": (
        lambda m: first_dispatch(m)["parameters"]["place"].update(binding="one"),
        ".place.binding",
    ),
    "a type without size": (lambda m: m["types"]["float"].pop("byte_count"), "$.types.float"),
}


@pytest.mark.parametrize("how", SPOILED)
def test_what_is_spoiled_is_found_at_its_place(output: Output, how: str) -> None:
    spoil, place = SPOILED[how]
    manifest = copy.deepcopy(output.manifest)
    spoil(manifest)
    (found,) = problems(manifest)
    assert found.endswith(place)


def test_a_spoiled_plan_is_found_at_its_place(graph_output: Output) -> None:
    manifest = copy.deepcopy(graph_output.manifest)
    plan = next(iter(manifest["entries"][0]["targets"].values()))["primal"]
    plan["commands"][0]["do"] = "dance"
    (found,) = problems(manifest)
    assert found.endswith(".commands[0].do")
