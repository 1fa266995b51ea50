"""Kernels that were lowered and compiled before: known from outside, without a body.

A device asks them for their dispatches instead of lowering them. Invariant: what a build did not
make is refused, never replaced by something close to it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shaderad.device.built_targets import Entry, Offer
from shaderad.diagnostics import Error, error
from shaderad.ir import nodes
from shaderad.lower.bindings import Lowered, Mode

if TYPE_CHECKING:
    from shaderad.bodies.outputs import Axis
    from shaderad.device.devices import Choice
    from shaderad.runtime import Capabilities

Dispatches = tuple[Lowered, ...]

# What says that shaderad, or a compiler, was given what it does not take.
_CONTRADICTIONS = frozenset({"SR0501", "SR0609", "SR0614", "SR0615", "SR0617", "SR0618"})

NOT_BUILT = "the folder holds primal and backward"


@contextmanager
def used_of_build(name: str, folder: str) -> Generator[None]:
    """Blames the folder for what its entry `name` does wrong while it is used.

    Raises:
        CompileError: SR0758, where its files and its manifest do not fit each other.
    """
    try:
        yield
    except Error as failure:
        if failure.code not in _CONTRADICTIONS:
            raise
        reason = "\n".join(filter(None, (failure.message, failure.note)))
        raise error("SR0758", kernel=name, folder=folder, reason=reason) from failure
    except Exception as failure:
        reason = f"{type(failure).__name__}: {failure}"
        raise error("SR0758", kernel=name, folder=folder, reason=reason) from failure


@dataclass(frozen=True)
class BuiltModes:
    """The dispatches of one kernel for one target."""

    by_mode: Mapping[Mode, Dispatches]
    why_not: Mapping[Mode, str]
    """Why a mode has none."""

    def offer(self, mode: Mode) -> Offer[Dispatches] | str:
        """The dispatches of a mode, or why there are none."""
        found = self.by_mode.get(mode, ())
        return Offer(found, found) if found else self.why_not.get(mode, NOT_BUILT)


@dataclass(frozen=True, kw_only=True, eq=False)
class PrebuiltKernel(nodes.Kernel):
    """A kernel of a folder that `shaderad build` wrote."""

    is_built: bool = True
    folder: str
    bounds: str
    """What an index out of range does; it was decided when the kernel was built."""
    launch_shaped: frozenset[str]
    """Out arrays that its code takes to have the launch's shape."""
    wanted: frozenset[str]
    """Buffers and uniforms by which it was differentiated."""
    by_target: Mapping[str, BuiltModes]
    axes: tuple[tuple[Axis, ...], ...]
    """For each Index the axes of arrays that are as long as the launch."""

    def dispatches(self, choice: Choice, known: Capabilities) -> list[Dispatches]:
        """What can stand for `choice` on a device, the best first; not empty.

        Raises:
            DeviceError: SR0724, where no target of the build runs on the device.
            DerivativeError: SR0725, where the mode was not built, SR0748, where not all that is
                asked of it was.
            ShapeError: SR0726 to SR0728, where the code was compiled for something else.
        """
        self._check(choice)
        offers = {target: modes.offer(choice.mode) for target, modes in self.by_target.items()}
        found = Entry(self.name, self.folder, choice.mode, offers).serving(known)
        if choice.mode in (Mode.BACKWARD, Mode.FORWARD):
            for name in sorted(choice.wanted - self.wanted):
                raise error("SR0748", kernel=self.name, name=self._shown(name))
        return found

    def _shown(self, name: str) -> str:
        """A buffer or uniform as Python reaches it."""
        inputs = (*self.buffers, *self.uniforms)
        return next((".".join(one.path) for one in inputs if one.name == name), name)

    def _check(self, choice: Choice) -> None:
        if choice.bounds != self.bounds:
            raise error("SR0726", kernel=self.name, name="bounds", found=repr(choice.bounds),
                        wanted=repr(self.bounds))  # fmt: skip
        if choice.checks:
            raise error("SR0726", kernel=self.name, name="checks", found=repr(choice.checks),
                        wanted="None")  # fmt: skip
        for name in sorted(choice.launch_shaped ^ self.launch_shaped):
            raise error("SR0727", kernel=self.name, name=name)
        for name in sorted(choice.device_uniforms):
            raise error("SR0728", kernel=self.name, name=name)


def used(kernel: nodes.Kernel) -> AbstractContextManager[None]:
    """Blames the folder of `kernel`, where it is from one, for what goes wrong on a device."""
    if isinstance(kernel, PrebuiltKernel):
        return used_of_build(kernel.name, kernel.folder)
    return nullcontext()
