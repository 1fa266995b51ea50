"""The structs of a manifest -> `shaderad/bundle/manifest.schema.json`.

``python -m tests.bundle.manifest_schema`` writes it; a test holds it to the structs. What a field
means is said once, below it in its class.
"""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

import shaderad.bundle
from shaderad.bundle.format import description, document, entries, plans
from shaderad.bundle.format.description import SCHEMA_FILE, SCHEMA_VERSION
from shaderad.bundle.format.document import Manifest

PATH = Path(shaderad.bundle.__file__).parent / SCHEMA_FILE
MODULES: tuple[ModuleType, ...] = (description, plans, entries, document)


def schema_text() -> str:
    """The schema of the manifests that this version writes."""
    _, parts = msgspec.json.schema_components([Manifest], ref_template="#/$defs/{name}")
    for name, part in parts.items():
        if "description" in part:  # msgspec before 0.23 kept the indentation
            part["description"] = inspect.cleandoc(part["description"])
        for field, text in _said_of(name).items():
            shown = "$schema" if field == "json_schema" else field
            part["properties"][shown]["description"] = text
    top = parts.pop("Manifest")
    top["required"] = [*top["properties"]]
    top["properties"]["schema_version"]["const"] = SCHEMA_VERSION
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:shaderad:manifest:{SCHEMA_VERSION}",
        **top,
        "$defs": dict(sorted(parts.items())),
    }
    return json.dumps(schema, indent=1) + "\n"


def _said_of(name: str) -> dict[str, str]:
    """What stands below each field of a class, and of those that it extends."""
    for module in MODULES:
        found = getattr(module, name, None)
        if isinstance(found, type) and issubclass(found, msgspec.Struct):
            classes = (c for c in reversed(found.__mro__) if c.__module__ == module.__name__)
            nodes = (ast.parse(inspect.getsource(each)).body[0] for each in classes)
            return {
                field: text
                for node in nodes
                if isinstance(node, ast.ClassDef)
                for field, text in _said_of_fields(node).items()
            }
    return {}


def _said_of_fields(node: ast.ClassDef) -> dict[str, str]:
    said: dict[str, str] = {}
    for field, after in zip(node.body, node.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(after, ast.Expr):
            continue
        if isinstance(field.target, ast.Name) and isinstance(after.value, ast.Constant):
            said[field.target.id] = " ".join(str(after.value.value).split())
    return said


if __name__ == "__main__":
    PATH.write_text(schema_text(), encoding="utf-8")
