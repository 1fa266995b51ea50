"""SR05: the shader compiler refuses or fails. SR07: `shaderad build` and what it writes."""

from __future__ import annotations

from functools import partial

from shaderad.diagnostics.errors import (
    CompileError,
    DerivativeError,
    DeviceError,
    Error,
    GradientError,
    LanguageError,
    Message,
    MissingPackageError,
    ShapeError,
)

_compile = partial(Message, CompileError)
_derivative = partial(Message, DerivativeError)
_device = partial(Message, DeviceError)
_error = partial(Message, Error)
_gradient = partial(Message, GradientError)
_language = partial(Message, LanguageError)
_shape = partial(Message, ShapeError)

MESSAGES: dict[str, Message] = {
    "SR0501": _compile(
        "the Slang compiler refuses `{entry}` for {target}: {message}",
        note="{number}, in the generated text:\n{excerpt}",
        help="if this line is valid in a kernel, it is a bug in shaderad: report it",
    ),
    "SR0502": _compile(
        "the Slang compiler crashed on `{entry}` for {target}: {cause}",
        note="this is a bug in shaderad or in Slang, never in your kernel; your process is unharmed"
        "\nthe generated module is kept in {path}\n{stderr}",
        help="report it with that file attached",
    ),
    "SR0503": _compile(
        "{compiler} {excess} over `{entry}` for {target} and was stopped",
        note="it was given {size} bytes of Slang, which are kept in {path}",
        help="unroll less: use `sad.range` where `sad.static_range` has many iterations\n"
        "split a kernel that does much in two; if it is small, report it with that file attached",
    ),
    "SR0504": _compile(
        "there is no target `{target}`",
        note="targets that work: {targets}",
        help="for Vulkan and OpenGL 4.6 use `spirv` (GLSL lacks what the derivatives need), "
        "for Direct3D `hlsl`",
    ),
    "SR0505": partial(Message, MissingPackageError)(
        "the Slang compiler is not installed",
        note="it comes with the package `slangpy`, which this Python cannot find",
        help="run `pip install slangpy`, or load what `shaderad build` wrote with `sad.load`",
    ),
    "SR0506": _compile(
        "the process that compiles could not be started: {reason}",
        note="the compiler runs in its own Python process, because it can crash",
        help="set the environment variable SHADERAD_PYTHON to a Python that can import shaderad",
    ),
    "SR0507": _compile(
        "`{kernel}_{mode}` needs {count:storage buffer|storage buffers} in one dispatch, "
        "and {host} has {limit}",
        note='they are {names}; `report` collects bad indices, and `bounds="ignore"` removes it',
        help="put arrays of one length into one array of structs, or split the kernel in two",
    ),
    "SR0508": _compile(
        "the Slang compiler was killed over `{entry}` for {target}: {cause}",
        note="twice in a row, and not by shaderad: usually because memory ran out"
        "\nit was given {size} bytes of Slang\n{stderr}",
        help="free memory, or raise the memory limit of this container, and call again\n"
        "unroll less: use `sad.range` where `sad.static_range` has many iterations",
    ),
    "SR0509": _compile(
        "SHADERAD_CACHE names a folder that is not safe: {folder} {reason}",
        note="code in the cache is executed",
        help="name a folder that does not exist yet, or one that nobody else can write to",
    ),
    "SR0701": _language(
        "there is no file `{path}`",
        help="give a Python file, or `FILE.py:NAME` for one of its kernels",
    ),
    "SR0702": _language(
        "`{file}` fails when it is imported: {failure}",
        note="a build imports the file, with its folder on the search path",
        help='put code that only a run needs under `if __name__ == "__main__":`',
    ),
    "SR0703": _language(
        "`{file}` defines no kernel and no graph",
        note="imported kernels and graphs are built only by name: `{file}:NAME`",
        help="decorate a function at module level with `@sad.kernel` or `@sad.graph`",
    ),
    "SR0704": _language(
        "`{name}` is not a kernel or graph of `{file}`",
        label="it has {known}",
        help="name one of them, or none for all",
    ),
    "SR0705": _language(
        "`{kernel}` needs a value for its constant `{name}`",
        label="it is compiled in",
        help="give one: `--define {name}=VALUE`, or `--define {kernel}.{name}=VALUE`",
    ),
    "SR0706": _language(
        "`{text}` defines nothing",
        help="write `--define NAME=VALUE` or `--define KERNEL.NAME=VALUE`, with a Python number, "
        "`True` or `False` as value",
    ),
    "SR0707": _language(
        "no constant is called `{name}`",
        note="kernels of this build: {kernels}",
        help="define parameters annotated `sad.Const`; others are bound when the kernel runs",
    ),
    "SR0708": _compile(
        "cannot write to the folder `{folder}`: {reason}",
        help="name another folder",
    ),
    "SR0709": _compile(
        "`{file}` is in the way in `{folder}`",
        note="no earlier build wrote it, so it is kept",
        help="move it, or build into another folder",
    ),
    "SR0710": _derivative(
        "`{kernel}` has no backward mode: {reason}",
        help="change the kernel, or leave out `--require-bwd` to build its primal alone",
    ),
    "SR0711": _compile(
        "`{name}` holds `double`, which `{target}` does not have",
        help="build for `spirv` or `hlsl`, or use `float`",
    ),
    "SR0712": _compile(
        "{validator} refuses `{entry}` for {target}: {reason}",
        help="this is a bug in shaderad: report it; `--no-validate` writes the files anyway",
    ),
    "SR0713": _compile("no target is named", help="name one or several of {targets}"),
    "SR0720": _compile(
        "`{folder}` holds no build: {reason}",
        note="a build is described by its `manifest.json`",
        help="name the folder that `shaderad build -o` wrote",
    ),
    "SR0721": _compile(
        "the build in `{folder}` has a manifest of version {found}, and this shaderad reads "
        "{wanted}",
        note="shaderad {writer} wrote it",
        help="build again with this version",
    ),
    "SR0722": _compile(
        "`{file}` of the build in `{folder}` is not the file that was built: {reason}",
        help="build again",
    ),
    "SR0723": _language(
        "`{folder}` has no entry `{name}`",
        note="its entries: {known}",
        help="build the file again if it is new",
    ),
    "SR0724": _device(
        "no target of the build in `{folder}` runs `{kernel}` on {adapter}",
        note="built for {built}; {runtime} accepts {wanted}; {missing}",
        help="build for `wgsl`, which runs everywhere, or open another device",
    ),
    "SR0725": _derivative(
        "`{kernel}` was built without `{mode}`: {reason}",
        help="call a mode that was built, or use `{kernel}` from its Python source",
    ),
    "SR0726": _shape(
        "`{kernel}` was built with `{name}={wanted}`, not {found}",
        help="leave `{name}` out, or build again",
    ),
    "SR0727": _shape(
        "the built code of `{kernel}` assumes another shape for `{name}`",
        note="an Out with as many axes as the launch is built for the shape of the launch",
        help="leave out `shapes`, or use the kernel from its Python source",
    ),
    "SR0728": _shape(
        "the built `{kernel}` takes `{name}` as a number, not as an array on the device",
        help="pass `{name}.item()`",
    ),
    "SR0730": _language(
        "parameter `{name}` of graph `{graph}` declares neither its elements nor its axes",
        note="a build traces the graph before there are arguments",
        help='annotate it, as in `{name}: sad.Array[float, "n"]`, with a tuple, named tuple or '
        "typed dict of these, or give it a default value, which is compiled in",
    ),
    "SR0731": _language(
        "`{found}` in `{name}` of graph `{graph}` is not a valid name for a size",
        note="the manifest of a build computes with names of sizes",
        help='use letters, digits and underscores, as in `"n"`',
    ),
    "SR0732": _shape(
        "`{graph}` was built for calls in which {rule}",
        label="found {found}",
        note="tracing relied on it, for example to decide which axes broadcast",
        help="use the graph from its Python source, which is traced again for such sizes",
    ),
    "SR0733": _language(
        "`{graph}` of a build is called in a function that is traced",
        note="its plan is finished, so it cannot become part of another one, and has no second "
        "derivative",
        help="call it outside, or use the graph from its Python source",
    ),
    "SR0734": _language(
        "graph `{graph}` captures {found}, which a build cannot contain",
        note="a manifest contains names and numbers, but no data",
        help="pass it as an argument",
    ),
    "SR0735": _language(
        "graph `{graph}` returns {found}, which a build cannot contain",
        help="return arrays, sizes and numbers, in tuples, lists, dicts or structs",
    ),
    "SR0736": _language(
        "a graph that is built needs the extents, levels or format of a `{type}`",
        note="one plan serves textures of every layout, so these are known only when it runs",
        help="read the extents in a kernel, by `t.shape()`; take the derivative by a texture of "
        "the loaded graph, as in `sad.vjp(loaded.graph, t)`",
    ),
    "SR0750": _compile(
        "`--vet` cannot check `{file}`: {adapter} lacks {missing}",
        note="naga needs a device that has all features of the code",
        help="vet on another machine, or build without `--vet`; `sad.load` then vets the code on "
        "the machine that runs it",
    ),
    "SR0714": _compile(
        "bug in shaderad, stage bundle: `{program}` has a register {register} for `{name}`, which "
        "is no binding of its class",
        help="please report it together with the kernel",
    ),
    "SR0715": _compile(
        "`sad.load` would refuse the manifest of this build",
        note="{reason}",
        help="shorten long names, or build a large file in parts",
    ),
    "SR0740": _compile(
        "`{word}` is not a way to add floats atomically",
        help="write one of {known}, or `TARGET:` and one of them",
    ),
    "SR0741": _compile(
        "`{word}` is not an optional feature of a build",
        note="`half` and `double` are on if a kernel uses them",
        help="write one of {known}, or `no-` and one of them; the prefix `TARGET:` sets it for one "
        "target",
    ),
    "SR0742": _compile(
        "`{text}` is for `{target}`, which is not built",
        note="targets of this build: {targets}",
        help="name one of them, or add the target to `--target`",
    ),
    "SR0743": _compile(
        "`{text}`: `{target}` cannot add floats like that",
        note="HLSL and WGSL have no atomic add of floats, and the weak compare-exchange of WGSL "
        "and Metal could lose an add",
        help="`{target}` takes {possible}; the prefix `TARGET:` sets one target, as in "
        "`--atomics spirv:native`",
    ),
    "SR0744": _compile(
        "`{first}` and `{second}` contradict each other for `{target}`",
        help="leave one of them out",
    ),
    "SR0758": _compile(
        "the build in `{folder}` contradicts itself: `{kernel}` cannot be run",
        note="{reason}",
        help="build again; if that does not help, report it with the Python source",
    ),
    "SR0738": _language(
        "`{file}` defines `{name}` twice",
        note="the second definition would replace the first one",
        help="give one of them another name",
    ),
    "SR0739": _error(
        "bug in shaderad: {failure}",
        note="the traceback is in `{path}`",
        help="please report it together with the command",
    ),
    "SR0751": _gradient(
        "the gradient of `{name}` for {target} is wrong: {reason}",
        note="found on {adapter} with synthetic arguments; nothing was written",
        help="if the function is not smooth there, check it by `sad.gradcheck` with arguments of "
        "your own; else report it",
    ),
    "SR0757": _compile(
        "`--vet` got no verdict on `{file}`: {reason}",
        note="nothing was written",
        help="build again, or without `--vet`; `sad.load` then vets the code on the machine that "
        "runs it",
    ),
    "SR0752": _derivative(
        "the built `{name}` has no second derivative",
        note="a build has first derivatives, but no source for further ones",
        help="use `{name}` from its Python source",
    ),
    "SR0754": _compile(
        "this `print` is left out: built code prints nothing",
        note="this is a warning, and the build continues",
        help="remove the line, or print in a host that dispatches from Python",
    ),
    "SR0753": _compile(
        "the built `{kernel}` cannot be built again",
        note="`sad.load` reads compiled code, but no source that could be compiled again",
        help="build code that calls `{kernel}` from its Python source",
    ),
    "SR0746": _language(
        "`--wrt {name}` names no input of this build",
        note="inputs that hold floats: {known}",
        help="name a parameter, a field as in `mesh.colors`, or `KERNEL.PARAMETER`",
    ),
    "SR0747": _language(
        "`--wrt {name}` names nothing that has a derivative",
        note="integers and written arrays have no derivative",
        help="name inputs that hold floats",
    ),
    "SR0748": _derivative(
        "`{kernel}` was built without the derivative by `{name}`",
        note="`--wrt` left it out",
        help="differentiate by other arguments, as with `argnums`, or build again with `{name}`",
    ),
    "SR0745": _compile(
        "`{option} {found}` is out of range for `{target}`",
        note="a build respects the limits of all devices of a target",
        help="write a number from {low} to {high}, or leave `{target}` out of `--target`",
    ),
}
