"""A sample's script -> its module, imported as Python would run it."""

from __future__ import annotations

import sys
from importlib import util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples"


def module_of(script: Path, name: str | None = None) -> ModuleType:
    """Imports one script under `name`, else a name that says where it is."""
    name = name or f"{script.parent.name}_{script.stem}"
    spec = util.spec_from_file_location(name, script)
    assert spec
    assert spec.loader
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def first_step(name: str) -> ModuleType:
    return module_of(SAMPLES / "first_steps" / f"{name}.py")
