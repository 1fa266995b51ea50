"""Names that people bring along from other libraries -> what to write here instead.

Read where `shaderad.NAME` is asked for and is not there, in Python and in kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_ARRAY = (
    "arrays are parameters `sad.In[float]`, `sad.Out[float]`, `sad.Add[float]` of kernels, and "
    "`sad.array(data)` in Python"
)
_THREADS = "give the kernel one `sad.Index` parameter a dimension, and say `dim=` when it is called"
_READ_OR_WRITTEN = (
    "a kernel reads an array or writes it, never both: take `sad.In[float]` and return another "
    "as `sad.Out[float]`, or accumulate in `sad.Add[float]`"
)
_WHOLE = "whole numbers have 32 bits: write `int` or `sad.uint`"

_INSTEAD: dict[str, str] = {
    "f32 float32 float_ Float": "write `float`, which has 32 bits in kernels",
    "f64 float64 Float64": "write `sad.double`",
    "f16 float16 float16_t": "write `sad.half`",
    "i32 int32 int_ Int": "write `int`, which has 32 bits in kernels",
    "u32 uint32 UInt": "write `sad.uint`",
    "i8 i16 i64 u8 u16 u64 int8 int16 int64 uint8 uint16 uint64": _WHOLE,
    "InOut inout Inout": _READ_OR_WRITTEN,
    "Buffer StructuredBuffer RWStructuredBuffer Tensor tensor ndarray field NDArray": _ARRAY,
    "ndrange grid tid thread_id launch dispatch": _THREADS,
    "atomic_add atomicAdd InterlockedAdd": (
        "take the array as `sad.Add[float]` and write `total[j] += value`"
    ),
    "atomic_min atomicMin InterlockedMin": (
        "take the array as `sad.Min[float]` and write `low[j] = sad.min(low[j], value)`"
    ),
    "atomic_max atomicMax InterlockedMax": (
        "take the array as `sad.Max[float]` and write `high[j] = sad.max(high[j], value)`"
    ),
    "func fn": "decorate functions for kernels with `@sad.function`",
    "jit compile": "decorate what runs on the device with `@sad.kernel`",
    "Struct dataclass": "decorate the class with `@sad.struct`",
    "static constant": "write `sad.static_range` for loops, `sad.Const[int]` for parameters",
    "init": "call `sad.open_device`; without it the best device opens by itself",
    "sync synchronize": "call `synchronize` of the device, or `.numpy()` of an array",
    "Tape GradientTape backward pullback pushforward gradient": (
        "derivatives are functions of functions: `sad.grad`, `sad.value_and_grad`, `sad.vjp`"
    ),
    "jacfwd jacrev": 'write `sad.jacobian(f, mode="forward")` or `mode="reverse"`',
    "stop_gradient no_diff no_grad": "write `sad.detach(x)`",
    "custom_gradient custom_jvp": (
        "decorate the rule with `backward_derivative` or `forward_derivative` of the function"
    ),
    "Vector": "write `sad.float3` and the like: `float`, `int`, `uint`, `bool`, `half`, `double` "
    "with 2 to 4",
    "Matrix": "write `sad.float3x3` and the like: `float`, `half`, `double` with 2 to 4 rows and "
    "columns",
    "uniform Uniform": "a plain parameter is one, such as `exposure: float`",
    "template": "write `sad.Const[int]` for constants; arrays and structs need their types",
    "clip": "write `sad.clamp(x, low, high)`",
    "mix": "write `sad.lerp(a, b, t)`",
    "fract": "write `sad.frac`",
    "inversesqrt": "write `sad.rsqrt`",
    "arcsin": "write `sad.asin`",
    "arccos": "write `sad.acos`",
    "arctan": "write `sad.atan`",
    "arctan2": "write `sad.atan2`",
    "norm": "write `sad.length`",
    "fma": "write `sad.mad`",
    "inv": "write `sad.inverse`",
    "det": "write `sad.determinant`",
    "rand random": "write `sad.uniform01(sad.pcg(seed))`, with a seed of its own for each thread",
}


def _renamed_types() -> Iterator[tuple[str, str]]:
    """GLSL's and Warp's vectors and matrices."""
    scalars = {"": "float", "i": "int", "u": "uint", "b": "bool", "d": "double", "h": "half"}
    for count in (2, 3, 4):
        for letter, scalar in scalars.items():
            ours = f"write `sad.{scalar}{count}`"
            yield f"{letter}vec{count}", ours
            yield f"vec{count}{letter}", ours
        ours = f"write `sad.float{count}x{count}`; matrices are row-major"
        for name in (f"mat{count}", f"mat{count}{count}", f"mat{count}x{count}"):
            yield name, ours


REMEDY_BY_NAME: dict[str, str] = {
    **{name: remedy for names, remedy in _INSTEAD.items() for name in names.split()},
    **dict(_renamed_types()),
}


def remedy_for(name: str, known: Iterable[str]) -> str:
    """What to write for a name that is not there: its counterpart, or what is spelt like it.

    Args:
        name: What was asked for.
        known: What is there.

    Returns:
        A line of help; empty where nothing comes near.
    """
    if name in REMEDY_BY_NAME:
        return REMEDY_BY_NAME[name]
    import difflib

    close = difflib.get_close_matches(name, sorted(known), 2, cutoff=0.75)
    return f"did you mean {' or '.join(f'`{each}`' for each in close)}?" if close else ""
