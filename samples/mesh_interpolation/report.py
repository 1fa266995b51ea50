"""The record of a fit -> one HTML page without other files or scripts."""

from __future__ import annotations

import ast
import base64
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import HLSLShaderLexer, PythonLexer

HERE = Path(__file__).parent
TEMPLATE = HERE / "report_template.html"


@dataclass(frozen=True)
class Subject:
    """The text of a report about one attribute, and the code that it shows."""

    title: str
    story: str
    method: tuple[str, str]
    """The class and method of `kernels.py` that read the attribute."""
    slang: tuple[str, str]
    """An entry point of the build, and the buffer from which it reads the attribute."""


SUBJECTS = {
    "colors": Subject(
        "Colours at the vertices of a mesh, found by gradient descent",
        "Every pixel interpolates the colours of three vertices. From grey, the colours are moved "
        "against the gradient of the squared error, until the picture is the target.",
        ("Mesh", "interpolate"),
        ("shade_bwd", "mesh_colors_in"),
    ),
    "normals": Subject(
        "Normals at the vertices of a mesh, found by gradient descent",
        "Every pixel interpolates the normals of three vertices and is lit by the result. The "
        "normals are moved until the light falls as it does in the target.",
        ("Mesh", "interpolate"),
        ("shade_bwd", "mesh_normals_in"),
    ),
    "positions": Subject(
        "Vertices of a mesh, moved to where they belong by gradient descent",
        "A dented mesh is compared with pictures of the true one from all sides, its colours being "
        "known. Vertices are moved until the pictures agree, inside of outlines and along them; "
        "where cameras see a vertex carries the derivative.",
        ("Camera", "clip"),
        ("project_bwd", "positions_in"),
    ),
}


@dataclass(frozen=True)
class Picture:
    """Encoded pixels, or SVG text that becomes part of the page."""

    caption: str
    data: bytes | str
    kind: str = "png"

    def figure(self) -> str:
        """HTML, with the caption in bold up to its first colon."""
        name, colon, rest = html.escape(self.caption).partition(":")
        caption = f"<figcaption><b>{name}</b>{colon}{rest}</figcaption>"
        if isinstance(self.data, str):
            return f"<figure>{self.data}{caption}</figure>"
        source = f"data:image/{self.kind};base64,{base64.b64encode(self.data).decode()}"
        return f'<figure><img src="{source}" alt="{name}">{caption}</figure>'


@dataclass(frozen=True)
class Section:
    """Further pictures under their own heading."""

    heading: str
    pictures: Sequence[Picture]
    columns: str = "pair"
    """A class of the template: `pair` or `single`."""


@dataclass(frozen=True)
class Report:
    attribute: str
    numbers: Mapping[str, str]
    pictures: Sequence[Picture]
    progress: Sequence[Picture]
    gradients: Sequence[Picture]
    sections: Sequence[Section]
    command: str
    device: str

    def page(self, build: Path) -> str:
        """The page; `build` has the kernels as Slang."""
        subject = SUBJECTS[self.attribute]
        return Template(TEMPLATE.read_text()).substitute(
            title=subject.title,
            story=subject.story,
            numbers="\n".join(
                f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(number)}</dd></div>"
                for name, number in self.numbers.items()
            ),
            pictures=_figures(self.pictures),
            progress=_figures(self.progress),
            gradients=_figures(self.gradients),
            sections="\n".join(
                f'<h2>{html.escape(s.heading)}</h2>\n<div class="{s.columns}">\n'
                f"{_figures(s.pictures)}\n</div>"
                for s in self.sections
            ),
            code=_code(subject, build),
            command=f"Made by <code>{html.escape(self.command)}</code>",
            device=html.escape(self.device),
        )


def _figures(pictures: Sequence[Picture]) -> str:
    return "\n".join(picture.figure() for picture in pictures)


def _code(subject: Subject, build: Path) -> str:
    """The method that reads the attribute in Python and in Slang, and the library's addition."""
    entry, buffer = subject.slang
    written = method((HERE / "kernels.py").read_text(), *subject.method)
    slang = slang_function((build / f"spirv/{entry}.slang").read_text(), buffer)
    formatter = HtmlFormatter[str](nowrap=True)
    library = reading((build / "shaderad/access.slang").read_text())
    shown = {
        "kernels.py": highlight(written, PythonLexer(), formatter),
        f"build/spirv/{entry}.slang": highlight(slang, HLSLShaderLexer(), formatter),
        "build/shaderad/access.slang": highlight(library, HLSLShaderLexer(), formatter),
    }
    return "\n".join(
        f"<figure><pre>{code.rstrip()}</pre><figcaption>{name}</figcaption></figure>"
        for name, code in shown.items()
    )


def method(text: str, class_name: str, name: str) -> str:
    """The source of a class with one of its methods, its fields included."""
    body = next(
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef) and node.name == class_name
    )
    found = next(n for n in body.body if isinstance(n, ast.FunctionDef) and n.name == name)
    fields = [node for node in body.body if isinstance(node, ast.AnnAssign)]
    lines = text.splitlines()
    first = (body.decorator_list[0] if body.decorator_list else body).lineno
    head = lines[first - 1 : body.lineno]
    kept = [lines[f.lineno - 1] for f in fields]
    return "\n".join([*head, *kept, "", *lines[found.lineno - 1 : found.end_lineno]]) + "\n"


def slang_function(text: str, buffer: str) -> str:
    """The first function of `text` that adds to the gradient of `buffer`."""
    functions = re.findall(r"^void \w+\(.*\n\{\n(?:.*\n)*?\}\n", text, re.MULTILINE)
    return next(f for f in functions if re.search(rf"addGradient<\w+, {buffer}>", f))


def reading(library: str) -> str:
    """`addGradient` of the Slang library."""
    pattern = r"^public void addGradient<.*?^\}\n"
    found = re.search(pattern, library, re.MULTILINE | re.DOTALL)
    assert found
    return found[0]
