"""A call of a kernel from Python -> its form, and its arguments as arrays of a device.

Positional arguments are the kernel's parameters in order, Index and written ones left out.
Invariant: everything is checked before anything is recorded on the device.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from shaderad.arguments.kinds import kind_of
from shaderad.arguments.struct import at_path, check_struct
from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, Shape
from shaderad.arrays.numbers import HostNumber
from shaderad.arrays.traced_sizes import normalised_shape
from shaderad.calls.pools import LaunchPools
from shaderad.device.devices import Device, asked_device, current_device
from shaderad.diagnostics import Error, error, text_of
from shaderad.execute.kernel_forms import CallForm, CallForms, FormsOfFunctions
from shaderad.ir import types
from shaderad.ir.types import Access
from shaderad.lower.bindings import BOUNDS, CHECKS
from shaderad.runtime.buffers import check_element_count

if TYPE_CHECKING:
    from shaderad.bodies.outputs import Axis
    from shaderad.device.stages import KernelFacts
    from shaderad.diagnostics import Span
    from shaderad.ir import nodes
    from shaderad.language.signatures import Launchable

OPTIONS = ("dim", "shapes", "bounds", "checks", "device")

Extent = TypeVar("Extent")
"""An int, or a size where a call is traced."""


@dataclass(slots=True)
class CallArguments:
    """The arguments and options of one call of a kernel."""

    function: Launchable
    argument_by_name: dict[str, Any]
    """Every parameter that is not written."""
    positional: tuple[str, ...]
    """Parameters that were given by position."""
    options: dict[str, Any]


@dataclass(eq=False, slots=True)
class BoundCall:
    """A kernel call whose arguments are on a device."""

    form: CallForm
    device: Device
    operands: list[Array]
    """The inputs of the form's graph."""
    pools: LaunchPools | None
    """The targets of its pointers."""

    def operand(self, name: str) -> Array:
        """The array of a buffer or uniform."""
        return self.operands[self.form.node.names.index(name)]


def call_result(form: CallForm, results: Sequence[Array]) -> Any:
    """The result of a call: an array, a tuple of arrays, or `None`."""
    if len(form.node.written) == 1:
        return results[0]
    return tuple(results) if form.node.written else None


def bound_call(
    function: Launchable, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> CallArguments:
    """Matches arguments with parameters, as Python would.

    Raises:
        ShapeError: SR0363 too many, SR0364 missing, SR0365 unknown, SR0366 given twice.
    """
    signature = function.signature
    names = signature.given_names
    if len(args) > len(names):
        raise error("SR0363", name=function.name, count=len(args), wanted=", ".join(names))
    positional = names[: len(args)]
    argument_by_name: dict[str, Any] = dict(zip(positional, args, strict=True))
    options: dict[str, Any] = {}
    for name, value in kwargs.items():
        if name in OPTIONS:
            options[name] = value
        elif name in argument_by_name:
            raise error("SR0366", name=function.name, parameter=name)
        elif name in names:
            argument_by_name[name] = value
        else:
            raise error("SR0365", name=function.name, found=name, wanted=", ".join(names))
    if len(argument_by_name) < len(names):
        missing = [name for name in names if name not in argument_by_name]
        raise error("SR0364", name=function.name, missing=", ".join(missing))
    for name, t in signature.structs:
        check_struct(argument_by_name[name], t, name)
    return CallArguments(function, argument_by_name, positional, options)


def on_device(call: CallArguments) -> BoundCall:
    """Binds a call to a device; nothing is recorded but uploads."""
    function, options = call.function, call.options
    constants = function.signature.constants
    kernel = function.specialise({name: call.argument_by_name[name] for name in constants})
    bounds, checks = checked_options(function, options)
    device = device_of(options.get("device"), call.argument_by_name.values())
    facts = device.stages.facts(kernel)
    pools = LaunchPools(facts, call.argument_by_name, device) if facts.pooled else None
    operands = _operands(facts, call.argument_by_name, device, pools)
    asked = asked_shapes(kernel, options.get("shapes"))
    asked_dim = options.get("dim")
    if asked_dim is not None:
        asked_dim = checked_dim(function.name, len(kernel.index_names), asked_dim, kernel.span)
    input_shapes = tuple([x.shape for x in operands])

    def new(forms: CallForms) -> CallForm:
        names = [b.name for b in facts.read]
        shapes = dict(zip(names, input_shapes, strict=False))
        dim = asked_dim
        if dim is None:
            dim = inferred_dim(
                kernel, facts.axes_of_launch(kernel), {**asked, **shapes}, kernel.span
            )
        shapes |= _result_shapes(facts.written, dim, asked)
        return forms.form(kernel, facts, dim, shapes, bounds, checks)

    key = (kernel, asked_dim, bounds, checks, tuple(asked.items()), input_shapes)
    form = device.kept(FormsOfFunctions).of(function).of(key, new)
    return BoundCall(form, device, operands, pools)


def _operands(
    facts: KernelFacts,
    argument_by_name: Mapping[str, Any],
    device: Device,
    pools: LaunchPools | None,
) -> list[Array]:
    operands: list[Array] = []
    for buffer in facts.read:
        if pools is not None and buffer.name in pools.by_name:
            operands.append(pools.array(buffer.name))
            continue
        value = at_path(argument_by_name, buffer.path)
        name = ".".join(buffer.path)
        operands.append(kind_of(buffer.type).bound(value, buffer.type, name, device))
    for uniform in facts.uniforms:
        t = uniform.type
        if pools is not None and isinstance(t, types.Pointer):
            operands.append(HostNumber(device, t, pools.words(t)))
            continue
        value = at_path(argument_by_name, uniform.path)
        operands.append(kind_of(t).bound(value, t, ".".join(uniform.path), device))
    return operands


def checked_dim(name: str, count: int, asked: Any, span: Span) -> Shape:
    """The extents ``dim=`` of a launch of kernel `name`, which has `count` Index parameters.

    Raises:
        ShapeError: SR0373 for another number of extents.
    """
    dim = normalised_shape(asked, "dim")
    if len(dim) != count:
        raise wrong_extents(span, name, count, dim)
    return dim


def inferred_dim(
    kernel: nodes.Kernel,
    axes: Sequence[Sequence[Axis]],
    shapes: Mapping[str, Sequence[Extent]],
    span: Span,
    are_equal: Callable[[Extent, Extent], bool] = operator.eq,
    shown: Callable[[Extent], str] = str,
) -> tuple[Extent, ...]:
    """The extents of a launch that was called without ``dim=``.

    Args:
        kernel: Which was called.
        axes: For each Index those that are as long as the launch.
        shapes: Of arrays, those of results where they were asked for.
        span: What an error shows.
        are_equal: Compares extents.
        shown: An extent in a message.

    Raises:
        ShapeError: SR0372 where no array says an extent, SR0385 where two differ.
    """
    dim: list[Extent] = []
    for index, places in zip(kernel.index_names, axes, strict=True):
        extents = [(at, shapes[at[0]][at[1]]) for at in places if at[0] in shapes]
        if not extents:
            raise error("SR0372", span, name=kernel.name, count=len(axes))
        _, extent = extents[0]
        if not all(are_equal(extent, other) for _, other in extents):
            told = ", ".join(f"`{a}` has {shown(n)} on axis {k}" for (a, k), n in extents)
            raise error("SR0385", span, name=kernel.name, index=index, found=told)
        dim.append(extent)
    return tuple(dim)


def wrong_extents(span: Span, name: str, count: int, dim: Any) -> Error:
    """SR0373: `dim` has another number of extents than the kernel has Index parameters."""
    help_ = (
        "give one int for each Index"
        if count
        else f"add `i: sad.Index` as the first parameter, or leave `dim` out: without an Index "
        f"`{name}` runs as one thread"
    )
    return error("SR0373", span, name=name, count=count, dim=dim, help=help_)


def checked_options(function: Launchable, options: Mapping[str, Any]) -> tuple[str, str]:
    """`bounds`, and `checks` or nothing.

    Raises:
        ShapeError: SR0374, SR0375 for other ones.
    """
    bounds = options.get("bounds", function.bounds)
    if bounds not in BOUNDS:
        raise error("SR0374", found=text_of(bounds))
    checks = options.get("checks")
    if checks is not None and checks not in CHECKS:
        raise error("SR0375", found=text_of(checks))
    return bounds, checks or ""


def device_of(asked: Any, values: Iterable[Any]) -> Device:
    """The device asked for, else that of the first array given, else the current one."""
    wanted = asked_device(asked)
    if wanted is not None:
        return wanted
    for value in values:
        if isinstance(value, Array):
            return value.device
        if isinstance(value, bool | int | float):
            continue
        for leaf in trees.leaves(value):
            if isinstance(leaf, Array):
                return leaf.device
    return current_device()


def asked_shapes(
    kernel: nodes.Kernel,
    asked: Any,
    normalised: Callable[[Any, str], tuple[Extent, ...]] = normalised_shape,
) -> dict[str, tuple[Extent, ...]]:
    """The shapes of written arrays that a call names.

    Args:
        kernel: Which writes them.
        asked: The ``shapes`` of the call.
        normalised: A shape as it was written, and what it is called in a message -> its extents.

    Raises:
        ShapeError: SR0383 for what is no dict, SR0376 for other names.
    """
    if asked is None:
        return {}
    results = [b for b in kernel.buffers if b.access is not Access.IN]
    if not isinstance(asked, Mapping):
        example = results[0].name if results else "y"
        raise error("SR0383", kernel.span, found=text_of(asked), example=example)
    shapes = cast("Mapping[Any, Any]", asked)
    names = [b.name for b in results]
    for name in shapes:
        if name not in names:
            known = ", ".join(names)
            raise error("SR0376", kernel.span, name=kernel.name, found=name, known=known)
    return {name: normalised(shape, f"shapes[{name!r}]") for name, shape in shapes.items()}


def _result_shapes(
    results: Sequence[nodes.Buffer], dim: Shape, asked: Mapping[str, Shape]
) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {}
    for buffer in results:
        name = buffer.name
        shape = asked.get(name, dim)
        if len(shape) != buffer.type.rank:
            raise error("SR0377", buffer.span, name=name, type=buffer.type, shape=shape)
        check_element_count(shape)
        shapes[name] = shape
    return shapes
