"""Names of other libraries -> their counterparts in shaderad.

Used in the error for an unknown `shaderad.NAME`, in Python and in kernels; the tables of
docs/coming_from.md are generated from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_ARRAY = (
    "arrays are parameters `sad.In[float]`, `sad.Out[float]`, `sad.Add[float]` of kernels, and "
    "`sad.array(data)` in Python"
)
_THREADS = "give the kernel one `sad.Index` parameter per dimension, and pass `dim=` in its calls"
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
    "Buffer StructuredBuffer RWStructuredBuffer Tensor ndarray field NDArray root": _ARRAY,
    "tensor asarray from_numpy from_torch device_put": "write `sad.array(data)`",
    "to_numpy asnumpy device_get": "write `x.numpy()` of an array",
    "ndrange grid tid thread_id thread_idx threadIdx launch dispatch SV_DispatchThreadID "
    "loop_config": _THREADS,
    "block_idx blockIdx block_dim blockDim group_id local_id SV_GroupID SV_GroupThreadID "
    "SV_GroupIndex local_index group_index": (
        "kernels do not know the groups they run in: a thread knows only its `sad.Index`"
    ),
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
    "jit compile": "decorate kernels with `@sad.kernel`, and functions of arrays with `@sad.graph`",
    "hessian": "write `sad.jacobian(sad.grad(f))(x)`, or `sad.hvp(f, (x,), (v,))` for its product",
    "grad_and_value": "write `sad.value_and_grad(f)`",
    "linearize": "write `sad.jvp(f, (x,), (x_dot,))`",
    "tree_map tree tree_util pytree": (
        "transforms and optimisers take tuples, lists, dicts, dataclasses and structs as they are; "
        "Python's comprehensions change their leaves"
    ),
    "linalg solve cholesky eigh svd lstsq": (
        "small matrices are elements, with `sad.inverse` and `sad.determinant`; solve large "
        "systems by iterations, such as conjugate gradients in `sad.fori_loop`"
    ),
    "numpy jnp np": "the functions of arrays are in `sad` itself, such as `sad.sin`",
    "config enable_x64": "declare 64 bits where you need them: `sad.double`",
    "Struct dataclass": "decorate the class with `@sad.struct`",
    "static constant": "write `sad.static_range` for loops, `sad.Const[int]` for parameters",
    "init": "call `sad.open_device`; without it the best device opens by itself",
    "sync synchronize": "call `synchronize` of the device, or `.numpy()` of an array",
    "Tape GradientTape backward pullback pushforward gradient autograd needs_grad": (
        "derivatives are functions of functions: `sad.grad`, `sad.value_and_grad`, `sad.vjp`"
    ),
    "jacfwd jacrev": 'write `sad.jacobian(f, mode="forward")` or `mode="reverse"`',
    "stop_gradient stop_grad no_diff no_grad": "write `sad.detach(x)`",
    "custom_gradient custom_jvp func_grad grad_replaced BackwardDerivative ForwardDerivative": (
        "decorate the rule with `backward_derivative` or `forward_derivative` of the function"
    ),
    "Vector": "write `sad.float3` and the like: `float`, `int`, `uint`, `bool`, `half`, `double` "
    "with 2 to 4",
    "Matrix": "write `sad.float3x3` and the like: `float`, `half`, `double` with 2 to 4 rows and "
    "columns",
    "uniform Uniform ConstantBuffer": "use a plain parameter, such as `exposure: float`",
    "diffPair": "write `sad.diff_pair(x, x_dot)`, and read `.p` and `.d` of it",
    "IDifferentiable": "structs that hold floats are differentiable by themselves",
    "MaxIters": "leave it out: loops need no limit; `sad.range(n, limit=...)` sets one",
    "ForceUnroll unroll": "write `sad.static_range(n)`",
    "groupshared shared Shared shared_array SharedArray shared_memory": (
        "kernels have no memory that threads share: sum in `sad.Add[float]`, or with `sad.sum` and "
        "`sad.scan` of arrays, which use group memory"
    ),
    "wave_active_sum WaveActiveSum subgroup_add subgroupAdd simd_sum warp_reduce warp_sum "
    "block_sum block_reduce tile_sum WavePrefixSum": (
        "write `total[j] += value` to an `sad.Add[float]`, or `sad.sum` and `sad.scan` of arrays: "
        "both add within waves first if the device has them"
    ),
    "ballot subgroupBallot WaveActiveBallot WaveActiveCountBits warp_ballot": (
        "count with `total[j] += 1` in an `sad.Add[int]`; for arrays, write "
        "`sad.sum(sad.cast(mask, int))`, or `sad.compact(x, mask)` to select"
    ),
    "shuffle shfl shfl_sync shfl_down WaveReadLaneAt warp_shuffle": (
        "threads do not read each other's values: write them to a `sad.Out`, and read that in a "
        "second kernel"
    ),
    "wave_size WaveGetLaneCount WaveGetLaneIndex lane_id warp_size": (
        "kernels do not know the waves they run in: a thread knows only its `sad.Index`"
    ),
    "atomic_cas atomicCAS compare_exchange InterlockedCompareExchange InterlockedCompareStore": (
        "arrays that several threads write are `sad.Add`, `sad.Min` and `sad.Max`; `sad.scatter`, "
        "`sad.segment_reduce` and `sad.sort` of arrays replace most other uses"
    ),
    "atomic_exch atomicExch InterlockedExchange atomic_or InterlockedOr atomic_and "
    "InterlockedAnd atomic_xor InterlockedXor": (
        "arrays that several threads write are `sad.Add`, `sad.Min` and `sad.Max`"
    ),
    "SamplerState": (
        "take `s: sad.Sampler`, which `sad.sampler` makes, beside `t: sad.Texture2D[float4]`"
    ),
    "template": "write `sad.Const[int]` for constants; arrays and structs need their types",
    "mix": "write `sad.lerp(a, b, t)`",
    "fract": "write `sad.frac`",
    "inversesqrt": "write `sad.rsqrt`",
    "arcsin": "write `sad.asin`",
    "arccos": "write `sad.acos`",
    "arctan": "write `sad.atan`",
    "arctan2": "write `sad.atan2`",
    "fma": "write `sad.mad`",
    "inv": "write `sad.inverse`",
    "det": "write `sad.determinant`",
    "leaky_relu": "write `sad.select(x > 0.0, x, 0.01 * x)`; for arrays, `sad.where`",
    "expit": "write `sad.sigmoid(x)`",
    "swish": "write `sad.silu(x)`",
    "log_sigmoid logsigmoid": "write `-sad.softplus(-x)`",
    "mse_loss": "write `sad.mean((a - b) * (a - b))`",
    "l1_loss": "write `sad.mean(sad.abs(a - b))`",
    "cross_entropy nll_loss": (
        "write `-sad.mean(sad.take_along_axis(sad.log_softmax(x), index[:, None]))`"
    ),
    "inner vdot": "write `sad.sum(a * b)`",
    "outer": "write `a[:, None] * b[None, :]`",
    "meshgrid mgrid": "write `sad.iota(n)[:, None]` and `sad.iota(n)[None, :]`: they broadcast",
    "empty empty_like": "write `sad.zeros(shape)` or `sad.zeros_like(x)`",
    "replicate": "write `sad.full((n,), value)`",
    "tabulate": "write `sad.map(f, sad.iota(n))`",
    "indices": "write `sad.iota(len(x))`",
    "zip unzip": "functions of arrays take several: `sad.map(f, x, y)`",
    "reduce_comm": "write `sad.reduce(op, x)`",
    "cummax": "write `sad.scan(sad.max, x)`",
    "cummin": "write `sad.scan(sad.min, x)`",
    "squeeze unsqueeze expand_dims newaxis": (
        "write `x[:, None]` for a new axis, `x[:, 0]` for one less"
    ),
    "flatten unflatten ravel view": "write `sad.reshape(x, -1)`, or the shape in place of -1",
    "permute swapaxes moveaxis": "write `sad.transpose(x, axes)`",
    "flip flipud fliplr": "write `sad.reverse(x, axis=0)`",
    "concat cat append": "write `sad.concatenate([a, b])`",
    "vstack hstack dstack": "write `sad.concatenate([a, b], axis=0)`, or `sad.stack`",
    "split chunk": "write slices: `x[:n]`, `x[n:]`",
    "tile repeat expand": "write `sad.broadcast_to(x[:, None], (n, count))`, and `sad.reshape` it",
    "pad": "write `sad.concatenate([sad.zeros(1), x, sad.zeros(1)])`",
    "take index_select": "write `x[index]`",
    "nonzero masked_select compress filter partition": "write `sad.compact(x, mask)`",
    "index_add segment_sum scatter_reduce bincount hist reduce_by_index": (
        "write `sad.scatter_add(base, index, values)`, or `sad.segment_reduce` for other operators"
    ),
    "power": "write `x ** y`",
    "square": "write `x * x`",
    "fmax": "write `sad.maximum(a, b)`",
    "fmin": "write `sad.minimum(a, b)`",
    "amax": "write `sad.max(x, axis=0)`",
    "amin": "write `sad.min(x, axis=0)`",
    "absolute fabs": "write `sad.abs`",
    "negative neg": "write `-x`",
    "subtract sub": "write `a - b`",
    "divide true_divide div": "write `a / b`",
    "mod remainder": "write `a % b`, which has the sign of b; `sad.fmod` has that of a",
    "floor_divide": "write `a // b`",
    "multiply": "write `a * b`, or `sad.mul`",
    "allclose isclose": "write `sad.all(sad.abs(a - b) < tolerance)`",
    "array_equal": "write `sad.all(a == b)`",
    "deg2rad": "write `sad.radians`",
    "rad2deg": "write `sad.degrees`",
    "pmap": "write `sad.vmap(f)`, on one device",
    "cond switch": "write `sad.where(condition, a, b)`; in kernels, `if`",
    "while_ for_ lax": (
        "write `sad.fori_loop`, `sad.while_loop`, `sad.loop`; in kernels, Python's loops"
    ),
    "remat": "write `sad.checkpoint(f)`",
    "block_until_ready": "call `synchronize` of the device, or `.numpy()` of an array",
    "nn functional": "layers are functions of arrays: `sad.relu(x @ w + b)`",
    "randn normal gauss": (
        "write `sad.random.normal(key, shape)`; in kernels, with two random numbers u and v, "
        "`sad.sqrt(-2.0 * sad.log(1.0 - u)) * sad.cos(6.2831853 * v)`"
    ),
    "manual_seed seed PRNGKey": (
        "random numbers come from a key that you pass, `sad.random.key(seed)`; in kernels, from a "
        "seed, `sad.pcg(seed)`"
    ),
    "randperm shuffle": "write `sad.random.permutation(key, x)`",
    "barrier syncthreads sync_threads block_sync GroupMemoryBarrierWithGroupSync": (
        "threads of a kernel do not wait for each other: write two kernels"
    ),
    "rand randf rand_init": (
        "write `sad.random.uniform(key, shape)`; in kernels, `sad.uniform01(sad.pcg(seed))` with "
        "one seed per thread"
    ),
}


def _renamed_types() -> Iterator[tuple[str, str]]:
    """The vector and matrix names of GLSL and Warp."""
    scalars = {"": "float", "i": "int", "u": "uint", "b": "bool", "d": "double", "h": "half"}
    for count in (2, 3, 4):
        for letter, scalar in scalars.items():
            ours = f"write `sad.{scalar}{count}`"
            yield f"{letter}vec{count}", ours
            yield f"vec{count}{letter}", ours
        ours = f"write `sad.float{count}x{count}`; matrices are row-major"
        for name in (f"mat{count}", f"mat{count}{count}", f"mat{count}x{count}"):
            yield name, ours


LIBRARIES = {
    "Slang": "StructuredBuffer ConstantBuffer SV_DispatchThreadID InterlockedAdd InterlockedMin "
    "InterlockedCompareExchange WaveActiveSum WaveActiveBallot groupshared SV_GroupIndex "
    "GroupMemoryBarrierWithGroupSync SamplerState inout IDifferentiable diffPair "
    "BackwardDerivative ForwardDerivative no_diff MaxIters ForceUnroll",
    "Warp": "tid atomic_cas shared_array launch func func_grad constant Tape atomic_add "
    "atomic_min atomic_max vec3 mat33 float32 float64 float16 int32 uint32 int64 "
    "empty from_numpy from_torch init synchronize rand_init randf",
    "Taichi": "field ndarray root Vector Matrix template func dataclass static ndrange loop_config "
    "atomic_add atomic_min f32 f64 f16 i32 u32 i64 needs_grad Tape stop_grad "
    "grad_replaced init sync to_numpy mix",
    "Futhark": "replicate tabulate indices zip unzip filter partition reduce_comm reduce_by_index "
    "hist flatten unflatten concat f32 f64 f16 i32 u32 i64",
    "NumPy": "asarray empty_like meshgrid newaxis moveaxis flip vstack split tile repeat pad take "
    "nonzero power square fmax amax absolute arctan2 allclose deg2rad bincount outer linalg",
    "JAX": "jit device_put block_until_ready cond switch lax jacfwd jacrev hessian linearize "
    "custom_jvp stop_gradient remat pmap tree_map PRNGKey segment_sum expit config",
    "PyTorch": "Tensor tensor from_numpy nn swish logsigmoid mse_loss cat unsqueeze "
    "permute flip take index_add masked_select "
    "no_grad autograd jacrev compile manual_seed rand randn randperm",
}
"""The names of each library that the documentation lists."""

REMEDY_BY_NAME: dict[str, str] = {
    **{name: remedy for names, remedy in _INSTEAD.items() for name in names.split()},
    **dict(_renamed_types()),
}


ATTRIBUTES: dict[str, str] = {
    "mT": "write `sad.transpose(x)`",
    "x y z w xy xyz": (
        "make vectors of the last axis: `sad.float2(a[:, 0], a[:, 1])`, or "
        "`sad.array(x, dtype=sad.float2)`"
    ),
    "to cpu cuda": "write `x.numpy()`; arrays stay on the device that made them",
    "float int bool half double long type": "write `sad.cast(x, float)`, or another type",
    "detach": "write `sad.detach(x)`",
    "tolist": "write `x.numpy().tolist()`",
    "copy clone": "an array never changes, so no copy is needed",
    "at add_ mul_ fill fill_ copy_ zero_": (
        "an array never changes: `sad.scatter`, `sad.scatter_add` and `sad.where` make a new one"
    ),
    "grad requires_grad requires_grad_ backward": (
        "derivatives are functions of functions: `sad.grad`, `sad.value_and_grad`, `sad.vjp`"
    ),
    "nbytes itemsize": "write `x.numpy().nbytes`",
}
"""Attributes of arrays of other libraries that are not functions of `sad`."""

_REMEDY_BY_ATTRIBUTE = {
    name: remedy for names, remedy in ATTRIBUTES.items() for name in names.split()
}


IN_KERNELS: dict[str, str] = {
    "norm": "write `sad.length(v)` of a vector",
    "where": "write `a if condition else b`, or `sad.select(condition, a, b)`",
    "cast": "write the type: `float(x)`, `int(x)`, `sad.half(x)`",
}
"""The counterparts in kernels of functions of arrays."""


def remedy_for_array_function(name: str) -> str:
    """The help for a function of arrays that a kernel calls."""
    return IN_KERNELS.get(name, "it takes whole arrays: call it outside of the kernel")


def remedy_for_attribute(name: str, functions: Iterable[str]) -> str:
    """The help for an attribute that arrays do not have.

    Args:
        name: The attribute.
        functions: The names of `sad` that can be called on arrays.

    Returns:
        A line of help; empty if there is no counterpart.
    """
    if name in _REMEDY_BY_ATTRIBUTE:
        return _REMEDY_BY_ATTRIBUTE[name]
    if name in functions:
        return f"call the function `sad.{name}` on it"
    return REMEDY_BY_NAME.get(name, "")


def remedy_for(name: str, names: Iterable[str]) -> str:
    """The help for an unknown name: its counterpart, or a similar name.

    Args:
        name: The unknown name.
        names: All existing names.

    Returns:
        A line of help; empty if there is neither.
    """
    if name in REMEDY_BY_NAME:
        return REMEDY_BY_NAME[name]
    import difflib

    close = difflib.get_close_matches(name, sorted(names), 2, cutoff=0.75)
    return f"did you mean {' or '.join(f'`{each}`' for each in close)}?" if close else ""
