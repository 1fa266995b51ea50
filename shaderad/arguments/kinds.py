"""Kinds of parameters: how an argument comes apart, and the operand that each part becomes.

Each kind registers itself for the types of its parameters. Invariant: a part is one array or
uniform of the kernel, so its derivative is one operand of the graph of the call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from shaderad.language.structs import class_of

if TYPE_CHECKING:
    from shaderad.arrays.arrays import Array
    from shaderad.arrays.containers import Container
    from shaderad.device.devices import Device
    from shaderad.ir.types import ResourceType, Type


class ArgumentPart(NamedTuple):
    """A part of an argument."""

    path: tuple[str, ...]
    """The path from the argument, as in the IR."""
    value: Any
    type: Type


class ArgumentParts(NamedTuple):
    """An argument that is a container of others."""

    container: type[Container]
    detail: Hashable
    parts: Sequence[ArgumentPart]


class ArgumentKind(ABC):
    """A kind of parameters."""

    def parts(self, value: Any, t: Type) -> ArgumentParts | None:
        """The parts of an argument; `None` if it is one operand."""
        return None

    @abstractmethod
    def bound(self, value: Any, t: Type, name: str, device: Device) -> Array:
        """The operand for the argument `value` of parameter `name`.

        Raises:
            ShapeError: SR0350 to SR0368, SR0819, where it does not fit the parameter.
            DeviceError: SR0650 for an argument on another device.
        """


class Opened(ABC):
    """An argument of a graph that is built: a texture of any layout, or a sampler of any kind."""

    __slots__ = ()
    kind: ClassVar[ResourceKind]


class ResourceKind(ArgumentKind):
    """A kind of objects of a device. Each is two operands: its content, and its number."""

    noun: ClassVar[str]
    """The name in messages and manifests."""

    @abstractmethod
    def checked(self, value: Any, t: ResourceType, name: str) -> Any:
        """The argument; raises SR0819 if it is of another type."""

    @abstractmethod
    def content(self, value: Any) -> Any:
        """The content: an array that traces follow, or an object that they keep."""

    @abstractmethod
    def number(self, value: Any) -> Any:
        """The number of an argument; an array if it is open."""

    @abstractmethod
    def open_extents(self, position: int) -> tuple[str, ...]:
        """The extents of the content as the input of a graph that is built, by its position."""

    @abstractmethod
    def opened(self, t: ResourceType, content: Any, number: Any) -> Opened:
        """The argument of a graph that is built."""

    @abstractmethod
    def placed(self, opened: Any, value: Any) -> Any:
        """The argument of a call in the skeleton of a graph that was built with `opened`."""


_KINDS: dict[type[Type], ArgumentKind] = {}
_RESOURCES: dict[type, ResourceKind] = {}


def register(kind: ArgumentKind, *types: type[Type]) -> None:
    """Makes `kind` the kind of parameters of these types."""
    _KINDS.update(dict.fromkeys(types, kind))


def register_resource(kind: ResourceKind, t: type[ResourceType], *classes: type) -> None:
    """Makes `kind` that of parameters of a type, whose arguments are of these classes."""
    register(kind, t)
    _RESOURCES.update(dict.fromkeys(classes, kind))


def kind_of(t: Type) -> ArgumentKind:
    """The kind of a parameter."""
    return _KINDS[type(t)]


def resource_kind(t: ResourceType) -> ResourceKind:
    """The kind of a texture or sampler."""
    kind = _KINDS[type(t)]
    assert isinstance(kind, ResourceKind)
    return kind


def kind_of_resource(value: Any) -> ResourceKind | None:
    """The kind of an argument; `None` if it is no texture or sampler."""
    return _RESOURCES.get(class_of(value))
