"""report.json -> report.html: one page that holds its pictures and runs no script."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

TEMPLATE = Path(__file__).with_name("page.html")
STATUSES = ("passed", "failed", "refused", "left out")
LINES_OF_A_FAULT = 12
SLOW = 1.2
"""Ratios above this are marked."""
LOWEST = 10
"""Benchmarks that are marked, whose kernels are farthest from what the device can do."""

Json = Mapping[str, Any]


def page(report: Json, folder: Path) -> str:
    """The page; `folder` has the pictures that the report names."""
    lowest = _lowest(report)
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        made=escape(report["made"]),
        command=escape(report["command"]),
        seconds=report["seconds"],
        system=escape(report["system"]),
        versions=escape(", ".join(f"{k} {v}" for k, v in report["versions"].items())),
        overview=_overview(report),
        devices="\n".join(_device(device, folder, lowest) for device in report["devices"]),
        machine=_parts("", report["machine"], folder, lowest),
    )


def _lowest(report: Json) -> frozenset[tuple[str, str]]:
    """The devices and names of benchmarks that reach the lowest percents."""
    percents = [
        (max(reached), (device["id"], outcome["name"]))
        for device in report["devices"]
        for outcomes in device["parts"].values()
        for outcome in outcomes
        if (reached := _reached(outcome["facts"]))
    ]
    return frozenset(benchmark for _, benchmark in sorted(percents)[:LOWEST])


def _reached(facts: Json) -> list[float]:
    """The percents of a copy, and of multiply-adds, where they were measured."""
    return [facts[key] for key in ("percent_of_copy", "percent_of_fma") if key in facts]


def _overview(report: Json) -> str:
    """A row a device, a column a part: how many trials passed."""
    devices = [(d["id"], d["adapter"], d["parts"]) for d in report["devices"]]
    parts = list(dict.fromkeys(part for *_, parts in devices for part in parts))
    rows = [
        [f"<b>{escape(name)}</b> {escape(adapter)}", *(_count(parts_of.get(p, ())) for p in parts)]
        for name, adapter, parts_of in devices
    ]
    return _table(["", *parts], rows)


def _count(outcomes: Sequence[Json]) -> str:
    counts = {status: _number(outcomes, status) for status in STATUSES}
    text = f"{counts['passed']} of {len(outcomes)}"
    marks = [f"{counts[status]} {status}" for status in STATUSES[1:] if counts[status]]
    kind = "failed" if counts["failed"] else "left" if counts["left out"] else "passed"
    return f'<span class="{kind}">{text}</span> <small>{", ".join(marks)}</small>'


def _number(outcomes: Iterable[Json], status: str) -> int:
    return sum(outcome["status"] == status for outcome in outcomes)


def _device(device: Json, folder: Path, lowest: frozenset[tuple[str, str]]) -> str:
    opened = next((o for o in device["parts"].get("open", ()) if o["name"] == "open"), None)
    facts = opened["facts"] if opened else {}
    known = {
        "kind": device["kind"],
        "API": device["api"],
        "driver": facts.get("driver") or device["driver"] or "unknown",
        "features": ", ".join(facts.get("features", ())) or "unknown",
        "adds floats by": facts.get("atomics", "unknown"),
        "subgroup": facts.get("subgroup_size", "unknown"),
        "threads a group": facts.get("workgroup_threads_limit", "unknown"),
        "storage buffers": facts.get("storage_buffer_limit", "unknown"),
    }
    numbers = "".join(f"<div><dt>{k}</dt><dd>{escape(str(v))}</dd></div>" for k, v in known.items())
    title = f"{device['id']}: {device['adapter']}"
    parts = _parts(device["id"], device["parts"], folder, lowest)
    return f'<h2>{escape(title)}</h2>\n<dl class="numbers">{numbers}</dl>\n{parts}'


def _parts(
    device: str,
    parts: Mapping[str, Sequence[Json]],
    folder: Path,
    lowest: frozenset[tuple[str, str]],
) -> str:
    return "\n".join(
        f"<h3>{escape(name)} {_count(outcomes)}</h3>\n"
        + "\n".join(filter(None, _part(device, name, outcomes, folder, lowest)))
        for name, outcomes in parts.items()
        if outcomes
    )


def _part(
    device: str,
    part: str,
    outcomes: Sequence[Json],
    folder: Path,
    lowest: frozenset[tuple[str, str]],
) -> Iterator[str]:
    """Measurements, pictures, words; then every outcome that is no pass."""
    measured = [o for o in outcomes if "milliseconds" in o["facts"]]
    if measured:
        head = ["", "size", "shaderad", "others, and shaderad's time relative to theirs"]
        head += ["of a copy, of multiply-adds", ""]
        rows = [_measurement(o, is_low=(device, o["name"]) in lowest) for o in measured]
        yield _table(head, rows)
    pictures = [o for o in outcomes if "picture" in o["facts"]]
    if pictures:
        yield f'<div class="pictures">{"".join(_picture(o, folder) for o in pictures)}</div>'
    said = [o for o in outcomes if "said" in o["facts"] or "summary" in o["facts"]]
    if said and not pictures:
        lines = [o["facts"].get("summary") or o["facts"]["said"] for o in said]
        rows = [[escape(o["name"]), escape(text)] for o, text in zip(said, lines, strict=True)]
        yield _table([], rows)
    yield from (_fault(device, part, o) for o in outcomes if o["status"] == "failed")
    refused = [o for o in outcomes if o["status"] == "refused"]
    if refused:
        rows = [[escape(o["name"]), escape(o["detail"].splitlines()[0])] for o in refused]
        yield f"<details><summary>{len(refused)} refused</summary>{_table([], rows)}</details>"


def _measurement(outcome: Json, *, is_low: bool) -> list[str]:
    facts = outcome["facts"]
    milliseconds, ratios = facts["milliseconds"], facts.get("ratios", {})
    others = [_ratio(name, ratio, milliseconds.get(name)) for name, ratio in ratios.items()]
    others += [
        f"<small>{escape(name)}: {escape(why)}</small>"
        for name, why in facts.get("unable", {}).items()
    ]
    rates = [f"{facts[key]:.3g} {unit}" for key, unit in RATES.items() if key in facts]
    own = f"{milliseconds['shaderad']:.2f} ms"
    percents = ", ".join(f"{percent:.0f} %" for percent in _reached(facts))
    roof = f'<span class="{"slow" if is_low else "passed"}">{percents}</span>' if percents else ""
    cells = [escape(outcome["name"]), facts["size"], own, "<br>".join(others), roof]
    return [*cells, ", ".join(rates)]


RATES = {"gigabytes_a_second": "GB/s", "gigaflops": "GFLOP/s", "dispatches": "dispatches"}


def _ratio(name: str, ratio: float, milliseconds: float | None) -> str:
    kind = "slow" if ratio > SLOW else "passed"
    beside = "" if milliseconds is None else f" {milliseconds:.2f} ms,"
    return f'{escape(name)}{beside} <span class="{kind}">{ratio:.2f}x</span>'


def _picture(outcome: Json, folder: Path) -> str:
    path = folder / outcome["facts"]["picture"]
    data = base64.b64encode(path.read_bytes()).decode()
    caption = (
        f"<figcaption><b>{escape(outcome['name'])}</b> {outcome['seconds']:.1f} s</figcaption>"
    )
    return f'<figure><img src="data:image/png;base64,{data}" alt="">{caption}</figure>'


def _fault(device: str, part: str, outcome: Json) -> str:
    lines = outcome["detail"].splitlines()[:LINES_OF_A_FAULT]
    chosen = f"SHADERAD_DEVICE={device} " if device else ""
    again = f"{chosen}python -m scripts.gpu.parts --only '{part}: {outcome['name']}'"
    text = escape("\n".join(lines))
    return (
        f'<div class="fault"><b>{escape(outcome["name"])}</b><pre>{text}</pre>'
        f"<code>{escape(again)}</code></div>"
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    first = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{first}</tr></thead>\n<tbody>{body}</tbody></table>"
