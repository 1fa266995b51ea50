"""A kernel at its arguments: the types of its parameters say what a leaf is.

A tuple is a vector where the kernel takes one, and a list of structs an array. Invariant: a leaf is
one array or uniform of the kernel, so that its derivative is one operand of the graph of the call.
A kernel that follows pointers is a function that lays their targets out and calls a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shaderad.arguments.kinds import kind_of
from shaderad.arrays.arrays import Array
from shaderad.arrays.tape import When, trace_of
from shaderad.arrays.trees import LEAF, Structure
from shaderad.calls.call import bound_call, call_result, device_of, on_device
from shaderad.calls.run_graph import GraphStep, runs_now
from shaderad.diagnostics import error
from shaderad.differentiate.function_at import taped_at
from shaderad.differentiate.leaves import Input, Linearised
from shaderad.differentiate.step_core import StepCore
from shaderad.ir import types
from shaderad.ir.pointers import reaches_floats
from shaderad.language.signatures import Launchable

if TYPE_CHECKING:
    from shaderad.calls.call import CallArguments
    from shaderad.device.devices import Device

Path = tuple[str, ...]


def kernel_at(
    function: Launchable, args: Sequence[Any], keywords: Mapping[str, Any], *, when: When
) -> Linearised:
    """A kernel at its arguments.

    Raises:
        DerivativeError: SR0453 for a differentiable argument given by keyword.
    """
    call = bound_call(function, args, keywords)
    type_by_name = function.signature.variable_types
    if len(call.positional) < len(call.argument_by_name):
        for name in call.argument_by_name:
            t = type_by_name.get(name)
            if name not in call.positional and t is not None and reaches_floats(t):
                raise error("SR0453", name=name)
    if function.signature.takes_pointers:
        return _with_pointers(call, args, keywords, when)
    bound = on_device(call)
    if trace_of(bound.operands) is not None:
        raise error("SR0451")
    run = GraphStep(bound.form.graph, bound.operands, bound.form.size_by_name, bound.device, when)
    if when is not When.NOW:
        run.expected = tuple(map(run.is_active, range(len(bound.operands))))
    run.start(is_now=runs_now(when))

    inputs: list[Input] = []
    operands: list[int | None] = []
    place_by_name = {name: k for k, name in enumerate(bound.form.node.names)}
    name_by_path = bound.form.facts.name_by_path

    def add(value: Any, path: Path, t: types.Type) -> None:
        k = place_by_name.get(name_by_path.get(path, ""))
        is_active = k is not None and run.is_active(k)
        operands.append(k if is_active else None)
        array = bound.operands[k] if k is not None and is_active else None
        inputs.append(Input(value, array, ".".join(path)))

    structures = _flattened(call, add)
    results = tuple(range(len(run.results)))
    core = StepCore(run, operands, results if bound.form.node.written else (None,))
    return Linearised(core, inputs, structures, call_result(bound.form, run.results))


def _with_pointers(
    call: CallArguments, args: Sequence[Any], keywords: Mapping[str, Any], when: When
) -> Linearised:
    device = device_of(keywords.get("device"), call.argument_by_name.values())
    inputs: list[Input] = []

    def add(value: Any, path: Path, t: types.Type) -> None:
        array = _lifted(value, t, ".".join(path), device) if reaches_floats(t) else None
        inputs.append(Input(value, array, ".".join(path)))

    structures = _flattened(call, add)
    return taped_at(call.function, inputs, structures, keywords, when)


def _lifted(value: Any, t: types.Type, name: str, device: Device) -> Array:
    """The array of a tape for a leaf."""
    # The call checks a texture, of which `value` is the texels.
    bound = value if isinstance(t, types.ResourceType) else kind_of(t).bound(value, t, name, device)
    if trace_of([bound]) is not None:
        raise error("SR0451")
    return bound.viewed(bound.element, bound.shape) if bound is value else bound


Add = Callable[[Any, Path, types.Type], None]
"""Takes a leaf, its path from the parameter, and its type."""


def _flattened(call: CallArguments, add: Add) -> list[Structure]:
    """The structure of each positional argument, whose leaves `add` takes."""
    type_by_name = call.function.signature.variable_types
    # Constants have no derivative, whatever their type.
    return [
        _structure(call.argument_by_name[name], type_by_name.get(name, types.VOID), (name,), add)
        for name in call.positional
    ]


def _structure(value: Any, t: types.Type, path: Path, add: Add) -> Structure:
    # A constant has no kind.
    own = None if t is types.VOID else kind_of(t).parts(value, t)
    if own is None:
        add(value, path, t)
        return LEAF
    container, detail, parts = own
    structures = [_structure(x, part, (*path, *step), add) for step, x, part in parts]
    return Structure(container, detail, tuple(structures))
