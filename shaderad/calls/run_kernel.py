"""A call of a kernel: a graph of one node, or a node of the graph that is being traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shaderad.calls.call import bound_call, call_result, on_device
from shaderad.calls.run_graph import run_call
from shaderad.language.signatures import Launchable
from shaderad.trace.traced import is_traced


def call_kernel(function: Launchable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Runs a kernel and returns the arrays that it writes (a tuple if several).

    Args:
        function: The decorated kernel.
        args: The arguments in order, without those for Index and written parameters.
        kwargs: Parameters by name, and the call keywords. ``dim`` is the shape of the launch; you
            can leave it out if an array that is read or written at an Index itself has that
            shape. ``shapes`` are those of written arrays that differ from the launch. ``bounds``
            is ``"raise"``, ``"ignore"`` or ``"unchecked"``, ``checks`` is ``"nan"`` or
            ``"writes"``, and ``device`` is where the kernel runs.

    Raises:
        ShapeError: SR0352 to SR0376, where an argument does not fit its parameter.
        DeviceError: SR0650, where arrays live on different devices.
    """
    call = bound_call(function, args, kwargs)
    if is_traced(list(call.argument_by_name.values())):
        # Imported only when tracing, so that a first launch does not wait for array functions.
        from shaderad.calls.kernel_calls import traced_call

        return traced_call(call)
    bound = on_device(call)
    return call_result(bound.form, run_call(bound))
