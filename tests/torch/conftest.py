"""Skips the tests of this folder where PyTorch is not installed."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob: list[str] = []

if find_spec("torch") is None:
    collect_ignore_glob.append("test_*.py")
