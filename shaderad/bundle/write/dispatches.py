"""The manifest fields that entry points of kernels and of plans share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shaderad.bundle.format import description as to
from shaderad.bundle.write.places import places
from shaderad.bundle.write.programs import EntryPoint, Refusal
from shaderad.compiler.validate import dxc_options
from shaderad.lower.bindings import Mode

FileNames = dict[tuple[str, str, str], tuple[str, str]]
"""By target, entry and stem: the files of the code and of its Slang text."""


def entry_point_fields(point: EntryPoint, files: tuple[str, str]) -> dict[str, Any]:
    """The fields that `DispatchEntry` and `ProgramEntry` have in common."""
    program = point.lowered.program
    # dxc takes options; the code of other targets is final.
    options = dxc_options(point.code.content) if point.code.target == "hlsl" else []
    return {
        "entry_point": program.name,
        "file": files[0],
        "slang": files[1],
        "workgroup": program.workgroup,
        "features": sorted(program.features),
        "compiler_options": options,
        "sites": [
            to.SiteEntry(site.kind, site.span.file_name, site.span.line, site.name)
            for site in point.lowered.sites
        ],
    }


def bound(point: EntryPoint) -> dict[int, tuple[str, to.BindingPlace]]:
    """Name and place of every binding, by slot; the constant buffer comes first."""
    program = point.lowered.program
    place = places(program, point.code)
    return {b.slot: (b.name, place[b.name]) for b in program.bindings}


def refusal_fields(refusals: Mapping[Mode, Refusal]) -> dict[str, Any]:
    """The fields `no_backward` and `no_forward`."""
    fields = {"no_backward": Mode.BACKWARD, "no_forward": Mode.FORWARD}
    return {
        field: to.NoDerivative(refusal.code or None, refusal.reason, refusal.line or None)
        for field, mode in fields.items()
        if (refusal := refusals.get(mode)) is not None
    }
