"""A role and words -> kernels with derivatives, which the compilers of every target take."""

from __future__ import annotations

import itertools
import keyword
import re
from collections.abc import Iterable, Iterator
from importlib.util import cache_from_source
from pathlib import Path
from types import ModuleType

from shaderad.bundle.write.command_options import kernel_inputs
from shaderad.bundle.write.validators import Naga
from shaderad.compiler.artifact import Program
from shaderad.compiler.compile import compile_program
from shaderad.compiler.formats import FORMATS, NAGA
from shaderad.compiler.validate import Status, validate, validator_names
from shaderad.diagnostics import Error
from shaderad.ir.nodes import Kernel
from shaderad.language.signatures import RESERVED
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel
from shaderad.lower.write.names import WORDS_OF_GLOBALS, names_of_bodies
from tests.lower.golden_kernels import FOLDER
from tests.reserved_words import foreign
from tests.reserved_words.roles import Role
from tests.samples.loading import module_of

_OF_THE_TEXT = {
    word
    for path in FOLDER.glob("*.slang")
    for word in re.findall(r"[A-Za-z_]\w*", path.read_text(encoding="utf-8"))
}
"""Whatever the emitted text of a kernel names."""
_FOREIGN = {*foreign.SLANG, *foreign.HLSL, *foreign.WGSL, *foreign.METAL, *foreign.C}
WORDS = sorted(
    word
    for word in names_of_bodies() | WORDS_OF_GLOBALS | _OF_THE_TEXT | _FOREIGN
    if word.isidentifier() and not keyword.iskeyword(word) and not word.startswith("__")
    and not word.endswith("_")
)  # fmt: skip
TARGETS = tuple(FORMATS)


def faults(
    role: Role, words: list[str], folder: Path, naga: Naga, targets: Iterable[str] = TARGETS
) -> list[str]:
    """What compilers say against `words` in a role, each word by itself."""
    if role.is_parameter:
        words = [w for w in words if w not in RESERVED]
    found: list[str] = []
    for first in range(0, len(words), role.batch):
        found += _told_apart(role, words[first : first + role.batch], folder, naga, targets)
    return found


def _told_apart(
    role: Role, words: list[str], folder: Path, naga: Naga, targets: Iterable[str]
) -> list[str]:
    fault = _fault(role, words, folder, naga, targets)
    if not fault or len(words) == 1:
        return [f"{words[0]}: {fault}"] if fault else []
    half = len(words) // 2
    found = [
        one
        for part in (words[:half], words[half:])
        for one in _told_apart(role, part, folder, naga, targets)
    ]
    return found or [f"{' '.join(words)}: {fault}"]


def _fault(role: Role, words: list[str], folder: Path, naga: Naga, targets: Iterable[str]) -> str:
    try:
        module = _loaded(role.source(words), folder)
        for name in role.kernels(words):
            kernel = getattr(module, name).specialise({})
            for reason in _refusals(kernel, naga, targets):
                return reason
    except Error as failure:
        return str(failure)
    return ""


def _refusals(kernel: Kernel, naga: Naga, targets: Iterable[str]) -> Iterator[str]:
    for mode, target in itertools.product((Mode.PRIMAL, Mode.BACKWARD), targets):
        for program in _lowered(kernel, mode):
            code = compile_program(program, target)
            judged = [
                naga(code, program.name) if name == NAGA else validate(code, program.name, name)
                for name in validator_names(target)
            ]
            yield from (
                f"{program.name}, {target}: {one.reason}"
                for one in judged
                if one is not None and one.status is Status.REFUSED
            )


def _lowered(kernel: Kernel, mode: Mode) -> Iterator[Program]:
    inputs = kernel_inputs(kernel)
    variant = Variant(
        wanted=frozenset(n for n in inputs if inputs[n]) if mode is Mode.BACKWARD else frozenset(),
        launch_shaped=frozenset(b.name for b in kernel.buffers),
        storage_buffer_limit=1000,
        atomics="exchange",
    )
    for one in lower_kernel(kernel, mode, variant):
        yield one.program


def _loaded(source: str, folder: Path) -> ModuleType:
    path = folder / "words.py"
    # Bytecode of a file of this size from the same second would count as that of this text.
    Path(cache_from_source(str(path))).unlink(missing_ok=True)
    path.write_text(source, encoding="utf-8")
    return module_of(path)
