"""What a manifest says of any compiled entry point, whether of a kernel or of a plan."""

from __future__ import annotations

from shaderad.bundle import description as to
from shaderad.bundle.programs import Dispatch, Refusal
from shaderad.lower.bindings import Lowered
from shaderad.lower.validate import dxc_options

FileNames = dict[tuple[str, str, str], tuple[str, str]]
"""By target, entry and stem: the files of the code and of its Slang text."""


def site_entries(lowered: Lowered) -> list[to.SiteEntry]:
    """The places in the Python source that can report."""
    return [
        to.SiteEntry(one.kind, one.span.file_name, one.span.line, one.name) for one in lowered.sites
    ]


def no_derivative(refusal: Refusal | None) -> to.NoDerivative | None:
    """Why there is no derivative."""
    if refusal is None:
        return None
    return to.NoDerivative(refusal.code or None, refusal.reason, refusal.line or None)


def compiler_options(dispatch: Dispatch) -> list[str]:
    """What a host must tell dxc; targets that are final need nothing."""
    return dxc_options(dispatch.code.content) if dispatch.code.target == "hlsl" else []
