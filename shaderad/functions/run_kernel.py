"""A call of a kernel: a launch, or one node of the graph that is being traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shaderad.execute.call import bound_call, launch_of, results_of
from shaderad.execute.launch_steps import launched
from shaderad.language.signatures import Launchable
from shaderad.trace.traced import is_traced


def call_kernel(function: Launchable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Runs a kernel; the arrays it writes are what it returns (a tuple if several).

    Args:
        function: The decorated kernel.
        args: Its parameters in order, Index and written ones left out.
        kwargs: Parameters by name, and the call keywords ``dim`` (extents of the launch; may be
            left out where arrays that are read or written at an Index itself have them),
            ``shapes`` (of written arrays that do not have the launch's shape), ``bounds``
            (``"raise"``, ``"ignore"`` or ``"unchecked"``), ``checks`` (``"nan"`` or
            ``"writes"``) and ``device``.

    Raises:
        ShapeError: SR0352 to SR0376, where an argument does not fit its parameter.
        DeviceError: SR0650, where arrays live on different devices.
    """
    call = bound_call(function, args, kwargs)
    if is_traced(list(call.given.values())):
        # Array functions are imported by those who trace: a first launch need not wait for them.
        from shaderad.functions.kernel_calls import traced_call

        return traced_call(call)
    launch = launch_of(call)
    launched(launch)
    return results_of(launch)
