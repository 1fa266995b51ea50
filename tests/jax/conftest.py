"""Skips the tests of this folder where JAX is not installed."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob: list[str] = []

if find_spec("jax") is None:
    collect_ignore_glob.append("test_*.py")
