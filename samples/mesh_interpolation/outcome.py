"""The record of a fit -> the files that the command leaves."""

from __future__ import annotations

from pathlib import Path

import shaderad as sad
from chart import VERTEX_ERROR, svg
from fit import Fit, psnr
from pictures import Pixels, png, row, smaller, webp
from record import Record, pixels
from report import Picture, Report, Section

VIEW_EDGE = 256


def write_beginning(record: Record, out: Path) -> None:
    """Writes the pictures of the start and the target before the first step."""
    (out / "target.png").write_bytes(png(record.target))
    (out / "start.png").write_bytes(png(record.start))


def write_outcome(
    fit: Fit, record: Record, attribute: str, device: sad.Device, out: Path, command: str
) -> None:
    """Writes the files after the last step."""
    record.gradients[fit.steps_done] = pixels(fit, "gradient")
    shown = {
        "start": record.start,
        "gradient": next(iter(record.gradients.values())),
        "fit": pixels(fit, "fit"),
        "target": record.target,
    }
    overview = row(*shown.values())
    shown["difference"] = pixels(fit, "difference")
    for name, picture in {**shown, "overview": overview}.items():
        (out / f"{name}.png").write_bytes(png(picture))
    (out / "loss.svg").write_text(svg(record.losses))
    (out / "fit.webp").write_bytes(webp(record.frames))
    if record.vertex_errors:
        (out / "vertex_error.svg").write_text(svg(record.vertex_errors, VERTEX_ERROR))

    can = device.capabilities
    report = Report(
        attribute=attribute,
        numbers=numbers(fit, record),
        pictures=compared(out, shown["difference"].max()),
        progress=[
            Picture(f"Fit: steps 0 to {fit.steps_done}", (out / "fit.webp").read_bytes(), "webp"),
            Picture("Loss: before each step", (out / "loss.svg").read_text()),
        ],
        gradients=gradients(record),
        sections=[*vertices(record), *views(fit)],
        command=command,
        device=f"{can.runtime}, {can.adapter}",
    )
    (out / "report.html").write_text(report.page(out / "build"))


def compared(out: Path, difference: float) -> list[Picture]:
    """The pictures that were written, with their captions."""
    captions = {
        "start": "Start",
        "fit": "Fit",
        "target": "Target",
        "difference": f"Difference: at most {difference:.1g}",
    }
    return [Picture(said, (out / f"{name}.png").read_bytes()) for name, said in captions.items()]


def gradients(record: Record) -> list[Picture]:
    """The heat maps by the number of steps."""
    return [
        Picture(f"After {count} step{'s' if count > 1 else ''}", png(shown))
        for count, shown in record.gradients.items()
    ]


def numbers(fit: Fit, record: Record) -> dict[str, str]:
    """The numbers of a report."""
    found = {
        "Triangles": f"{fit.triangle_count:,}",
        "Vertices": f"{fit.vertex_count:,}",
        "Picture": f"{fit.size} x {fit.size}",
        "Steps": str(fit.steps_done),
        "PSNR": f"{psnr(record.loss):.2f} dB",
        "A step": f"{record.milliseconds_a_step:.1f} ms",
    }
    if record.vertex_errors:
        (_, start), (_, now) = record.vertex_errors[0], record.vertex_errors[-1]
        found["Vertex error"] = f"{now / start:.2%} of the start"
    return found


def vertices(record: Record) -> list[Section]:
    """The curve of vertex errors, if positions are fitted."""
    if not record.vertex_errors:
        return []
    (_, start), (_, now) = record.vertex_errors[0], record.vertex_errors[-1]
    caption = f"Distance to where they belong: {start:.3g} at the start, {now:.2g} at the end"
    picture = Picture(
        f"{caption}; the mean over vertices that two views show",
        svg(record.vertex_errors, VERTEX_ERROR),
    )
    return [Section("The vertices", [picture], "single")]


def views(fit: Fit) -> list[Section]:
    """The pictures of each view, if a fit has several."""
    if len(fit.views) == 1:
        return []

    def together(view: int) -> Pixels:
        shows = ("start", "fit", "target")
        return row(*(smaller(pixels(fit, show, view), VIEW_EDGE) for show in shows))

    caption = "View {}: start, fit, target"
    shown = [Picture(caption.format(k + 1), png(together(k))) for k in range(len(fit.views))]
    return [Section("All views", shown, "pair")]
