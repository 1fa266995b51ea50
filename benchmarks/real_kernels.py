"""Kernels of the length that users write: seconds to the first gradient, what a step takes, and how
large the backward is.

    python benchmarks/real_kernels.py [--runtime wgpu slangpy] [--size 64] [PROGRAM ...]

Each program is a process of its own with empty caches, the driver's among them; `sdf:range` is
`sdf` with `range` in place of `static_range`. The gradient is taken by every float that goes in. A
step is a backward dispatch, its cotangents resident; the size is that of the backward's SPIR-V as
`shaderad build` writes it. Where there is an adjoint written by hand, the
same runtime runs it in the same process.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from dispatched import dispatched
from raw_slang import PROGRAMS
from timing import alternated, median_ratio

NAMES = ("sdf", "sdf:range", "mlp", "wide_mlp", "ggx", "hash_grid", "springs", "eigen", "bvh",
         "many_fields", "long_array", "long_static")  # fmt: skip
STEPS = 15
SECONDS = 600.0
"""After which a program counts as unusable."""


def loaded(name: str, folder: Path) -> ModuleType:
    """A program as a module of its own, whose source lies in `folder`."""
    stem, _, loop = name.partition(":")
    source = (PROGRAMS / f"{stem}.py").read_text(encoding="utf-8")
    path = folder / f"{stem}.py"
    path.write_text(source.replace("sad.static_range", loop) if loop else source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module
    spec.loader.exec_module(module)
    return module


def one(name: str, runtime: str, size: int, start: float) -> dict[str, float]:
    """Seconds from `start` to the first gradient, and milliseconds of those after it."""
    import numpy as np

    import shaderad as sad

    with tempfile.TemporaryDirectory() as folder, sad.open_device(runtime) as device:
        program = loaded(name, Path(folder))
        args, call = program.inputs(size)
        out, pullback = sad.vjp(program.kernel, *args, **call)
        bar = sad.array(np.ones(out.numpy().shape, np.float32), dtype=out.dtype)

        def step() -> Any:
            found = pullback(bar)
            device.synchronize()
            return found

        found = step()
        first = time.time() - start
        sides, told = {"step": step}, {"first": first}
        if hasattr(program, "by_hand"):
            begin = time.time()
            by_hand = dispatched(program.by_hand(size), device)
            by_hand.step()
            told["first_by_hand"] = time.time() - begin
            told["error"] = program.error(found, by_hand)
            sides["by_hand"] = by_hand.step
        times = alternated(sides, STEPS)
        if "by_hand" in sides:
            told["ratio"] = median_ratio(times["step"], times["by_hand"])
        told["megabytes"] = megabytes_built(Path(folder) / f"{name.partition(':')[0]}.py")
    return told | {side: statistics.median(took) for side, took in times.items()}


def megabytes_built(source: Path) -> float:
    """Of SPIR-V, for the backward of the kernel in a file."""
    import shaderad as sad

    built = source.parent / "built"
    sad.build(f"{source}:kernel", built, targets="spirv", validate=False)
    return sum(path.stat().st_size for path in built.glob("spirv/*_bwd*.spv")) / 1e6


def in_child(name: str, runtime: str, size: int) -> dict[str, Any]:
    """What `one` finds in a process with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        caches = {"SHADERAD_CACHE": cache, "MESA_SHADER_CACHE_DIR": cache}
        environment = {**os.environ, **caches, "SHADERAD_PROGRESS": "0"}
        command = [sys.executable, __file__, "--child", str(time.time()), "--runtime", runtime,
                   "--size", str(size), name]  # fmt: skip
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True,
                                  timeout=SECONDS, check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"failure": f"not done after {SECONDS:.0f} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        said = [line for line in lines if "SR0" in line] or lines[-1:]
        return {"failure": said[0]}
    return json.loads(done.stdout.splitlines()[-1])


def _told(found: dict[str, float]) -> str:
    text = (
        f"first gradient {found['first']:6.1f} s   step {found['step']:8.2f} ms   "
        f"{found['megabytes']:.3f} MB"
    )
    if "ratio" not in found:
        return text
    return (
        f"{text}, {found['ratio']:.2f}x of by hand ({found['by_hand']:.2f} ms, its first dispatch "
        f"{found['first_by_hand']:.1f} s, gradients differ by {found['error']:.0e})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", default=NAMES, metavar="PROGRAM")
    parser.add_argument("--runtime", nargs="+", choices=("wgpu", "slangpy"),
                        default=["wgpu", "slangpy"])  # fmt: skip
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--child", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        print(json.dumps(one(given.programs[0], given.runtime[0], given.size, given.child)))
        return
    for name in given.programs:
        for runtime in given.runtime:
            found = in_child(name, runtime, given.size)
            head = f"{name:11} {runtime:8}"
            if "failure" in found:
                print(f"{head} {found['failure']}", flush=True)
            else:
                print(f"{head} {_told(found)}", flush=True)


if __name__ == "__main__":
    main()
