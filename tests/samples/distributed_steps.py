"""The first steps of the distributed sample in one process of a run: gradients and parameters.

    torchrun ... tests/samples/distributed_steps.py STEPS RUNTIME FOLDER

Writes FOLDER/COUNT_RANK.npz.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import shaderad as sad
from tests.samples.loading import SAMPLES, module_of


def run(steps: int, runtime: str, folder: Path) -> None:
    sys.path.append(str(SAMPLES / "distributed"))
    main = module_of(SAMPLES / "distributed" / "main.py")
    given = argparse.Namespace(size=32, steps=20, every=100, out=folder)
    with main.company() as (rank, count):
        with sad.open_device(runtime, adapter="auto"):
            share = main.Share(rank, count, given.size)
            found = stepped(main.Training(share, given), share, steps)
        np.savez(folder / f"{count}_{rank}.npz", **found)


def stepped(training: Any, share: Any, steps: int) -> dict[str, Any]:
    """Gradients and parameters of each step."""
    found: dict[str, Any] = {"gradients": [], "moves": []}
    for _ in range(steps):
        training.step()
        found["gradients"].append(share.moves.grad.numpy().copy())
        found["moves"].append(share.moves.detach().numpy().copy())
    return found


if __name__ == "__main__":
    run(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
