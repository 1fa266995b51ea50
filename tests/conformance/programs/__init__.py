"""Every case of ``cases.json`` that a kernel can say, as a program a user would write.

A key is a case's id; ``id/how`` says the same case in another way.
"""

from __future__ import annotations

from tests.conformance.programs import (
    array_indices,
    array_loops,
    array_maps,
    array_reductions,
    array_scans,
    array_transforms,
    atomic,
    component,
    control_flow,
    custom,
    function,
    gather,
    geometry,
    inplace,
    launches,
    loop,
    minmax,
    precision,
    scalar,
    special_values,
    struct,
)
from tests.conformance.programs.program import Program

FAMILIES = (
    scalar, component, control_flow, loop, minmax, special_values, struct, function, custom,
    atomic, precision, gather, inplace, geometry, launches, array_maps, array_reductions,
    array_scans, array_indices, array_loops, array_transforms,
)  # fmt: skip

PROGRAMS: dict[str, Program] = {
    name: program for family in FAMILIES for name, program in family.PROGRAMS.items()
}
