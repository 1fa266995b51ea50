"""The sample of several processes: two of one core each against one of one core, and what travels.

    python benchmarks/distributed.py [--rounds 3] [--runtime wgpu] [--size 256] [--steps 100]

Runs take turns. Each process is pinned to a core, and its software driver has one thread; both runs
see all views in each step. Then the means of arrays alone: how long those of the gradient's size
take, and of larger ones, between the two.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import distributed

import shaderad as sad

SAMPLE = Path(__file__).parents[1] / "samples" / "distributed"
sys.path.append(str(SAMPLE))

import main as sample  # noqa: E402 - found beside its module

MEANS = (1, 8_790, 250_000, 8_000_000)
"""Floats that are averaged: the second are the gradient's."""
REPEATED = 30


def run(given: argparse.Namespace, folder: Path) -> None:
    """One process of a run; writes what it measured."""
    os.sched_setaffinity(0, {int(os.environ["LOCAL_RANK"])})
    options = argparse.Namespace(size=given.size, steps=given.steps, every=given.steps + 1,
                                 out=folder / "none")  # fmt: skip
    with sample.company() as (rank, count):
        with sad.open_device(given.runtime, adapter="auto"):
            found, gradient = fitted(sample.Share(rank, count, given.size), options, count)
        if rank == 0:
            np.save(folder / f"gradient_{count}.npy", gradient)
            (folder / "found.json").write_text(json.dumps(found))


def fitted(share: Any, options: argparse.Namespace, count: int) -> tuple[dict[str, Any], Any]:
    """Rates of a whole fit, and its first gradient."""
    training = sample.Training(share, options)
    seconds, gradient = [], None
    while training.done < options.steps:
        began = time.perf_counter()
        square = training.step()
        seconds.append(time.perf_counter() - began)
        if gradient is None:
            gradient = share.moves.grad.numpy().copy()
    distributed.all_reduce(square)
    found = {
        "views per second": sample.VIEWS / statistics.median(seconds),
        "psnr": sample.psnr(square / count),
        "means": {n: mean_seconds(n) for n in MEANS} if count > 1 else {},
    }
    return found, gradient


def mean_seconds(count: int) -> float:
    """How long the mean of so many floats over all processes takes."""
    numbers, seconds = torch.ones(count), []
    for _ in range(REPEATED):
        distributed.barrier()
        began = time.perf_counter()
        distributed.all_reduce(numbers)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def measured(count: int, given: list[str], folder: Path) -> dict[str, Any]:
    """What a run of so many processes found."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    command = [sys.executable, *launcher, __file__, *given, "--folder", str(folder)]
    settings = {**os.environ, "LP_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    finished = subprocess.run(command, env=settings, check=False, stderr=subprocess.PIPE, text=True)
    if finished.returncode:
        sys.exit(finished.stderr)
    return json.loads((folder / "found.json").read_text())


def compare(rounds: int, given: list[str]) -> None:
    """Prints both sides, and the means of the last run."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        pairs = [[measured(count, given, folder) for count in (1, 2)] for _ in range(rounds)]
        gradients = [np.load(folder / f"gradient_{count}.npy") for count in (1, 2)]
    rates = [[one["views per second"] for one in pair] for pair in pairs]
    ratio = statistics.median(two / one for one, two in rates)
    for side, count in enumerate((1, 2)):
        rate = statistics.median(pair[side] for pair in rates)
        last = pairs[-1][side]["psnr"]
        print(f"{count} of one core: {rate:5.1f} views per second, {last:.2f} dB at the end")
    print(f"{ratio:.2f}x" + ("" if ratio >= 1.8 else "   below 1.8x"))
    first, second = gradients
    off = np.abs(second - first).max() / np.abs(first).max()
    print(
        f"first gradients differ by {off:.0e} of the largest; {first.nbytes:,} bytes a step travel"
    )
    for count, seconds in pairs[-1][1]["means"].items():
        print(f"mean of {int(count):9,} floats of two processes: {1e3 * seconds:8.3f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runtime", choices=["wgpu", "slangpy"], default="wgpu")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.folder is not None:
        run(given, given.folder)
    else:
        same = [f"--{name}={getattr(given, name)}" for name in ("runtime", "size", "steps")]
        compare(given.rounds, same)


if __name__ == "__main__":
    main()
