"""Kernels whose plans were made before they are launched: what a launch asks of them.

Apart from prebuilt.py, so that whoever calls kernels of Python need not wait for what reads builds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from shaderad.execute.schedule import Instruction, Move, Run, Set, UniformWord
from shaderad.ir import sizes
from shaderad.ir.nodes import Kernel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shaderad.device.devices import Device
    from shaderad.device.stages import Choice, Stage
    from shaderad.execute.schedule import LaunchPlan
    from shaderad.ir.sizes import Size
    from shaderad.lower.bindings import Mode


class PlannedKernel(Kernel, ABC):
    """A kernel with a plan for each mode, in place of a body."""

    @abstractmethod
    def check(self, choice: Choice) -> None:
        """Raises where the plans were not made for what a launch asks for."""

    @abstractmethod
    def planned(self, mode: Mode, device: Device) -> tuple[LaunchPlan, list[Stage]]:
        """The plan of a mode, and its programs on a device."""

    @abstractmethod
    def used(self) -> AbstractContextManager[None]:
        """Blames the folder of the kernel for what goes wrong on a device."""


_NOTHING = nullcontext[None]()


def used(kernel: Kernel) -> AbstractContextManager[None]:
    """Blames the folder of `kernel`, where it is from one, for what goes wrong on a device."""
    # Kernels of Python are asked first: to look for an abstract class takes ten times as long.
    if kernel.is_built and isinstance(kernel, PlannedKernel):
        return kernel.used()
    return _NOTHING


def moved_over(
    instruction: Instruction,
    programs: Sequence[int],
    buffers: Mapping[int, int],
    extents: Mapping[str, Size],
    uniforms: Mapping[str, Sequence[Size | UniformWord]],
) -> Instruction:
    """An instruction of a built kernel, over other programs, buffers, sizes and numbers."""

    def size(text: Size) -> Size:
        return sizes.substituted(text, extents)

    match instruction:
        case Run():
            return Run(
                programs[instruction.program],
                tuple((slot, buffers[k]) for slot, k in instruction.bindings),
                tuple(
                    uniforms[w.name][w.index] if isinstance(w, UniformWord) else size(w)
                    for w in instruction.words
                ),
                size(instruction.group_count),
                size(instruction.is_needed),
            )
        case Move(source, source_offset, target, target_offset, byte_count):
            return Move(buffers[source], size(source_offset), buffers[target], size(target_offset),
                        size(byte_count))  # fmt: skip
        case Set(target, word, byte_count):
            return Set(buffers[target], word, size(byte_count))
        case _:
            raise AssertionError("a kernel has no loop of its own")
