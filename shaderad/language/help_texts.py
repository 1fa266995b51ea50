"""The text of ``help(sad.NAME)`` for types, annotations, and forms of the kernel language.

Each text says what the name means, its shapes, its errors, and ends with an example that runs.
"""

from __future__ import annotations

import textwrap

from shaderad.ir import types as ir

_ARRAY = """A parameter of a kernel: an array that the kernel {verb}.

{about}

An index out of range {beyond}, and raises a `BoundsError` with the Python line at the next
synchronisation. SR0301 if `T` is no type of elements.
"""
_TEXTURE = """A parameter of a kernel: a texture with {axes}, which the hardware filters.

``sad.{name}[T]`` has texels of type `T`: ``float``, ``float2``, or ``float4``. `sad.texture` makes
textures. ``t.sample(s, {place})`` takes a sampler and {coordinates}. Gradients
reach the texels and the coordinates, in graphs, loops, `sad.vmap`, and higher derivatives, too.

Example::

    @sad.kernel
    def look(i: sad.Index, t: sad.{name}[sad.float4], s: sad.Sampler, y: sad.Out[sad.float4]):
        y[i] = t.sample_level(s, {example}, 0.0)
    image = sad.texture(np.ones({shape}, np.float32){dimension})
    print(look(image, sad.sampler(), dim=1).numpy())
"""
_SLOPE = """    @sad.function
    def square(x: float) -> float:
        return x * x
    @sad.kernel
    def slope(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = sad.fwd_diff(square)(sad.diff_pair(x[i], 1.0)).d
    print(slope([3.0]).numpy())
"""


def _filled(paragraph: str) -> str:
    return textwrap.fill(paragraph, 96)


def _texture(
    name: str, axes: str, place: str, coordinates: str, shape: str, dimension: str, example: str
) -> str:
    return _TEXTURE.format(name=name, axes=axes, place=place, coordinates=coordinates,
                           shape=shape, dimension=dimension, example=example)  # fmt: skip


def _array(name: str, verb: str, more: str, beyond: str, example: str) -> str:
    about = (
        f"``sad.{name}[T]`` has one axis, ``sad.{name}[T, 2]`` has two. `T` is ``float``, ``int``, "
        f"``bool``, a type of `sad`, or a struct. {more}"
    )
    text = _ARRAY.format(verb=verb, about=_filled(about), beyond=beyond)
    return f"{text}\nExample::\n\n{example}"


ANNOTATIONS: dict[str, str] = {
    "In": _array(
        "In", "reads", "Any element may be read, and none is written.", "reads 0",
        """    @sad.kernel
    def doubled(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = 2.0 * x[i]
    print(doubled([1.0, 2.0]).numpy())
""",
    ),
    "Out": _array(
        "Out", "writes and the call returns",
        "Pass its shape as ``shapes={name: shape}`` if it differs from that of the launch. "
        "Elements that no thread writes are 0.", "writes nothing",
        """    @sad.kernel
    def squares(i: sad.Index, y: sad.Out[int]):
        y[i] = i * i
    print(squares(dim=3).numpy())
""",
    ),
    "Add": _array(
        "Add", "adds to and the call returns",
        "Any thread may add to any element with ``+=``: additions are atomic. Elements start at 0.",
        "adds nothing",
        """    @sad.kernel
    def count(i: sad.Index, bin: sad.In[int], n: sad.Add[int]):
        n[bin[i]] += 1
    print(count([0, 2, 2], shapes={"n": 3}).numpy())
""",
    ),
    "Min": _array(
        "Min", "takes minima in and the call returns",
        "Write ``y[j] = sad.min(y[j], value)``: any thread may do so, atomically. Elements start "
        "at the largest value. The first thread that attains the minimum takes the derivative.",
        "writes nothing",
        """    @sad.kernel
    def lowest(i: sad.Index, x: sad.In[float], y: sad.Min[float]):
        y[0] = sad.min(y[0], x[i])
    print(lowest([3.0, 1.0], shapes={"y": 1}).numpy())
""",
    ),
    "Max": _array(
        "Max", "takes maxima in and the call returns",
        "Write ``y[j] = sad.max(y[j], value)``: any thread may do so, atomically. Elements start "
        "at the smallest value. The first thread that attains the maximum takes the derivative.",
        "writes nothing",
        """    @sad.kernel
    def highest(i: sad.Index, x: sad.In[float], y: sad.Max[float]):
        y[0] = sad.max(y[0], x[i])
    print(highest([3.0, 1.0], shapes={"y": 1}).numpy())
""",
    ),
    "Index": """The index of the thread along one axis of the launch, an int from 0.

A kernel has up to three, in front of its other parameters (SR0225). The launch is as long as the
arrays that are read or written at these indices, or as ``dim=`` says.

Example::

    @sad.kernel
    def grid(i: sad.Index, j: sad.Index, y: sad.Out[float, 2]):
        y[i, j] = 10.0 * i + j
    print(grid(dim=(2, 3)).numpy())
""",
    "Const": """A parameter of a kernel that is known while it compiles.

``sad.Const[int]``, ``sad.Const[float]``, ``sad.Const[bool]``, or ``sad.Const[E]`` of an enum class.
Each value compiles a kernel of its own. It may bound a `static_range` and size a `LocalArray`. No
gradient is taken by it. SR0228 for what is no member of the enum.

Example::

    @sad.kernel
    def power(i: sad.Index, x: sad.In[float], n: sad.Const[int], y: sad.Out[float]):
        y[i] = x[i] ** n
    print(power([2.0, 3.0], 3).numpy())
""",
    "LocalArray": """A fixed-size array of one thread: ``sad.LocalArray[T, n]``.

A call makes one, filled with zeros: ``a = sad.LocalArray[float, 4]()``. It may be a parameter or
the result of a ``@sad.function``, a field of a struct, and an element of an array. Gradients are
taken through its elements. An index out of range reads 0 and writes nothing.

Example::

    @sad.kernel
    def reversed_row(i: sad.Index, x: sad.In[float, 2], y: sad.Out[float, 2]):
        row = sad.LocalArray[float, 3]()
        for k in sad.static_range(3):
            row[k] = x[i, 2 - k]
        for k in sad.static_range(3):
            y[i, k] = row[k]
    print(reversed_row([[1.0, 2.0, 3.0]], shapes={"y": (1, 3)}).numpy())
""",
    "DifferentialPair": """A value with its tangent: ``sad.DifferentialPair[T]``.

The parameter type of a ``forward_derivative`` and of a ``backward_derivative``. ``pair.p`` is the
value and ``pair.d`` the tangent, or after `bwd_diff` the gradient. `sad.diff_pair` makes one.

Example::

    @sad.function
    def square(x: float) -> float:
        return x * x
    @square.forward_derivative
    def square_forward(x: sad.DifferentialPair[float]) -> sad.DifferentialPair[float]:
        return sad.diff_pair(x.p * x.p, 2.0 * x.p * x.d)
    print(sad.jvp(lambda x: sad.map(square, x), [3.0], [1.0])[1].numpy())
""",
    "Pointer": """An array behind a pointer in a struct: ``sad.Pointer[T]``.

A field of a struct, of which kernels read elements as of an ``In``. `sad.pointer` makes one from an
array. Gradients come back in the same structure.

Example::

    @sad.struct
    class Curve:
        heights: sad.Pointer[float]
    @sad.kernel
    def first(i: sad.Index, curves: sad.In[Curve], y: sad.Out[float]):
        y[i] = curves[i].heights[0]
    print(first([Curve(sad.pointer([3.0, 4.0]))], dim=1).numpy())
""",
    "Sampler": """A parameter of a kernel: how a texture is filtered, as `sad.sampler` makes it.

It holds the filter, the wrap mode of each axis, and how levels are chosen. It has no gradient.

Example::

    @sad.kernel
    def look(i: sad.Index, t: sad.Texture2D[float], s: sad.Sampler, y: sad.Out[float]):
        y[i] = t.sample_level(s, sad.float2(0.5), 0.0)
    image = sad.texture(np.ones((4, 4), np.float32))
    print(look(image, sad.sampler(filter="nearest"), dim=1).numpy())
""",
    "Texture1D": _texture("Texture1D", "one axis", "x", "a coordinate from 0 to 1", "(4, 4)",
                          ', dimension="1d"', "0.5"),
    "Texture2D": _texture("Texture2D", "two axes", "uv", "coordinates from 0 to 1", "(4, 4, 4)",
                          "",
                          "sad.float2(0.5)"),
    "Texture2DArray": _texture("Texture2DArray", "two axes and layers", "uvw",
                               "coordinates from 0 to 1 and a layer", "(3, 4, 4, 4)",
                               ', dimension="2d-array"', "sad.float3(0.5, 0.5, 2.0)"),
    "Texture3D": _texture("Texture3D", "three axes", "uvw", "coordinates from 0 to 1",
                          "(4, 4, 4, 4)",
                          ', dimension="3d"', "sad.float3(0.5)"),
    "TextureCube": _texture("TextureCube", "six faces", "direction", "a direction of any length",
                            "(6, 4, 4, 4)", ', dimension="cube"', "sad.float3(1.0, 0.0, 0.0)"),
}  # fmt: skip
"""By public name."""

FORMS: dict[str, str] = {
    "range": """``for k in sad.range(n)``: a loop of a kernel whose count is known at run time.

``sad.range(start, stop, step)`` as in Python; a step of 0 is refused (SR0223). With
``sad.range(n, limit=64)`` the loop stops after 64 iterations and a `LimitError` (SR0661) says so at
the next synchronisation; the limit saves time in reverse mode. Plain ``range`` means the same,
without a limit.

Example::

    @sad.kernel
    def total(i: sad.Index, n: int, y: sad.Out[int]):
        for k in sad.range(n, limit=64):
            y[i] += k
    print(total(5, dim=1).numpy())
""",
    "static_range": """``for k in sad.static_range(n)``: a loop that is unrolled while compiling.

Its bounds are numbers, `Const` parameters, or indices of outer static loops (SR0224). So is `k`: it
may index a captured tuple, or be an exponent.

Example::

    @sad.kernel
    def polynomial(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        for k in sad.static_range(3):
            y[i] += x[i] ** k
    print(polynomial([2.0]).numpy())
""",
    "limit": """``while sad.limit(condition, n)``: a loop of at most `n` iterations.

If the condition still holds after `n` iterations, the loop ends, and a `LimitError` (SR0661) is
raised at the next synchronisation. `n` is a positive whole number known while compiling (SR0217).

Example::

    @sad.kernel
    def halvings(i: sad.Index, x: sad.In[float], y: sad.Out[int]):
        left = x[i]
        while sad.limit(left > 1.0, 32):
            left = 0.5 * left
            y[i] += 1
    print(halvings([8.0]).numpy())
""",
    "unique": """``y[sad.unique(j)] = value``: promises that no other thread writes element `j`.

A kernel may then write an `Out` array at an index that is computed, and gradients are exact. If two
threads write one element, the promise is broken, and a `GradientError` says so where it is found.
It does not remove duplicates, as NumPy's ``unique`` does.

Example::

    @sad.kernel
    def permuted(i: sad.Index, x: sad.In[float], order: sad.In[int], y: sad.Out[float]):
        y[sad.unique(order[i])] = x[i]
    print(permuted([5.0, 6.0], [1, 0]).numpy())
""",
    "detach": """``sad.detach(x)``: `x` as a constant to derivatives, in kernels and of arrays.

The value is that of `x`, of any type. No gradient flows back, and its tangent is 0.

Example::

    print(sad.grad(lambda x: sad.sum(x * sad.detach(x)))([3.0]).numpy())
""",
    "diff_pair": """``sad.diff_pair(x, x_dot)``: a value with its tangent, in kernels.

Both have one type that holds floats; of a struct the ints are left out. It is what `fwd_diff` and
`bwd_diff` of a function take, and what a ``forward_derivative`` returns. Read ``.p`` and ``.d``.

Example::

"""
    + _SLOPE,
    "fwd_diff": """``sad.fwd_diff(f)(pair, ...)``: the value and tangent of a function, in kernels.

`f` is a ``@sad.function``; each argument that holds floats is a `diff_pair`. The result is a pair:
``.p`` is the value, ``.d`` the derivative along the tangents. Arrays that `f` reads are constants.

Example::

"""
    + _SLOPE,
    "bwd_diff": """``sad.bwd_diff(f)(pair, ..., result_bar)``: gradients of a function, in kernels.

`f` is a ``@sad.function``; each argument that holds floats is a `diff_pair` in a variable, whose
``.d`` gets the gradient. The last argument is the cotangent of the result. Arrays that `f` reads
are constants.

Example::

    @sad.function
    def square(x: float) -> float:
        return x * x
    @sad.kernel
    def slope(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        pair = sad.diff_pair(x[i], 0.0)
        sad.bwd_diff(square)(pair, 1.0)
        y[i] = pair.d
    print(slope([3.0]).numpy())
""",
    "bitcast": """``sad.bitcast(T, x)``: the bits of `x` as a `T`, in kernels.

`T` and the type of `x` have 32 bits each: ``float``, ``int``, ``sad.uint``, or vectors of them of
equal length. The derivative is 0.

Example::

    @sad.kernel
    def bits(i: sad.Index, x: sad.In[float], y: sad.Out[sad.uint]):
        y[i] = sad.bitcast(sad.uint, x[i])
    print(hex(int(bits([1.0]).numpy()[0])))
""",
}
"""By public name."""

_KINDS = {
    ir.Kind.FLOAT: "32-bit floats",
    ir.Kind.HALF: "16-bit floats",
    ir.Kind.DOUBLE: "64-bit floats",
    ir.Kind.INT: "32-bit ints, which wrap",
    ir.Kind.UINT: "32-bit ints without sign, which wrap",
    ir.Kind.BOOL: "bools",
}
_COUNTS = {2: "two", 3: "three", 4: "four"}
_NEEDS = {
    ir.Kind.HALF: " Devices without 16-bit floats refuse it.",
    ir.Kind.DOUBLE: " Devices without 64-bit floats refuse it, as do WGSL and Metal (SR0711).",
}


def of_type(t: ir.Scalar | ir.Vector | ir.Matrix) -> str:
    """The text of a type object."""
    scalar = ir.scalar_of(t)
    assert scalar is not None
    kind = _KINDS[scalar.kind]
    needs = _NEEDS.get(scalar.kind, "")
    uses = "It is an annotation of kernels and graphs, a ``dtype``, and a constructor."
    if isinstance(t, ir.Scalar):
        head = f"A number: {kind.replace('floats', 'float').replace('ints', 'int')}."
        body = f"``sad.{t}(x)`` converts; floats to ints round towards 0 and saturate, NaN gives 0."
        example = f"sad.{t}(3)"
    elif isinstance(t, ir.Vector):
        head = f"A vector of {_COUNTS[t.count]} {kind}."
        body = (
            f"``sad.{t}(...)`` takes {t.count} numbers, shorter vectors that add up to as many, or "
            "one number for all components. ``v.x`` and ``v.yx`` select components, and so does "
            "``v[k]``. Operators work by component. NumPy shows an array of them with a last axis "
            f"of {t.count}. SR0313 for another number of parts."
        )
        values = ["True", "False", "True", "True"] if scalar.kind is ir.Kind.BOOL else list("1234")
        example = f"sad.{t}({', '.join(values[: t.count])})"
    else:
        rows, columns = _COUNTS[t.row_count], _COUNTS[t.column_count]
        head = f"A matrix of {rows} rows and {columns} columns of {kind}."
        count = t.row_count * t.column_count
        square = ", and ``.identity()`` the identity" if t.row_count == t.column_count else ""
        body = (
            f"``sad.{t}(...)`` takes {count} numbers in row-major order, or {t.row_count} "
            f"rows{square}. ``m[r]`` is a row and ``m[r][c]`` an element. ``a @ b`` is the matrix "
            "product, and ``a * b`` works by element. NumPy shows an array of them with last axes "
            f"of {t.row_count} and {t.column_count}. SR0313 for another number of parts."
        )
        example = f"sad.{t}({', '.join(str(k) for k in range(count))})"
    shown = f"    value = {example}\n    print(value, sad.array([value], dtype=sad.{t}).shape)\n"
    return f"{head}{needs}\n\n{_filled(f'{uses} {body}')}\n\nExample::\n\n{shown}"
