"""Samplers as arguments, and `sad.sampler`, which makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast, get_args

from shaderad.arguments.kinds import Opened, ResourceKind, register_resource
from shaderad.arrays.arrays import Array
from shaderad.arrays.containers import Container, register
from shaderad.diagnostics import error, text_of
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.ir.types import UINT, ResourceType, SamplerType, Type
from shaderad.runtime.textures import Filter, SamplerSettings, Wrap

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from shaderad.device.devices import Device

__all__ = ["sampler"]


class OpenSampler(Opened):
    """A sampler with any settings: an argument of a graph that is built."""

    __slots__ = ("sampler", "word")

    def __init__(self, sampler: Any, word: Any) -> None:
        self.sampler = sampler
        self.word = word


class OpenSamplers(Container):
    """Samplers with any settings in trees."""

    @classmethod
    def taken_apart(cls, tree: Any) -> tuple[Hashable, Sequence[Any]]:
        return None, (tree.sampler, tree.word)

    @classmethod
    def keys(cls, detail: Any, count: int) -> Sequence[Any]:
        return ("sampler", SamplerType.number_name)

    @classmethod
    def built(cls, detail: Any, parts: Sequence[Any]) -> Any:
        return OpenSampler(*parts)

    @classmethod
    def parts_of(cls, detail: Any, count: int, derivative: Any) -> Sequence[Any] | None:
        return None

    @classmethod
    def described(cls, detail: Any, count: int) -> str:
        return "sampler"


register(OpenSampler, OpenSamplers)


class SamplerKind(ResourceKind):
    """Samplers. They have no derivative."""

    noun = "sampler"

    def bound(self, value: Any, t: Type, name: str, device: Device) -> Array:
        content = self.content(self.checked(value, t, name))
        return content if isinstance(content, Array) else sampler_array(content, device)

    def checked(self, value: Any, t: Type, name: str) -> Any:
        if isinstance(value, SamplerSettings | OpenSampler):
            return value
        raise error("SR0819", name=name, type=t, found=f"a `{type(value).__name__}`",
                    make='sad.sampler("linear")')  # fmt: skip

    def content(self, value: Any) -> Any:
        return value.sampler if isinstance(value, OpenSampler) else value

    def number(self, value: Any) -> Any:
        return value.word

    def open_extents(self, position: int) -> tuple[str, ...]:
        return ()

    def opened(self, t: ResourceType, content: Any, number: Any) -> Opened:
        return OpenSampler(content, number)

    def placed(self, opened: Any, value: Any) -> Any:
        return value


SAMPLERS = OpenSampler.kind = SamplerKind()
register_resource(SAMPLERS, SamplerType, SamplerSettings, OpenSampler)


def sampler_array(settings: SamplerSettings, device: Device) -> Array:
    """A sampler as kernels bind it: an array without axes."""
    return Array(device, UINT, (), cast("Any", device.runtime.sampler(settings)))


@api_boundary
def sampler(
    filter: str = "linear",  # noqa: A002 - the public name
    wrap: str | tuple[str, ...] = "repeat",
    mip_filter: str = "linear",
) -> SamplerSettings:
    """How kernels sample textures: the argument for a parameter `sad.Sampler`.

    Args:
        filter: Between the texels of a level: ``"linear"``, or the ``"nearest"`` one.
        wrap: Texels beyond the edge: ``"repeat"``, ``"clamp"`` to the edge, or ``"mirror"``; or one
            of them for each axis, x first. Cubes have no edge.
        mip_filter: Between levels: ``"linear"``, or the ``"nearest"`` one.

    Raises:
        ShapeError: SR0815 for another word; border is one of `render.texture` alone.
    """
    wraps = tuple(wrap) if isinstance(wrap, tuple | list) else (wrap,) * 3
    wraps = (*wraps, *wraps[-1:] * (3 - len(wraps)))
    for name, word, kind in (
        ("filter", filter, Filter),
        ("mip_filter", mip_filter, Filter),
        *(("wrap", word, Wrap) for word in wraps),
    ):
        if word not in get_args(kind):
            raise error("SR0815", name=name, known=_words(kind), found=text_of(word))
    if len(wraps) != 3:
        raise error("SR0815", name="wrap", known=_words(Wrap), found=text_of(wrap))
    return SamplerSettings(*cast("tuple[Any, Any, Any]", (filter, wraps, mip_filter)))


def _words(kind: Any) -> str:
    return ", ".join(f'`"{word}"`' for word in get_args(kind))
