"""Fits the vertex attributes of a mesh to pictures of it, by gradient descent.

    python samples/mesh_interpolation/main.py [--fit colors|normals|positions] [--out DIR]
                                              [--size 512] [--steps 200] [--runtime wgpu|slangpy]
    python samples/mesh_interpolation/main.py --window [--fit ...] [--size ...]

The sample writes target.png, start.png, fit.png, difference.png and gradient.png to DIR, all of
them in a row in overview.png, loss.svg, the animation fit.webp, report.html, and in build/ the
kernels for other programs. Ctrl-C ends a fit early and still writes its pictures. With --window,
the sample shows a fit while it runs, and writes nothing.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import shaderad as sad
from fit import ATTRIBUTES, Fit, fit_of, psnr
from outcome import write_beginning, write_outcome
from record import Record, begun, followed

HERE = Path(__file__).parent
INTERRUPTED = 130
"""The exit code of a program that Ctrl-C has ended, as in shells."""


def main(arguments: list[str] | None = None) -> None:
    parser = argument_parser()
    given = parser.parse_args(arguments)
    if given.window or given.screenshot:
        watch(given, parser)
        return
    console = Console(highlight=False)
    words = sys.argv[1:] if arguments is None else arguments
    command = shlex.join(["python", "samples/mesh_interpolation/main.py", *words])
    try:
        make_folder(given.out)
        with console.status("building the kernels"):
            sad.build(HERE / "kernels.py", given.out / "build", targets="spirv,hlsl,wgsl")
        with sad.open_device(given.runtime) as device:
            run(given, device, console, command)
    except sad.DeviceError as failure:
        parser.error(str(failure))
    except MemoryError as failure:
        parser.error(f"pictures of that --size are too large here: {failure}")
    except OSError as failure:
        parser.error(f"cannot write into {given.out}: {failure.strerror or failure}")
    except KeyboardInterrupt:
        console.print(f"stopped; what was written stays in {given.out}", soft_wrap=True)
        sys.exit(INTERRUPTED)


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--fit", choices=list(ATTRIBUTES), default="colors", help="the attribute to fit"
    )
    parser.add_argument("--out", type=Path, default=HERE / "out", metavar="DIR")
    parser.add_argument(
        "--size", type=positive, help="pixels along an edge; default: 512, for positions 256"
    )
    parser.add_argument("--steps", type=positive, default=200)
    parser.add_argument("--runtime", choices=["wgpu", "slangpy"], help="default: the best here")
    parser.add_argument("--window", action="store_true", help="look at the fit while it runs")
    parser.add_argument(
        "--screenshot", type=Path, metavar="FILE",
        help="write what the window shows after the last step; needs no display",
    )  # fmt: skip
    return parser


def positive(text: str) -> int:
    """A count for argparse, whose error names the argument."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return number


def watch(given: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Opens the window, or writes a picture of it."""
    import window

    try:
        if given.screenshot:
            window.screenshot(given.screenshot, given.fit, given.size, given.steps, given.runtime)
            print(f"wrote {given.screenshot}")
        else:
            window.run(given.fit, given.size, given.runtime)
    except (window.WindowError, sad.DeviceError) as failure:
        parser.error(str(failure))
    except MemoryError as failure:
        parser.error(f"pictures of that --size are too large here: {failure}")
    except OSError as failure:
        parser.error(f"cannot write {given.screenshot}: {failure.strerror or failure}")


def make_folder(out: Path) -> None:
    """Makes `out`, and checks before the fit that it can be written to."""
    out.mkdir(parents=True, exist_ok=True)
    probe = out / ".writable"
    probe.touch()
    probe.unlink()


def run(given: argparse.Namespace, device: sad.Device, console: Console, command: str) -> None:
    """Fits, and writes the record of the fit."""
    fit = fit_of(given.fit, given.size)
    record = begun(fit)
    write_beginning(record, given.out)
    is_whole = fitted(fit, given.steps, record, console)
    if not record.losses:
        raise KeyboardInterrupt
    write_outcome(fit, record, given.fit, device, given.out, command)
    console.print(
        f"{fit.steps_done} step{'s' if fit.steps_done > 1 else ''}, "
        f"{record.milliseconds_a_step:.1f} ms each, PSNR {psnr(record.loss):.2f} dB "
        f"on {device.capabilities.runtime}; "
        f"see {given.out / 'report.html'}",
        soft_wrap=True,
    )
    if not is_whole:
        raise KeyboardInterrupt


def fitted(fit: Fit, steps: int, record: Record, console: Console) -> bool:
    """Runs the fit; false if Ctrl-C has ended it."""
    with progress_bar(console) as progress:
        task = progress.add_task("fitting", total=steps, seen="")
        try:
            followed(fit, steps, record, lambda done, loss: progress.update(
                task, completed=done, seen=f"loss {loss:.2e}  PSNR {psnr(loss):5.2f} dB"
            ))  # fmt: skip
        except KeyboardInterrupt:
            return False
    return True


@contextmanager
def progress_bar(console: Console) -> Iterator[Progress]:
    count, seen = MofNCompleteColumn(), TextColumn("{task.fields[seen]}")
    with Progress(
        TextColumn("{task.description}"), BarColumn(), count, seen, TimeElapsedColumn(),
        console=console,
    ) as progress:  # fmt: skip
        yield progress


if __name__ == "__main__":
    main()
