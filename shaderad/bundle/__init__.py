"""A Python file in, compiled kernels and graphs and their manifest on disk out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from shaderad.bundle.profiles import DEFAULT_TARGETS, PROFILES
from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.lower.bindings import BOUNDS, WORKGROUP_SIZE

if TYPE_CHECKING:
    from shaderad.bundle.stages import Built

__all__ = ["DEFAULT_TARGETS", "PROFILES", "Built", "build"]


@api_boundary
def build(
    source: str | Path,
    out: str | Path,
    *,
    entries: str | Sequence[str] = (),
    targets: str | Sequence[str] = DEFAULT_TARGETS,
    defines: Mapping[str, object] | None = None,
    bounds: str = "raise",
    atomics: str | Sequence[str] = (),
    features: str | Sequence[str] = (),
    workgroup: int = WORKGROUP_SIZE,
    space: int = 0,
    binding_base: int = 0,
    wrt: str | Sequence[str] = (),
    require_backward: bool = False,
    jvp: bool = False,
    validate: bool = True,
    vet: bool = False,
    verify: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Built:
    """Builds the kernels and graphs of a Python file, primal and backward, for each target.

    `out` gets a folder for each target with one file an entry point and beside each its Slang
    text, the Slang library that the texts import, ``manifest.json``, which says how to bind
    and dispatch them, and of graphs in which order, over which buffers, and a header for C and
    C++, named like the Python file. Same input, same bytes.

    Args:
        source: A Python file, or ``file.py:name`` for one of its kernels or graphs.
        out: The folder; of what is in it, only files of an earlier build are replaced.
        entries: Names of kernels and graphs to build; none: all that the file defines.
        targets: Of ``spirv``, ``spirv-core``, ``hlsl``, ``wgsl``, ``metal``; one text with commas
            or several.
        defines: Values of `sad.Const` parameters, by parameter or ``kernel.parameter``.
        bounds: What an index out of range does: ``raise`` binds a report buffer, ``ignore``
            does not, ``unchecked`` leaves out the guards.
        atomics: How threads add to one float, where that is not to be as the target has it:
            ``native``, ``exchange`` or ``compare-exchange``, or ``hlsl:exchange`` for one target.
        features: What devices have: ``subgroups``, ``float-atomics``, or ``no-subgroups``, ..;
            ``wgsl:subgroups`` for one target.
        workgroup: Threads of a workgroup; reductions and scans of graphs choose their own.
        space: The descriptor set, bind group or register space of everything that is bound.
        binding_base: The slot of the constant buffer; the others follow it.
        wrt: The inputs by which is differentiated, ``mesh.colors`` or ``shade.mesh``; all that
            hold floats where none is given.
        require_backward: Refuses kernels and graphs that cannot be differentiated.
        jvp: Builds forward mode as well.
        validate: Asks spirv-val, glslangValidator and naga, where they are installed.
        vet: Asks naga, by the wgpu that is installed, whether it takes the SPIR-V and WGSL, and
            keeps its verdicts in the manifest, so that `sad.load` need not ask.
        verify: Tries gradients on this machine's wgpu device, with made-up arguments, against
            finite differences.
        tell: Called with a line about each step before it is taken.

    Raises:
        LanguageError: SR0701 to SR0707, SR0730, SR0731, SR0734, SR0735, SR0738, SR0746, SR0747, or
            what the front end refuses.
        CompileError: SR0501 to SR0507, SR0708 to SR0715, SR0740 to SR0745, SR0750.
        DeviceError: SR0602, SR0603, where wgpu has no device to vet with.
        GradientError: SR0751, where `verify` finds a wrong gradient.
        ShapeError: SR0374, where there are no such `bounds`.
    """
    # Imported here: what `sad.load` needs lies in this folder, too, and builds nothing.
    from shaderad.bundle.constants import constants_of
    from shaderad.bundle.folder import check_folder
    from shaderad.bundle.graph_entries import TracedGraph
    from shaderad.bundle.left_out import silent_kernel, silent_variant
    from shaderad.bundle.plain_files import plain_name
    from shaderad.bundle.profile_changes import Changes, changed_profiles
    from shaderad.bundle.profiles import profiles_of
    from shaderad.bundle.programs import ChosenKernel
    from shaderad.bundle.source_file import find_entries, imported, split_source
    from shaderad.bundle.stages import Options, build_entries
    from shaderad.bundle.wanted_inputs import graph_inputs, kernel_inputs, wanted_inputs

    changes = Changes(_several(atomics), _several(features), workgroup, space, binding_base)
    profiles = changed_profiles(profiles_of(_several(targets)), changes)
    if bounds not in BOUNDS:
        raise error("SR0374", found=repr(bounds))
    path, name = split_source(str(source))
    names = [one for one in (name, *_several(entries)) if one]
    options = Options(profiles, plain_name(path.stem), bounds, require_backward, jvp, validate,
                      vet, verify)  # fmt: skip
    if tell is not None:
        options = replace(options, tell=tell)
    folder = Path(out)
    check_folder(folder)
    with imported(path) as module:
        found = find_entries(module, names)
        constants = constants_of(found.kernels, defines or {})
        # Called as in the module: kernels that one factory makes all have its inner name.
        kernels = [
            silent_kernel(replace(function.specialise(constants[name]), name=name))
            for name, function in found.kernels.items()
        ]
        traced = {name: (*one.ahead_of_calls(name), one.span) for name, one in found.graphs.items()}
        inputs = {one.name: kernel_inputs(one) for one in kernels}
        inputs |= {name: graph_inputs(signature) for name, (signature, *_) in traced.items()}
        wanted = wanted_inputs(_several(wrt), inputs)
        chosen = [
            ChosenKernel(one, constants.get(one.name, {}), wanted[one.name]) for one in kernels
        ]
        graphs = [
            TracedGraph(signature, silent_variant(variant), span, wanted[name])
            for name, (signature, variant, span) in traced.items()
        ]
        return build_entries(chosen, graphs, folder, options)


def _several(given: str | Sequence[str]) -> Sequence[str]:
    return (given,) if isinstance(given, str) else given
