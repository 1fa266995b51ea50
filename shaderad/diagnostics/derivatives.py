"""SR04: derivatives that cannot be computed correctly, and are therefore refused."""

from __future__ import annotations

from functools import partial

from shaderad.diagnostics.errors import DerivativeError, GradientError, Message

_derivative = partial(Message, DerivativeError)
_gradient = partial(Message, GradientError)

MESSAGES: dict[str, Message] = {
    "SR0410": _derivative(
        "`{transform}` of `{function}`, which writes floats to an array",
        label="derivatives inside a kernel need functions of values",
        help="return the value, and write it where the function is called",
    ),
    "SR0411": _derivative(
        "`{function}` has a forward derivative of its own but no backward one",
        note="reverse mode cannot follow from a custom forward derivative",
        help="add one with `@{function}.backward_derivative`, or use `jvp`",
    ),
    "SR0412": _derivative(
        "`{function}` has a backward derivative of its own but no forward one",
        note="forward mode cannot follow from a custom backward derivative",
        help="add one with `@{function}.forward_derivative`, or use `vjp`",
    ),
    "SR0414": _derivative(
        "`{array}` is written at indices that may repeat, so `{kernel}` has no gradient",
        label="two threads could write one element, and only one of them would win",
        help="write `{array}[sad.unique(j)] = ...` where you know that no index repeats, or "
        "accumulate into a `sad.Add` array",
    ),
    "SR0415": _derivative(
        "reverse mode through `{name}` must keep more than {bytes:byte|bytes} per thread",
        label="even a single state of each loop is larger",
        help="carry less through the loops: smaller local arrays, or fewer of them",
    ),
    "SR0416": _derivative(
        "the gradient of `{array}` (`{type}`) would be added atomically in double",
        label="read at other indices than the thread's own",
        note="no runtime has 64-bit float atomics",
        help="read it at the thread's own index only, or pass `float` elements",
    ),
    "SR0450": _derivative(
        "{what} while a derivative is being taken through it",
        note="a value that leaves the device carries no derivative",
        help="compute with the array itself, return it, or pass it as an argument of its own",
    ),
    "SR0451": _derivative(
        "a transform inside another one uses an array that the outer one does not track",
        note="gradients are accumulated in place only into arrays of the same function",
        help="pass the array to the inner function as an argument, and add gradients with `+`",
    ),
    "SR0452": _derivative(
        "`{name}` does not have the structure of the value it belongs to",
        label="found {found}, wanted {wanted}",
        help="give the same tuples, lists, dicts, dataclasses and structs, with arrays or `None` "
        "in them",
    ),
    "SR0453": _derivative(
        "the differentiable argument `{name}` is given by keyword",
        note="gradients come back by position",
        help="pass it by position, or call through a lambda that captures it as a constant",
    ),
    "SR0454": _derivative(
        "a structured NumPy array as argument of a differentiated Python function",
        note="only a kernel's annotation says which struct it stands for",
        help="make it an array first: `sad.array(data, dtype=Struct)`",
    ),
    "SR0455": _derivative(
        "`argnums` names positional arguments by number",
        label="found {found}, of {count:argument|arguments}",
        help="count from 0, and skip Index and written parameters",
    ),
    "SR0456": _derivative(
        "argument {position} holds no float, so it has no gradient",
        help="leave it out of `argnums`",
    ),
    "SR0457": _derivative(
        "a gradient needs a result of exactly one float",
        label="the result is {found}",
        help="{help}",
    ),
    "SR0458": _derivative(
        "`accumulate` has {found:entry|entries} for {wanted:argument|arguments} given by position",
        help="pass the result of an earlier call of the pullback",
    ),
    "SR0459": _derivative(
        "{primals:primal|primals}, but {tangents:tangent|tangents}",
        help="give one tangent for each primal; `None` is zero",
    ),
    "SR0460": _derivative(
        "a jacobian needs a result that is one array of floats",
        label="the result is {found}",
        help="return one array, or use `sad.vjp`",
    ),
    "SR0461": _derivative(
        "`mode` must be 'reverse' or 'forward'",
        label="found {found}",
        help="'reverse' suits few results, 'forward' few arguments",
    ),
    "SR0462": _gradient(
        "the gradient of `{name}` is wrong at {element}",
        label="the vjp says {found:.6g}, finite differences say {expected:.6g}",
        help="check the custom derivatives; at a kink choose another point, or pass `eps`",
    ),
    "SR0480": _gradient(
        "the function seems to have a jump or a kink here: `{name}` at {element}",
        label="the vjp says {found:.6g}; finite differences say {quotients}",
        note="finite differences with several step sizes disagree with each other, so they say "
        "nothing about the gradient",
        help="choose a point beside it, or let `jump_share=0.05` skip up to 5 % of the floats of "
        "each argument",
    ),
    "SR0481": _derivative(
        "with `has_aux=True` the function must return a tuple `(loss, aux)`, but it returned "
        "{found}",
        help="return both, or leave `has_aux` out",
    ),
    "SR0463": _gradient(
        "vjp and jvp by {name} disagree",
        label="<pullback(y_bar), x_dot> is {found:.6g}, <y_bar, jvp(x_dot)> is {expected:.6g}",
        help="check that the custom backward and forward derivatives are of the same function",
    ),
    "SR0465": _derivative(
        "`{name}` of gradcheck must be a number {wanted}",
        label="found {found}",
        help="leave it out for the default",
    ),
    "SR0466": _derivative(
        "transforms take a kernel or a function that calls kernels",
        label="found {found}",
        help="pass the function itself: `sad.grad(f)(x)`, not `sad.grad(f(x))`",
    ),
    "SR0467": _derivative(
        "`{name}` holds {value}, around which no finite difference can be taken",
        help="check at another point",
    ),
    "SR0468": _derivative(
        "there is no jacobian by an array of structs",
        label="argument {position} holds `{found}`",
        help="pass an array for each field, or use `sad.vjp`",
    ),
    "SR0469": _derivative(
        "a gradient cannot be added to this content of `accumulate`",
        label="found {found}, wanted {wanted}",
        help="pass the result of an earlier call of this pullback",
    ),
    "SR0464": _gradient(
        "a step of {step:.3g} does not change `{name}`",
        note="a step is relative to the argument, and at least that much",
        help="pass a larger `eps`, or none",
    ),
    "SR0417": _derivative(
        "`{kernel}_{mode}` needs {count:storage buffer|storage buffers} in one dispatch, "
        "and {host} has {limit}",
        note="they are {names}; gradients, cotangents and tangents each share one if possible",
        help="put arrays of one length into one array of structs, or split the kernel in two",
    ),
    "SR0425": _derivative(
        "`{array}` is written twice at an index that `sad.unique` promises to be written once",
        label="the same part of the same element as before, so `{kernel}` has no gradient",
        help="write each part of an element once: compute the value in a local first",
    ),
    "SR0429": _derivative(
        "a second derivative through `{function}`, whose derivative is not that of its value",
        note="`check=False` says so; the derivative of such a derivative is unknown",
        help="take first derivatives, or detach the arguments of `{function}`",
    ),
    "SR0471": _derivative(
        'reverse mode through a loop with `checkpoint="none"`',
        note="the pullback runs backward over the carries, and this loop keeps none",
        help='write `checkpoint="sqrt"`, or "all" where memory allows; `jvp` needs none',
    ),
    "SR0472": _derivative(
        "forward mode through `{function}`, whose derivative is a `custom_vjp`",
        note="a custom pullback does not define tangents",
        help="use `vjp` or `grad`; for `hvp`, the gradient of `sad.sum(sad.grad(f)(x) * v)`, or a "
        "`@sad.function` with both derivatives",
    ),
    "SR0473": _derivative(
        "`{name}` is called before its derivative is known",
        help="define it first: `{name}.defvjp(forward, backward)`",
    ),
    "SR0474": _derivative(
        "`{name}` has a pullback of its own, and captures an array that may carry derivatives",
        note="the backward function returns only cotangents of the arguments",
        help="pass the array as an argument, or capture `sad.detach(x)`",
    ),
    "SR0475": _derivative(
        "`{name}` is called inside itself, or inside a function of `{name}.defvjp`",
        note="each call traces all three functions, so this would never end",
        help="call `{name}.function`, which has no custom pullback, or write the body out",
    ),
    "SR0476": _derivative(
        "`{name}` is a tensor that requires grad or has a tangent, but PyTorch would not see its "
        "use here",
        help="call `sad.torch.wrap(f)` in place of `f`, which PyTorch differentiates, or give "
        "`{name}.detach()`",
    ),
    "SR0477": _derivative(
        "`{name}` of a wrapped function is a `{found}`",
        note="arguments may be arrays of PyTorch, JAX and NumPy, numbers, strings, textures, "
        "samplers, and tuples, lists, dicts and dataclasses of these",
        help="pass one of these, or fix the argument once by `wrap(f, name=...)` or in a function "
        "that captures it",
    ),
    "SR0482": _derivative(
        "a derivative is given for `{name}` of type `{found}`, which has none",
        note="derivatives belong to floats, arrays, textures, and containers of them",
        help="give `None`, write an int as a float, or put the arrays into a tuple, list, dict, "
        "dataclass, or struct",
    ),
    "SR0483": _derivative(
        "a texture that a transform of shaderad differentiates is an argument of a function that "
        "PyTorch or JAX differentiates",
        note="its gradient would be lost, because the result is a tensor of the other library",
        help="call the function that was wrapped, or pass a texture from outside of the transform",
    ),
    "SR0484": _derivative(
        "JAX takes only arrays here, but found a `{found}`",
        note="JAX neither traces, maps, nor differentiates textures and samplers",
        help="capture it in the function, name it in `static_argnums=`, or give it the axis `None` "
        "in `jax.vmap`; for gradients by texels, pass an array to `render.texture`",
    ),
    "SR0485": _derivative(
        "code that PyTorch traced needs a texture that no longer exists",
        help="keep the texture as long as the code, or trace it again with another texture",
    ),
    "SR0478": _derivative(
        "a derivative is requested with respect to a tensor that gets none",
        note="the tensor became a constant or a keyword of the wrapped function",
        help="give `x.detach()` (PyTorch), `jax.lax.stop_gradient(x)` (JAX), or make it a "
        "positional argument of floats",
    ),
    "SR0479": _derivative(
        "`gradcheck` cannot change the texels of `{name}`",
        note="found: {found}",
        help="give a texture of 32-bit floats, of one level or with `mips=True`",
    ),
}
