"""SR05: programs that a target or the shader compiler refuses, and failures of the compiler."""

from __future__ import annotations

from shaderad.diagnostics.errors import CompileError, Message

MESSAGES: dict[str, Message] = {
    "SR0501": Message(
        CompileError,
        "the Slang compiler refuses `{entry}` for {target}: {message}",
        note="{number}, in the generated text:\n{excerpt}",
        help="if this line is valid in a kernel, it is a bug in shaderad: report it",
    ),
    "SR0502": Message(
        CompileError,
        "the Slang compiler died on `{entry}` for {target}: {cause}",
        note="this is a bug in shaderad or in Slang, never in your kernel; your process is unharmed"
        "\nthe generated module is kept in {path}\n{stderr}",
        help="report it with that file attached",
    ),
    "SR0503": Message(
        CompileError,
        "{compiler} {excess} over `{entry}` for {target} and was stopped",
        note="it was given {size} bytes of Slang, which are kept in {path}",
        help="unroll less: use `sad.range` where `sad.static_range` has many iterations\n"
        "split a kernel that does much in two; if it is small, report it with that file attached",
    ),
    "SR0504": Message(
        CompileError,
        "there is no target `{target}`",
        note="targets that work: {targets}",
        help="for Vulkan and OpenGL 4.6 use `spirv` (GLSL lacks what the derivatives need), "
        "for Direct3D `hlsl`",
    ),
    "SR0505": Message(
        CompileError,
        "the Slang compiler is not installed",
        note="it comes with the package `slangpy`, which this Python cannot find",
        help="run `pip install slangpy`, or load what `shaderad build` wrote with `sad.load`",
    ),
    "SR0506": Message(
        CompileError,
        "the process that compiles could not be started: {reason}",
        note="the compiler runs in a Python process of its own, since it can crash",
        help="set the environment variable SHADERAD_PYTHON to a Python that can import shaderad",
    ),
    "SR0507": Message(
        CompileError,
        "`{kernel}_{mode}` needs {count:storage buffer|storage buffers} in one dispatch, "
        "and {host} has {limit}",
        note='they are {names}; `report` collects bad indices, and `bounds="ignore"` removes it',
        help="put arrays of one length into one array of structs, or split the kernel in two",
    ),
    "SR0508": Message(
        CompileError,
        "the Slang compiler was killed over `{entry}` for {target}: {cause}",
        note="twice in a row, and not by shaderad: usually because memory ran out"
        "\nit was given {size} bytes of Slang\n{stderr}",
        help="free memory, or raise the memory limit of this container, and call again\n"
        "unroll less: use `sad.range` where `sad.static_range` has many iterations",
    ),
    "SR0509": Message(
        CompileError,
        "SHADERAD_CACHE names a folder that is not safe: {folder} {reason}",
        note="code in the cache is executed",
        help="name a folder that does not exist yet, or one that nobody else can write to",
    ),
}
