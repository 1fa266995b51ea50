"""The result of a build -> the lines that the command prints, each with its kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from shaderad.bundle.write.programs import AnyBuild, Refusal
from shaderad.bundle.write.stages import Built
from shaderad.compiler.validate import Status
from shaderad.lower.bindings import Mode

Kind = Literal["ok", "none", "fact"]


def summary_lines(built: Built) -> Iterator[tuple[str, Kind]]:
    """The modes of each entry, the answers of validators, and the output folder."""
    entries = [*built.kernels, *built.graphs]
    width = max(len(each.name) for each in entries)
    for each in entries:
        yield from _entry_lines(each, width)
    yield from _validator_lines(built)
    yield from _verification_lines(built)
    yield f"wrote {len(built.files)} files to {built.folder}", "fact"


def _entry_lines(build: AnyBuild, width: int) -> Iterator[tuple[str, Kind]]:
    name, margin = f"{build.name:<{width}}", " " * width
    targets_by_state: dict[_State, list[str]] = {}
    for target, programs in build.by_target.items():
        state = (tuple(programs.by_mode), tuple(programs.refusals.items()))
        targets_by_state.setdefault(state, []).append(target)
    for (modes, refusals), targets in targets_by_state.items():
        names = ", ".join(map(_name, modes)) if len(modes) > 1 else "primal only"
        yield f"{name}  {names:<16}  {' '.join(targets)}", "none" if refusals else "ok"
        for mode, refusal in refusals:
            code = f"{refusal.code}: " if refusal.code else ""
            place = f" ({build.span.file_name}:{refusal.line})" if refusal.line else ""
            yield f"{margin}  no {_name(mode)}: {code}{refusal.reason}{place}", "none"


_State = tuple[tuple[Mode, ...], tuple[tuple[Mode, Refusal], ...]]


def _name(mode: Mode) -> str:
    return mode.name.lower()


def _validator_lines(built: Built) -> Iterator[tuple[str, Kind]]:
    counts = Counter(j.validator for j in built.judgements if j.status is Status.ACCEPTED)
    for validator, count in sorted(counts.items()):
        yield f"{validator} accepts {count} of {count}", "ok"
    unavailable = Counter(
        (j.validator, f"{j.reason}; {j.remedy}" if j.remedy else j.reason)
        for j in built.judgements
        if j.status is Status.UNAVAILABLE
    )
    for (validator, reason), count in sorted(unavailable.items()):
        yield f"{validator} did not judge {count}: {reason}", "none"


def _verification_lines(built: Built) -> Iterator[tuple[str, Kind]]:
    targets_by_state: dict[tuple[str, str], list[str]] = {}
    for each in built.verifications:
        targets_by_state.setdefault((each.entry, each.reason), []).append(each.target)
    for (entry, reason), targets in targets_by_state.items():
        names = " ".join(targets)
        if reason:
            yield f"not verified: {entry} for {names}: {reason}", "none"
        else:
            yield f"gradient of {entry} verified for {names}", "ok"
