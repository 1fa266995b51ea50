"""The first steps of the distributed sample in one process of a run: gradients and parameters.

    torchrun .. tests/samples/distributed_steps.py STEPS RUNTIME FOLDER

Writes FOLDER/COUNT_RANK.npz.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import shaderad as sad
from tests.samples.loading import SAMPLES, module_of


def run(steps: int, runtime: str, folder: Path) -> None:
    sys.path.append(str(SAMPLES / "distributed"))
    main = module_of(SAMPLES / "distributed" / "main.py")
    given = argparse.Namespace(size=32, steps=20, every=100, out=folder)
    with main.company() as (rank, count), sad.open_device(runtime, adapter="auto"):
        training = main.Training(main.Share(rank, count, given.size), given)
        gradients, moves = [], []
        for _ in range(steps):
            training.step()
            found = training.share.moves
            assert found.grad is not None
            gradients.append(found.grad.numpy().copy())
            moves.append(found.detach().numpy().copy())
        np.savez(folder / f"{count}_{rank}.npz", gradients=gradients, moves=moves)


if __name__ == "__main__":
    run(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
