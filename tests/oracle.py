"""What a kernel call must give, derivatives included, from the interpreter in float64.

``oracle(kernel, *args, dim=n)`` takes what a call of the kernel takes; its `out`, `jvp` and `vjp`
have the structure of `sad.vjp`'s and `sad.jvp`'s, in NumPy. Structs are dicts of arrays. Arguments
are first rounded to what a device would store. Derivatives behind pointers are those of `run`, by
the names of the arrays that the pointers lead into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shaderad.arguments.struct import at_path
from shaderad.arrays.arrays import Array
from shaderad.arrays.pointers import HostPointer
from shaderad.arrays.textures import Texture
from shaderad.calls.call import bound_call
from shaderad.decorators import KernelFunction
from shaderad.interpret import RunReport, interpret
from shaderad.interpret.run import KernelRun
from shaderad.ir import nodes
from shaderad.ir.types import (
    Access,
    TextureType,
    Type,
    Vector,
    is_differentiable,
)
from shaderad.rules.transforms import push_kernel
from shaderad.runtime import buffers
from shaderad.runtime.textures import SamplerSettings
from tests.pooled import pools_of


class Oracle:
    """One launch, run by the interpreter."""

    def __init__(
        self, function: KernelFunction, args: Sequence[Any], options: Mapping[str, Any],
        precision: Any,
    ) -> None:  # fmt: skip
        call = bound_call(function, args, options)
        constants = {
            p.name: call.argument_by_name[p.name]
            for p in function.signature.parameters
            if p.is_const
        }
        self.kernel = function.specialise(constants)
        self._positional, self._arguments = call.positional, call.argument_by_name
        reads = [b for b in self.kernel.buffers if b.access is Access.IN]
        self._sources: list[nodes.Buffer | nodes.Uniform] = [*reads, *self.kernel.uniforms]
        self._results = [b for b in self.kernel.buffers if b.access is not Access.IN]
        self.given = pools_of(self.kernel, call.argument_by_name)
        """By the names that the kernel's IR has for them."""
        plain = [s for s in self._sources if s.name not in self.given]
        self.given |= {s.name: _stored(call.argument_by_name, s.path, _element(s)) for s in plain}
        self._options: dict[str, Any] = {
            "dim": call.options.get("dim", ()),
            "precision": precision,
        }
        self._shapes: dict[str, Any] = dict(call.options.get("shapes") or {})
        self.run = interpret(self.kernel, arrays=self.given, shapes=self._shapes, **self._options)

    @property
    def out(self) -> Any:
        """What the call returns: one result, or a tuple."""
        found = tuple(self.run.outputs[b.name] for b in self._results)
        return found[0] if len(found) == 1 else found

    @property
    def reports(self) -> list[RunReport]:
        """What the call would report at the next synchronisation."""
        return self.run.reports

    def jvp(self, tangents: Sequence[Any]) -> Any:
        """The tangents of the results, `None` for those without floats."""
        found = self.run.push(self._tangents(tangents))
        dots = tuple(found.get(b.name) for b in self._results)
        return dots[0] if len(dots) == 1 else dots

    def vjp(self, cotangents: Any) -> tuple[Any, ...]:
        """The gradient of every positional argument, `None` for those without floats."""
        found = self.run.pull(self._cotangents(cotangents))
        return tuple(self._gradient(name, found) for name in self._positional)

    def moved(self, cotangents: Any, tangents: Sequence[Any]) -> tuple[Any, ...]:
        """How the gradients of `vjp` move along `tangents`."""
        found = self.run.move(self._cotangents(cotangents), self._tangents(tangents))
        return tuple(self._gradient(name, found) for name in self._positional)

    def moved_by_name(self, cotangents: Any, tangents: Sequence[Any]) -> dict[str, Any]:
        """The same by the IR's names, from the kernel with tangents."""
        run, dots = self._pushed(tangents)
        bars = self._cotangents(cotangents)
        return run.pull({dots[name]: bar for name, bar in bars.items()})

    def pushed(self, tangents: Sequence[Any]) -> Any:
        """What `jvp` gives, as a result of the kernel with tangents."""
        run, dots = self._pushed(tangents)
        found = tuple(run.outputs.get(dots.get(b.name, "")) for b in self._results)
        return found[0] if len(found) == 1 else found

    def _pushed(self, directions: Sequence[Any]) -> tuple[KernelRun, Mapping[str, str]]:
        tangents = self._tangents(directions)
        kernel = push_kernel(self.kernel, frozenset(tangents))
        arrays = self.given | {kernel.dots[name]: dot for name, dot in tangents.items()}
        shapes = dict(self._shapes)
        for b in self._results:
            if b.name in kernel.dots:
                shapes[kernel.dots[b.name]] = shapes.get(b.name, self._options["dim"])
        return interpret(kernel, arrays=arrays, shapes=shapes, **self._options), kernel.dots

    def differences(self, cotangents: Any, tangents: Sequence[Any], step: float) -> dict[str, Any]:
        """`moved` by central differences of the gradients, by the IR's names."""
        dots, bars = self._tangents(tangents), self._cotangents(cotangents)
        found: list[dict[str, Any]] = []
        for by in (step, -step):
            moved = self.given | {n: _moved(self.given[n], dot, by) for n, dot in dots.items()}
            run = interpret(self.kernel, arrays=moved, shapes=self._shapes, **self._options)
            found.append(run.pull(bars))
        above, below = found
        return {n: _difference(above[n], below[n], 2 * step) for n in above}

    def moved_between(self, cotangents: Any, tangents: Sequence[Any]) -> tuple[Any, ...]:
        """The same for every positional argument."""
        found = self.differences(cotangents, tangents, 1e-5)
        return tuple(self._gradient(name, found) for name in self._positional)

    def _tangents(self, tangents: Sequence[Any]) -> dict[str, Any]:
        """By the names that the kernel's IR has for the arguments."""
        given: dict[str, Any] = {}
        by_parameter = dict(zip(self._positional, tangents, strict=True))
        for source in self._sources:
            if by_parameter.get(source.path[0]) is not None and is_differentiable(source.type):
                tangent = _plain(at_path(by_parameter, _path(source)))
                is_texture = isinstance(source.type, TextureType)
                given[source.name] = (
                    _texels(tangent, source.type.element) if is_texture else tangent
                )
        return given

    def _cotangents(self, cotangents: Any) -> dict[str, Any]:
        bars = cotangents if len(self._results) > 1 else (cotangents,)
        return {
            b.name: _plain(bar)
            for b, bar in zip(self._results, bars, strict=True)
            if bar is not None and is_differentiable(b.type)
        }

    def _gradient(self, parameter: str, found: Mapping[str, Any]) -> Any:
        gradient: Any = None
        for source in self._sources:
            if source.path[0] != parameter or source.name not in found:
                continue
            path = _path(source)
            if len(path) == 1:
                return self._in_shape(source, found[source.name])
            gradient = {} if gradient is None else gradient
            inner = gradient
            for field in path[1:-1]:
                inner = inner.setdefault(field, {})
            inner[path[-1]] = found[source.name]
        return gradient

    def _in_shape(self, source: nodes.Buffer | nodes.Uniform, gradient: Any) -> Any:
        """The gradient by a texture with one level has its shape."""
        if not isinstance(source.type, TextureType):
            return gradient
        texture = at_path(self._arguments, source.path)
        return gradient.reshape((*texture.shape, *gradient.shape[1:]))


def oracle(
    kernel: KernelFunction, *args: Any, precision: Any = np.float64, **options: Any
) -> Oracle:
    """The call ``kernel(*args, **options)`` as it must come out."""
    return Oracle(kernel, args, options, precision)


def _moved(value: Any, dot: Any, by: float) -> Any:
    names = list(value) if isinstance(value, dict) else np.asarray(value).dtype.names
    if names is not None:
        return {n: _moved(value[n], dot[n], by) for n in names}
    kind = np.asarray(value).dtype.kind
    return np.float64(value) + by * np.float64(dot) if kind == "f" else value


def _difference(above: Any, below: Any, by: float) -> Any:
    if isinstance(above, dict):
        return {n: _difference(part, below[n], by) for n, part in above.items()}
    return (above - below) / by


def _element(source: nodes.Buffer | nodes.Uniform) -> Type:
    return source.type.element if isinstance(source, nodes.Buffer) else source.type


def _stored(given: Mapping[str, Any], path: tuple[str, ...], t: Type) -> Any:
    """An argument after the rounding that a device's storage does."""
    value = at_path(given, path)
    if isinstance(value, Texture):
        return _texels(value.numpy(), t)
    if isinstance(value, SamplerSettings):
        return np.uint32(0)  # Filters are computed from the settings, a uniform.
    storage, _ = buffers.to_storage(_plain(value), t, ".".join(path))
    return buffers.to_host(storage, t)


def _path(source: nodes.Buffer | nodes.Uniform) -> tuple[str, ...]:
    """Where derivatives have it: a pointer's is that of the array behind it."""
    return tuple(part for part in source.path if part != "[]")


def _texels(image: Any, texel: Type) -> Any:
    """Texels in a row, as the IR has textures."""
    return np.reshape(image, (-1, texel.count) if isinstance(texel, Vector) else -1)


def _plain(value: Any) -> Any:
    """NumPy for arrays of a device and behind pointers."""
    return value.numpy() if isinstance(value, Array | HostPointer) else value
