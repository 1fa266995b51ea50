"""The positions of a mesh, fitted to eight views by several processes that share the views.

    torchrun --nproc-per-node 2 samples/distributed/main.py [--out DIR] [--size 256] [--steps 100]
                                                            [--every 10] [--quick]

Processes exchange gradients, but no views. Every few steps the state is saved in DIR; the same
command, or a restart by `torchrun --max-restarts 1 ...`, resumes from there. The sample writes
overview.png with the start, the fit and the target. Without `torchrun`, one process has all views.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

import shaderad as sad

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "mesh_interpolation"))

from share import VIEWS, Share  # noqa: E402 - it imports the mesh sample

LR, LAST_LR = 0.03, 0.003
"""The learning rates of Adam at the first step and at the last."""
TOLD = 10
"""Steps from one line of the output to the next."""
SHOWN = 320
"""Pixels along an edge of each picture of the overview."""
PATIENCE = timedelta(seconds=60)
"""The time for which a process waits for one that neither answers nor ends."""
QUICK = {"size": 48, "steps": 30}


class Training:
    """A fit that may stop after any step, and resumes from the last save.

    Args:
        share: The module of this process.
        given: The options of the command: `size`, `steps`, `every`, `out`.
    """

    def __init__(self, share: Share, given: argparse.Namespace) -> None:
        self.share = share
        on_gpu = torch.cuda.is_available()
        self.module = DistributedDataParallel(share.cuda() if on_gpu else share)
        self.adam = torch.optim.Adam(self.module.parameters(), lr=LR, betas=(0.9, 0.99))
        self.steps, self.every, self.done = given.steps, given.every, 0
        self._run = {"size": given.size, "steps": given.steps}
        self._file = given.out / "checkpoint.pt"
        if self._file.exists():
            self._load()

    def step(self) -> torch.Tensor:
        """One step; returns the mean square before it, over the views of this process."""
        progress = self.done / self.steps
        for group in self.adam.param_groups:
            group["lr"] = LR * (LAST_LR / LR) ** progress
        self.adam.zero_grad()
        error, square = self.module(progress)
        error.backward()  # the mean over all processes
        self.adam.step()
        self.done += 1
        if self.done % self.every == 0 and distributed.get_rank() == 0:
            self._save()
        return square.detach()

    def _save(self) -> None:
        """Replaces the file atomically, so that a killed process leaves the previous one."""
        kept = {"run": self._run, "done": self.done, "moves": self.share.moves.detach(),
                "adam": self.adam.state_dict()}  # fmt: skip
        new = self._file.with_suffix(".new")
        torch.save(kept, new)
        new.replace(self._file)

    def _load(self) -> None:
        kept = torch.load(self._file, map_location=self.share.moves.device)
        if kept["run"] != self._run:
            was = ", ".join(f"--{name} {value}" for name, value in kept["run"].items())
            sys.exit(f"{self._file} is of a run with {was}: remove it, or name another --out")
        with torch.no_grad():
            self.share.moves.copy_(kept["moves"])
        self.adam.load_state_dict(kept["adam"])
        self.done = kept["done"]

    def forget(self) -> None:
        """Removes the saved state, once it is not needed any more."""
        self._file.unlink(missing_ok=True)


def run(given: argparse.Namespace, rank: int, count: int) -> None:
    """Fits; the first process prints and writes."""
    training = Training(Share(rank, count, given.size), given)
    if rank == 0 and training.done:
        print(f"resumes after step {training.done}", flush=True)
    seconds: list[float] = []
    while training.done < given.steps:
        began = time.perf_counter()
        square = training.step()
        seconds.append(time.perf_counter() - began)
        if training.done % TOLD == 0 or training.done == given.steps:
            distributed.all_reduce(square)
            if rank == 0:
                print(f"step {training.done:3}   {psnr(square / count):.1f} dB", flush=True)
    if rank == 0:
        rate = VIEWS / statistics.median(seconds or [math.inf])
        error = np.linalg.norm(training.share.positions() - training.share.model.positions, axis=1)
        print(f"{rate:.1f} views per second; vertices are off by {error.mean():.4f}")
        write(given.out, training.share)
        training.forget()


def psnr(square: torch.Tensor) -> float:
    return -10 * math.log10(float(square))


def write(out: Path, share: Share) -> None:
    """Writes the first mesh, the fitted one and the true one, side by side."""
    import pictures
    import scene
    import steps
    from shaderad import float3, int3

    canvas = sad.zeros((SHOWN, SHOWN), float3)
    corners = sad.array(share.model.corners, dtype=int3)
    colors = sad.array(scene.paint(share.model.positions), dtype=float3)
    found = []
    for positions in (share.start, share.positions(), share.model.positions):
        normals = scene.normals_of(np.float64(positions), share.model.corners)
        arrays = [sad.array(x, dtype=float3) for x in (positions, normals)]
        found.append(steps.picture(corners, *arrays, colors, scene.orbit(), canvas).numpy())
    (out / "overview.png").write_bytes(pictures.png(np.concatenate(found, 1)))
    print(f"wrote {out / 'overview.png'}")


@contextmanager
def company() -> Iterator[tuple[int, int]]:
    """The rank of this process among those of `torchrun`, and their number.

    If another process ends early, this one ends with a sentence. The library detects that, or
    `torchrun` signals it.
    """
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    if distributed.is_torchelastic_launched():
        if backend == "nccl":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        store, rank, count = next(distributed.rendezvous("env://", timeout=PATIENCE))
        # After a restart, the launcher's store still has the addresses of ended processes.
        attempt = distributed.PrefixStore(os.environ["TORCHELASTIC_RESTART_COUNT"], store)
        distributed.init_process_group(
            backend, store=attempt, rank=rank, world_size=count, timeout=PATIENCE
        )
    else:
        distributed.init_process_group(backend, store=distributed.HashStore(), rank=0, world_size=1)
    rank, count = distributed.get_rank(), distributed.get_world_size()
    me = f"process {rank} of {count}"
    signal.signal(signal.SIGTERM, lambda *_: leave(f"{me} was stopped: the run has ended"))
    try:
        yield rank, count
    except RuntimeError as failure:
        # PyTorch has no class for the errors of its libraries.
        if not isinstance(failure, distributed.DistError) and "gloo" not in str(failure):
            raise
        told = str(failure).splitlines()[0]
        leave(f"{me} ends: another one did not answer, and its views are missing ({told})")
    else:
        # Reducers are in reference cycles and hold the group, whose threads must end before the
        # interpreter.
        gc.collect()
        distributed.destroy_process_group()


def leave(sentence: str) -> NoReturn:
    """Ends this process without disturbance by `torchrun`, which then ends all others."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(sentence)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "out", metavar="DIR")
    parser.add_argument("--size", type=int, default=256, help="pixels along an edge of each view")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int, default=10, help="steps from one save to the next")
    parser.add_argument("--quick", action="store_true", help="few steps on small views")
    parser.add_argument("--runtime", choices=["wgpu", "slangpy"])
    given = parser.parse_args(arguments)
    if given.quick:
        vars(given).update(QUICK)
    if given.size < 8 or given.steps < 1 or given.every < 1:
        parser.error("--size is at least 8, --steps and --every at least 1")
    given.out.mkdir(parents=True, exist_ok=True)
    with company() as (rank, count):
        if VIEWS % count:
            sys.exit(f"{count} processes cannot share {VIEWS} views evenly: take 1, 2, 4 or 8")
        with sad.open_device(given.runtime, adapter="auto"):
            run(given, rank, count)


if __name__ == "__main__":
    main()
