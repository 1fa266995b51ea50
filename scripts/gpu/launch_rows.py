"""Other numbers in the table of launch shapes: the option `--shape workgroup=256,tile_rows=4`."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import replace

from shaderad.compiler.launch_shapes import TABLE


def add_shape_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--shape",
        default="",
        metavar="NAME=NUMBER,...",
        help="other numbers in all rows of shaderad/compiler/launch_shapes.py",
    )


def change_rows(shape: str) -> None:
    """Changes all rows of the table, for devices that this process opens later."""
    changes = [change.partition("=") for change in shape.split(",") if change]
    numbers = {name: int(number) for name, _, number in changes}
    for kind, row in list(TABLE.items()):
        TABLE[kind] = replace(row, **numbers)  # pyright: ignore[reportArgumentType]
