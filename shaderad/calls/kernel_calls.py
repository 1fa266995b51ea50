"""A call of a kernel in a traced function -> one node of the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from shaderad.arguments.kinds import kind_of_resource, resource_kind
from shaderad.arguments.struct import at_path
from shaderad.arrays.arrays import Array, array
from shaderad.arrays.containers import struct_fields
from shaderad.arrays.traced_sizes import shape_of
from shaderad.calls.call import (
    CallArguments,
    asked_shapes,
    checked_options,
    inferred_dim,
    wrong_extents,
)
from shaderad.calls.pools import Pool, Pools, region_step
from shaderad.device.lines import user_span
from shaderad.device.stages import KernelFacts
from shaderad.diagnostics import error
from shaderad.ir import arrays, nodes, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import ArrayType, KernelCall, Value
from shaderad.ir.pointers import holds_pointers
from shaderad.ir.prints import silent
from shaderad.ir.sizes import Shape
from shaderad.ir.types import (
    INT,
    UINT,
    BufferType,
    Pointer,
    ResourceType,
    Struct,
    Type,
    Vector,
)
from shaderad.plan.straight_kernels import as_nodes
from shaderad.trace.elements import conform
from shaderad.trace.primitives import known_shape, made
from shaderad.trace.traced import TracedArray, tracing

if TYPE_CHECKING:
    from shaderad.ir.nodes import Buffer
    from shaderad.ir.sizes import Size


def traced_call(call: CallArguments) -> Any:
    """The written arrays, in the form that a call outside of a trace returns.

    Raises:
        ShapeError: SR0330, SR0368 to SR0377, SR0819, where an argument does not fit its parameter.
    """
    function = call.function
    kernel = function.specialise(
        {name: call.argument_by_name[name] for name in function.signature.constants}
    )
    facts = KernelFacts(kernel)
    bounds, checks = checked_options(function, call.options)
    operands = _operands(facts, call.argument_by_name)
    asked = asked_shapes(kernel, call.options.get("shapes"), shape_of)
    dim = _dim(kernel, facts, call.options.get("dim"), operands, asked)
    node = KernelCall(
        operands=tuple(operands.values()),
        kernel=kernel,
        dim=dim,
        names=tuple(operands),
        written=tuple(_written(facts.written, dim, asked)),
        bounds=bounds,
        checks=checks,
        effect=0 if facts.written and silent(kernel) is kernel else tracing().next_effect(),
        span=user_span(),
    )
    values = as_nodes(node, tracing())
    results = tuple(made(v) for v in (node.results if values is None else values))
    if node.effect:
        *results, effect = results
        tracing().effects.append(effect)
    return (results[0] if len(results) == 1 else tuple(results)) if results else None


def _dim(
    kernel: nodes.Kernel,
    facts: KernelFacts,
    requested_dim: Any,
    operands: Mapping[str, Value],
    asked: Mapping[str, Shape],
) -> Shape:
    count = len(kernel.index_names)
    if requested_dim is None:
        shapes = {**asked, **{b.name: operands[b.name].shape for b in facts.read}}
        return inferred_dim(
            kernel, facts.axes_of_launch(kernel), shapes, user_span(),
            tracing().are_equal, lambda extent: known_shape((extent,)),
        )  # fmt: skip
    dim = shape_of(requested_dim, "dim")
    if len(dim) != count:
        raise wrong_extents(user_span(), kernel.name, count, known_shape(dim))
    return dim


def _operands(facts: KernelFacts, argument_by_name: Mapping[str, Any]) -> dict[str, Value]:
    value_by_name: dict[str, Value] = {}
    pools = TracedPools(facts, argument_by_name, _element_array)
    for buffer in facts.read:
        if buffer.name in pools.by_name:
            value_by_name[buffer.name] = pools.value(buffer.name)
            continue
        argument = at_path(argument_by_name, buffer.path)
        if isinstance(buffer.type, ResourceType):
            value_by_name[buffer.name] = _resource(argument, buffer.type, buffer.shown_name)
            continue
        x = _element_array(argument, buffer.type.element, buffer.shown_name)
        if len(x.extents) != buffer.type.rank:
            raise error("SR0368", user_span(), name=buffer.shown_name, type=buffer.type,
                        rank=buffer.type.rank, shape=known_shape(x.extents))  # fmt: skip
        value_by_name[buffer.name] = x.value
    for uniform in facts.uniforms:
        if isinstance(uniform.type, Pointer):
            value_by_name[uniform.name] = pools.pointer(uniform.type)
            continue
        name = ".".join(uniform.path)
        argument = at_path(argument_by_name, uniform.path)
        is_array = isinstance(argument, Array)  # also the size of an open texture
        if not is_array and _is_of_resource(argument_by_name, uniform.path):
            value_by_name[uniform.name] = _constant(argument, uniform.type)
            continue
        x = _element_array(argument, uniform.type, name)
        if x.extents:
            raise error("SR0357", user_span(), name=name, type=uniform.type,
                        shape=known_shape(x.extents))  # fmt: skip
        value_by_name[uniform.name] = x.value
    return value_by_name


def _resource(argument: Any, t: ResourceType, name: str) -> Value:
    """The content of a texture or sampler."""
    kind = resource_kind(t)
    content = kind.content(kind.checked(argument, t, name))
    if isinstance(content, Array):
        return tracing().value_of(content)
    return tracing().shared_input(ArrayType(t.element, ()), content)


def _is_of_resource(argument_by_name: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    """True if a uniform is a number that belongs to a texture or sampler."""
    return len(path) > 1 and kind_of_resource(at_path(argument_by_name, path[:-1])) is not None


def _constant(number: Any, t: Type) -> Value:
    """The size of a texture, or the settings of a sampler."""
    if not isinstance(t, Vector):
        return b.full((), nodes.Const(type=UINT, value=number))
    parts = tuple(nodes.Const(type=INT, value=part) for part in number)
    return b.full((), nodes.Construct(type=t, parts=parts))


def _element_array(argument: Any, element: Type, name: str) -> TracedArray:
    """The array that a kernel reads for an argument."""
    is_data = isinstance(element, Struct) and not isinstance(argument, Array)
    if is_data and struct_fields(argument) is None:
        argument = array(argument, dtype=element)
    return conform(argument, element, name)


def _written(
    results: Sequence[nodes.Buffer], dim: Shape, asked: Mapping[str, Shape]
) -> list[tuple[str, ArrayType]]:
    types: list[tuple[str, ArrayType]] = []
    for buffer in results:
        t: BufferType = buffer.type
        shape = asked.get(buffer.name, dim)
        if len(shape) != t.rank:
            raise error("SR0377", user_span(), name=buffer.name, type=t, shape=known_shape(shape))
        types.append((buffer.name, ArrayType(t.element, shape)))
    return types


ElementArray = Callable[[Any, Type, str], TracedArray]


class TracedPools(Pools[TracedArray]):
    """The pools of one call of a kernel in a trace."""

    def __init__(
        self, facts: KernelFacts, argument_by_name: Mapping[str, Any], element_array: ElementArray
    ) -> None:
        self._element_array = element_array
        super().__init__(facts, argument_by_name)

    def bound(self, target: Any, b: Buffer) -> TracedArray:
        x = self._element_array(target, b.type.element, b.shown_name)
        if len(x.extents) != 1:
            raise error("SR0368", user_span(), name=b.shown_name, type=b.type, rank=1,
                        shape=known_shape(x.extents))  # fmt: skip
        return x

    def length(self, array: TracedArray) -> Size:
        return array.extents[0]

    def value(self, name: str) -> Value:
        """The pool of a buffer as one array."""
        pool = self.by_name[name]
        if holds_pointers(pool.element):
            return self._column(pool.element, pool.structs)
        if len(pool.arrays) == 1:
            return pool.arrays[0].value
        return _joined(pool)

    def pointer(self, t: Pointer) -> Value:
        """The value of a pointer that is a parameter, or a field of one."""
        (region,) = self.by_name[t.target].regions
        return b.reshape(_pointers(t, [region]), ())

    def _column(self, t: Type, values: Sequence[Any]) -> Value:
        """One value, or pointer, for each struct of a pool."""
        if isinstance(t, Pointer):
            return _pointers(t, self.by_name[t.target].regions)
        if isinstance(t, Struct) and holds_pointers(t):
            columns = [
                self._column(field, [getattr(struct, name) for struct in values])
                for name, field in t.fields
            ]
            return b.struct(t, columns)
        if not any(isinstance(value, Array) for value in values):
            return tracing().value_of(array(list(values), dtype=t))
        parts = [self._element_array(value, t, "field").value for value in values]
        return b.concatenate([b.reshape(part, (1,)) for part in parts], 0)


def _joined(pool: Pool[TracedArray]) -> Value:
    """The arrays of a pool, concatenated with each one at its region."""
    parts: list[Value] = []
    step = region_step(pool.element)
    for x, (_, count) in zip(pool.arrays, pool.regions, strict=True):
        parts.append(x.value)
        gap = sizes.subtract(sizes.multiply(sizes.divide_up(count, step), step), count)
        if gap != 0:
            parts.append(b.zeros(ArrayType(pool.element, (gap,))))
    return b.concatenate(parts, 0) if parts else b.zeros(ArrayType(pool.element, (0,)))


def _pointers(t: Pointer, regions: Sequence[tuple[Size, Size]]) -> Value:
    """An array of pointers to these regions."""
    names = ("first", "count")
    columns = {name: _whole_numbers([r[k] for r in regions]) for k, name in enumerate(names)}
    parts = tuple(nodes.Cast(type=UINT, value=c.variable(name, INT)) for name in names)
    return b.elementwise(nodes.Construct(type=t, parts=parts), columns, (len(regions),))


def _whole_numbers(values: Sequence[Size]) -> Value:
    """An int array of sizes."""
    if all(isinstance(size, int) for size in values):
        return tracing().value_of(array(cast("list[int]", list(values)), dtype=INT))
    parts = [arrays.SizeOf(operands=(), size=size).result for size in values]
    return b.concatenate([b.reshape(part, (1,)) for part in parts], 0)
