"""wgpu through HLSL: Slang -> HLSL text -> glslangValidator -> SPIR-V -> the device.

It runs the text that D3D12 hosts get, which no device here reads itself.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import shaderad as sad
from shaderad.compiler.artifact import Code, Program
from shaderad.compiler.compile import compile_program
from shaderad.compiler.validate import VettingDevice, vet
from shaderad.runtime.capabilities import Capabilities
from shaderad.runtime.naga import layout_of
from shaderad.runtime.routes import Route, choose_code

TOOL = "glslangValidator"
# HLSL has `sin` of a matrix, of which glslang makes an instruction that SPIR-V has for vectors
# only. It knows no products by element of matrices that are not square: none should be left.
_GLSLANG_FAULTS = (
    "has incorrect or ambiguous arguments",
    "Could not perform requested binary operation",
)


_PRODUCT = re.compile(
    r"^0:(\d+) +(?:matrix-multiply|matrix-times-vector|vector-times-matrix"
    r"|matrix mult second child into first child)\b",
    re.MULTILINE,
)
"""A matrix product in glslang's syntax tree, with the line of the text it stems from."""


class Untranslatable(Exception):
    """What glslang does not turn into the SPIR-V it should, though it is right HLSL."""


def _check_translatable(reason: str) -> None:
    if any(fault in reason for fault in _GLSLANG_FAULTS):
        raise Untranslatable(reason)


def check_products(text: str, tree: str) -> None:
    """Refuses products of matrices by component: glslang makes matrix products of them.

    HLSL multiplies by component with ``*``; its matrix products are calls of ``mul``.
    """
    lines = text.splitlines()
    # The tree comes a second time, linked.
    made = Counter(int(n) for n in _PRODUCT.findall(tree.partition("\nLinked ")[0]))
    for number, count in made.items():
        if count > len(re.findall(r"\bmul\(", lines[number - 1])):
            raise Untranslatable(f"a product by component: {lines[number - 1].strip()}")


AS_PARALLEL = {"kind": "discrete"}
"""Makes a device get the text of devices whose groups run at once: no loop over a tile."""


def is_available() -> bool:
    return shutil.which(TOOL) is not None


@contextmanager
def hlsl_device() -> Iterator[sad.Device]:
    """A wgpu device whose programs have all been HLSL.

    Floats are added by exchange: naga does not read compare-exchange, nor HLSL float atomics.
    Without immediates: glslang declares all buffers of HLSL in the storage class that
    `readable_spirv` takes for constant buffers.
    """
    limits = {"atomics": "exchange", "features": frozenset[str](), **AS_PARALLEL}
    with mock.patch("shaderad.runtime.wgpu_adapters.OPTIONAL_FEATURES", ()):
        device = sad.open_device("wgpu", limits=limits)

    def choose(
        program: Program, capabilities: Capabilities, vetting: VettingDevice
    ) -> tuple[Code, Route]:
        is_own = capabilities is device.capabilities
        return (_through_hlsl if is_own else choose_code)(program, capabilities, vetting)

    with mock.patch("shaderad.runtime.wgpu_runtime.choose_code", choose):
        yield device
    device.close()


def _through_hlsl(
    program: Program, capabilities: Capabilities, device: VettingDevice
) -> tuple[Code, Route]:
    del capabilities
    code = Code("spirv", _assembled(program))
    verdict = vet(code, program.name, device, layout_of(program, code.format, device))
    _check_translatable(verdict.reason)
    if "literal is NaN" in verdict.reason:
        raise Untranslatable("glslang folds constants to a NaN, which naga refuses")
    if not verdict.is_accepted:
        raise AssertionError(f"naga refuses what glslang made of {program.name}: {verdict.reason}")
    code = replace(code, content=verdict.content)
    return code, Route(program.name, "hlsl", "asked for")


def _with_slots(text: str, program: Program) -> str:
    """The text with one register number a slot: HLSL counts each kind from 0, Vulkan all as one."""
    slot_by_name = {b.name: b.slot for b in program.bindings}

    def slotted(found: re.Match[str]) -> str:
        name, suffix, kind = found.groups()
        return f"{name}{suffix} : register({kind}{slot_by_name[name]})"

    return re.sub(r"(\w+?)(_\d+) : register\((\w)\d+\)", slotted, text)


def _assembled(program: Program) -> bytes:
    text = _with_slots(compile_program(program, "hlsl").content.decode(), program)
    tool = shutil.which(TOOL)
    assert tool is not None
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "code.hlsl", Path(folder) / "code.spv"
        source.write_text(text)
        command = [tool, "-D", "-i", "-V", "--target-env", "vulkan1.1", "-S", "comp"]
        done = subprocess.run(
            [*command, "-e", program.name, "-o", str(target), str(source)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode < 0:
            raise Untranslatable(f"glslang dies of signal {-done.returncode}")
        if done.returncode:
            _check_translatable(done.stdout)
            raise AssertionError(f"glslang refuses the HLSL of {program.name}:\n{done.stdout}")
        check_products(text, done.stdout)
        return target.read_bytes()
