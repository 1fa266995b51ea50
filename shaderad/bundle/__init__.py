"""A Python file -> compiled kernels and graphs and their manifest on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from shaderad.compiler.launch_shapes import PORTABLE
from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.lower.bindings import BOUNDS
from shaderad.lower.targets import DEFAULT_TARGETS

if TYPE_CHECKING:
    from shaderad.bundle.write.stages import Built

__all__ = ["build"]


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
    workgroup: int = PORTABLE.workgroup,
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

    Writes to `out`: a folder for each target, with the code and the Slang text of every entry
    point; the Slang library that the texts import; ``manifest.json``, which tells hosts how to
    bind and dispatch kernels and how to run the plans of graphs; and a header for C and C++, named
    like the Python file. The same input gives the same bytes.

    Args:
        source: A Python file, or ``file.py:name`` for one of its kernels or graphs.
        out: The output folder. Files of an earlier build are replaced, other files are kept.
        entries: Names of kernels and graphs to build; empty for all that the file defines.
        targets: Any of ``spirv``, ``spirv-core``, ``hlsl``, ``wgsl``, ``metal``; as a sequence, or
            as one text with commas.
        defines: Values of `sad.Const` parameters, by parameter or ``kernel.parameter``.
        bounds: The effect of an index out of range: ``raise`` reports it in a report buffer,
            ``ignore`` reads 0 and writes nothing, ``unchecked`` compiles no guards.
        atomics: How threads add to one float: ``native``, ``exchange`` or ``compare-exchange``, or
            ``hlsl:exchange`` for one target; empty for the default of the target.
        features: Features of the devices: ``subgroups``, ``float-atomics``, or ``no-subgroups``,
            ...; ``wgsl:subgroups`` for one target.
        workgroup: Threads of a workgroup; reductions and scans of graphs choose their own.
        space: The descriptor set, bind group or register space of all bindings.
        binding_base: The slot of the constant buffer; storage buffers follow it.
        wrt: The inputs to differentiate by, such as ``mesh.colors`` or ``shade.mesh``; empty for
            all inputs that hold floats, ``none`` to build no derivatives.
        require_backward: Refuses kernels and graphs without a derivative.
        jvp: Builds forward mode as well.
        validate: Asks spirv-val, glslangValidator and naga, if they are installed.
        vet: Asks the naga of the installed wgpu about SPIR-V and WGSL, and writes its verdicts to
            the manifest.
        verify: Checks gradients on this machine's wgpu device against finite differences, with
            synthetic arguments.
        tell: Called with a line about each step before it starts.

    Returns:
        The entries that were built, the files that were written, and the answers of validators.

    Raises:
        LanguageError: SR0701 to SR0707, SR0730, SR0731, SR0734, SR0735, SR0738, SR0746, SR0747, or
            an error of the front end.
        CompileError: SR0501 to SR0504, SR0506, SR0507, SR0708 to SR0715, SR0740 to SR0745, SR0750.
        MissingPackageError: SR0505, if there is no compiler.
        DeviceError: SR0602, SR0603, if wgpu has no device to vet with.
        GradientError: SR0751, if `verify` finds a wrong gradient.
        ShapeError: SR0374, if `bounds` is unknown.
    """
    # Imported here: `sad.load` is in this package as well, and needs nothing that builds.
    from shaderad.bundle.read.loaded_files import plain_name
    from shaderad.bundle.write.command_options import (
        constants_of,
        graph_inputs,
        kernel_inputs,
        wanted_inputs,
    )
    from shaderad.bundle.write.folder import check_folder
    from shaderad.bundle.write.graph_entries import TracedGraph
    from shaderad.bundle.write.left_out import silent_kernel, silent_variant
    from shaderad.bundle.write.profile_changes import Changes, changed_profiles, profiles_of
    from shaderad.bundle.write.programs import ChosenKernel
    from shaderad.bundle.write.source_file import find_entries, imported, split_source
    from shaderad.bundle.write.stages import Options, build_entries

    changes = Changes(_several(atomics), _several(features), workgroup, space, binding_base)
    profiles = changed_profiles(profiles_of(_several(targets)), changes)
    if bounds not in BOUNDS:
        raise error("SR0374", found=repr(bounds))
    path, name = split_source(str(source))
    names = [each for each in (name, *_several(entries)) if each]
    options = Options(profiles, plain_name(path.stem), bounds, require_backward, jvp, validate,
                      vet, verify)  # fmt: skip
    if tell is not None:
        options = replace(options, tell=tell)
    folder = Path(out)
    check_folder(folder)
    with imported(path) as module:
        functions = find_entries(module, names)
        constants = constants_of(functions.kernels, defines or {})
        # Renamed to the module's name: kernels from one factory all have its inner name.
        kernels = [
            silent_kernel(replace(function.specialise(constants[name]), name=name))
            for name, function in functions.kernels.items()
        ]
        traced = {
            name: (*function.ahead_of_calls(name), function.span)
            for name, function in functions.graphs.items()
        }
        inputs = {kernel.name: kernel_inputs(kernel) for kernel in kernels}
        inputs |= {name: graph_inputs(signature) for name, (signature, *_) in traced.items()}
        wanted = wanted_inputs(_several(wrt), inputs)
        chosen = [
            ChosenKernel(kernel, constants.get(kernel.name, {}), wanted[kernel.name])
            for kernel in kernels
        ]
        graphs = [
            TracedGraph(signature, silent_variant(variant), span, wanted[name])
            for name, (signature, variant, span) in traced.items()
        ]
        return build_entries(chosen, graphs, folder, options)


def _several(names: str | Sequence[str]) -> Sequence[str]:
    return (names,) if isinstance(names, str) else names
