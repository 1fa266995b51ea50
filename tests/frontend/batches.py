"""Runs many small functions in one kernel: one compilation, one dispatch."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from types import ModuleType

import numpy as np

import shaderad as sad
from shaderad.language.host import UserFunction

EXPECTED: dict[str, Callable[[float, float], float]] = {}


def gives(expected: Callable[[float, float], float]) -> Callable[[UserFunction], UserFunction]:
    """Notes what the function must give for two floats."""

    def note(function: UserFunction) -> UserFunction:
        EXPECTED[function.name] = expected
        return function

    return note


def functions_of(module: ModuleType, names: list[str]) -> dict[str, UserFunction]:
    """The functions of a module whose parameters are called `names`, in its order."""
    found = {n: f for n, f in vars(module).items() if isinstance(f, UserFunction)}
    return {n: f for n, f in found.items() if [a.arg for a in f.tree.args.args] == names}


def run_all(
    functions: dict[str, UserFunction], kind: str, left: np.ndarray, right: np.ndarray
) -> dict[str, np.ndarray]:
    """What each function gives on the device for each pair of arguments."""
    kernel = kernel_over(functions, kind)
    out = kernel(left, right, dim=(len(functions), len(left))).numpy()
    return dict(zip(functions, out, strict=True))


def kernel_over(functions: dict[str, UserFunction], kind: str) -> object:
    lines = [
        "@sad.kernel",
        f"def run(case: sad.Index, i: sad.Index, left: sad.In[{kind}], right: sad.In[{kind}],",
        f"        out: sad.Out[{kind}, 2]):",
    ]
    for number, name in enumerate(functions):
        lines += [f"    if case == {number}:", f"        out[case, i] = {name}(left[i], right[i])"]
    text = [f"{line}\n" for line in lines]
    file = f"<batch of {kind}s, {next(iter(functions))} and on>"
    # Kernels are read from their source; for a text of ours that is Python's cache of lines.
    linecache.cache[file] = (sum(map(len, text)), None, text, file)
    space = {"sad": sad, **functions}
    exec(compile("".join(text), file, "exec"), space)
    return space["run"]
