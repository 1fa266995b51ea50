"""SR03: types, shapes and sizes that do not fit; from SR0320 on, errors of array functions."""

from __future__ import annotations

from functools import partial

from shaderad.diagnostics.errors import LanguageError, Message, NoAxesError, ShapeError

_language = partial(Message, LanguageError)
_no_axes = partial(Message, NoAxesError)
_shape = partial(Message, ShapeError)

MESSAGES: dict[str, Message] = {
    "SR0301": _language(
        "`{found}` is not a type here",
        label="{why}",
        help="types are float, int, bool, `sad.uint`, float2 ... float4x4, structs, arrays",
    ),
    "SR0302": _language("parameter `{name}` has no annotation", help="{help}"),
    "SR0303": _language("expected `{wanted}`, found {found}", help="{help}"),
    "SR0304": _language("`{symbol}` does not take {left} and {right}", help="{help}"),
    "SR0305": _language(
        "a condition must be `bool`, found {found}",
        label="numbers have no truth value in kernels",
        help="{help}",
    ),
    "SR0306": _language(
        "`{value}` does not fit `{type}`",
        label="{why}",
        help="use a number in range, or another type",
    ),
    "SR0307": _language(
        "`{type}` takes {wanted:index|indices}, found {found}",
        help="give one index per axis; an array of two axes is declared as `sad.In[float, 2]`, and "
        "indexed by `a[y, x]`",
    ),
    "SR0308": _language(
        "index {found} is out of range for {owner}",
        label="{why}",
        help="use an index from 0 up to the length",
    ),
    "SR0309": _language("an index must be `int`, found {found}", help="convert it: `int(...)`"),
    "SR0310": _language(
        "{type} has no `{name}`",
        label="{known}",
        help="use one of its own fields, components or methods",
    ),
    "SR0311": _language(
        "`{symbol}` does not take {found}",
        label="bools do not count as numbers in kernels",
        help="write `int(...)` or `float(...)`, or a conditional expression",
    ),
    "SR0312": _language("`{name}` does not take {found}", help="{help}"),
    "SR0313": _language(
        "`{type}` cannot be made from {found}",
        label="wanted: {wanted}",
        help="give the parts in order",
    ),
    "SR0314": _language("`{symbol}` by a constant zero", help="correct the constant"),
    "SR0315": _language(
        "`int ** int` has no fixed type in Python",
        label="the exponent is {found}, known only at run time",
        help="write `float(x) ** n`, or a constant exponent",
    ),
    "SR0316": _language(
        "`{symbol}` does not take {found}",
        help="it takes numbers, and `~` integers or bools",
    ),
    "SR0317": _language(
        "`{name}` is `{type}` and cannot become {found}",
        label="a name keeps one type",
        help="{help}",
    ),
    "SR0318": _language(
        "{found:value|values} for {wanted:target|targets}",
        help="write as many targets as there are values",
    ),
    "SR0319": _language(
        "{found} is known only at run time, and a constant is needed here",
        help="write a number, capture one, or make the parameter `sad.Const[int]`",
    ),
    "SR0350": _shape(
        "NumPy's `{found}` has no element type here",
        help="name one: `sad.array(data, dtype=float)`, a `sad.*` type, or a `@sad.struct` class",
    ),
    "SR0351": _shape(
        "`{name}` is not an array of numbers",
        label="{found}",
        help="give a NumPy array, or lists of numbers of equal length",
    ),
    "SR0352": _shape(
        "`{name}` takes elements of type `{type}`, with trailing axes {axes}",
        label="its shape is {shape}",
        help="reshape the data so that its last axes are {axes}",
    ),
    "SR0353": _shape(
        "`{name}` takes `{type}`",
        label="it holds `{found}` values, which are not converted to `{type}` implicitly",
        help="convert it yourself, with `.astype` or `int`, `float`, `bool`",
    ),
    "SR0354": _shape(
        "`{name}` holds {value}, which `{type}` cannot hold",
        help="scale the data, or use a wider type if the device has one",
    ),
    "SR0355": _shape(
        "`{name}` takes `{type}` with the fields {wanted}",
        label="found {found}",
        help="give a structured array, a dict of arrays, or structs with these fields; if "
        "`{type}` was redefined, redefine everything that uses it",
    ),
    "SR0356": _shape(
        "fields of `{name}` have different lengths",
        label="`{field}` has the shape {found}, the fields before it {shape}",
        help="give every field one entry per element",
    ),
    "SR0357": _shape(
        "`{name}` is one `{type}` for the whole launch",
        label="found an array of shape {shape}",
        help="pass one element, such as `x[0]`, or annotate the parameter `sad.In[{type}]`",
    ),
    "SR0358": _shape(
        "`{found!r}` is not an element type",
        help="use float, int, bool, a `sad.*` type, a `@sad.struct` class without arrays, or one "
        "of NumPy's float16, float32, float64, int32, uint32, bool",
    ),
    "SR0359": _shape(
        "the buffer is too small for the array",
        label="it has {found:byte|bytes}, the array needs {needed}",
        help="give the shape that the buffer holds",
    ),
    "SR0360": _no_axes("{what} of an array without axes", help="use `.item()` for its one element"),
    "SR0361": _shape(
        "only an array of exactly one number converts to a Python number",
        label="{found}",
        help="select one element first, or use `.numpy()`",
    ),
    "SR0362": _shape(
        "an array of {count:element|elements}: indices in kernels end at {limit}",
        help="split the array",
    ),
    "SR0363": _shape(
        "`{name}` takes the arguments ({wanted})",
        label="found {count:positional one|positional ones}",
        help="leave out Index parameters and written arrays, which the call returns",
    ),
    "SR0364": _shape(
        "a call of `{name}` lacks {missing}",
        help="pass every parameter except Index parameters and written arrays",
    ),
    "SR0365": _shape(
        "`{name}` has no parameter `{found}` to pass",
        label="it takes ({wanted}) and the keywords dim, shapes, bounds, checks, device",
        help="written arrays are not passed: the call returns them",
    ),
    "SR0366": _shape(
        "`{parameter}` is given twice in a call of `{name}`",
        help="pass it by position or by name",
    ),
    "SR0367": _shape(
        "`{name}` takes elements of type `{type}`",
        label="found a device array of `{found}` with shape {shape}",
        note="arrays on a device are never converted implicitly",
        help="make it with `sad.array(data, dtype=...)` in the type the kernel asks for",
    ),
    "SR0368": _shape(
        "`{name}` is `{type}`, which has {rank:axis|axes}",
        label="found the shape {shape}",
        help="reshape the array, or annotate its rank, such as `sad.In[float, 2]`",
    ),
    "SR0369": _shape(
        "`{name}` has no field `{field}`",
        label="found {found}",
        help="pass an object of the struct's class, or a dict with all its fields",
    ),
    "SR0370": _shape(
        "`{name}` takes whole numbers",
        label="found {found}",
        help="{help}",
    ),
    "SR0371": _shape(
        "every extent of `{name}`, and their product, must be between 0 and {limit}",
        label="found {found}",
        help="{help}",
    ),
    "SR0372": _shape(
        "a call of `{name}` needs `dim`",
        label="it has {count:Index parameter|Index parameters}",
        help="say how many threads run: `{name}(..., dim=n)`, or a tuple with one extent per "
        "Index; you can leave it out if an array is read or written at every Index itself",
    ),
    "SR0373": _shape(
        "`{name}` takes {count:extent|extents}, one for each Index parameter",
        label="found dim={dim}",
        help="{help}",
    ),
    "SR0374": _shape(
        "`bounds` must be 'raise', 'ignore' or 'unchecked'",
        label="found {found}",
        help="'raise' reports at the next synchronisation; 'unchecked' removes the guards",
    ),
    "SR0375": _shape(
        "`checks` must be 'nan' or 'writes'",
        label="found {found}",
        help="'nan' reports the first NaN or infinity, 'writes' elements that are written twice",
    ),
    "SR0383": _shape(
        "`shapes` takes a dict of shapes by array",
        label="found {found}",
        help='write `shapes={{"{example}": n}}`, or a tuple of sizes in place of `n`',
    ),
    "SR0384": _shape("an array on a device cannot be {what}", help="{help}"),
    "SR0385": _shape(
        "a call of `{name}` needs `dim`: arrays at `{index}` differ in extent",
        label="{found}",
        help="say how many threads run: `{name}(..., dim=n)`; or pass arrays of one extent",
    ),
    "SR0376": _shape(
        "`{name}` writes no array `{found}`",
        label="`shapes` takes {known}",
        help="name arrays that the kernel writes",
    ),
    "SR0377": _shape(
        "`{name}` is `{type}`, but would have the shape {shape}",
        note="written arrays have the launch's shape unless `shapes` says otherwise",
        help='give its shape, such as `shapes={{"{name}": 1}}`, or annotate its rank',
    ),
    "SR0379": _shape(
        "shapes {left} and {right} do not broadcast",
        help="sizes must agree from the last axis on, or be 1; components of vectors are not an "
        "axis, and `sad.array(x, dtype=sad.float3)` makes vectors of the last axis",
    ),
    "SR0380": _shape(
        "an array is indexed by whole numbers, slices, int arrays, `None` and `...`",
        label="found {found}",
        help="convert the index, such as with `int(...)` or `sad.cast(index, int)`",
    ),
    "SR0381": _shape(
        "{count:index|indices} for an array of shape {shape}",
        help="element axes are not indexed: they belong to the element type",
    ),
    "SR0382": _shape(
        "`{name}` has the shape {found}, but must have {shape}",
        help="a cotangent or tangent has the shape of what it belongs to",
    ),
    "SR0390": _shape(
        "`{name}` takes a pointer to `{type}`, but got a `{found}`",
        help="pass `sad.pointer(array)`, or `sad.pointer(None)` for a pointer to nothing",
    ),
    "SR0392": _shape(
        "`sad.pointer` takes the array that it points into, but got a `{found}`",
        help="give it an array with one axis, or `None` for a pointer to nothing",
    ),
    "SR0393": _shape(
        "`{name}` of an optimiser must be a number {limits}, not `{found}`",
        help="pass a learning rate that changes per step as `lr` of `step`",
    ),
    "SR0391": _shape(
        "`{name}` takes `{type}` structs, but got a `{found}`",
        note="structs that hold pointers stay on the host until a kernel reads them",
        help="give it a list of them: `[{type}(...), ...]`",
    ),
    "SR0819": _shape(
        "`{name}` takes a `{type}`, but got {found}",
        help="make one: `{make}`",
    ),
    "SR0394": _shape(
        "`{name}` of `vmap` names axis {axis} of {place}, which has {rank:axis|axes}",
        help="axes count from 0, or from -1 at the end, and in results include the batch axis; "
        "write `None` in `in_axes` for an argument that all elements share, such as a number",
    ),
    "SR0395": _shape(
        "`vmap` of `{name}` maps no argument",
        help="map at least one array along an axis in `in_axes`; keywords are never mapped",
    ),
    "SR0396": _shape(
        "`vmap` maps axes of two sizes: {first} in {left}, {second} in {right}",
        help="all mapped axes need the same size; `in_axes` selects the mapped axis of each "
        "argument, or `None` for an argument that all elements share",
    ),
    "SR0397": _shape(
        "`out_axes` of `vmap` is `None` for {place}, which differs from element to element",
        help="give it an axis: 0 puts the elements of the batch in front",
    ),
    "SR0398": _language(
        "`{name}` of `vmap` does not have the structure of {wanted}",
        label="found {found}",
        help="give one axis for all, or tuples, lists, dicts, dataclasses and structs like those "
        "of the value, with axes or `None` in them; `in_axes` has one entry per positional "
        "argument",
    ),
    "SR0399": _language(
        "`vmap` cannot map kernel `{kernel}` in a `while_loop` that elements of the batch leave at "
        "different times",
        note="it was built, is in Slang, follows pointers to mapped arrays, or has a gradient by a "
        "texture, so it runs for one element at a time",
        help="call it outside of the loop, or pass mapped arrays as parameters of their own, such "
        "as `x: sad.In[float]`",
    ),
    "SR0400": _language(
        "`vmap` cannot map {place}, which is a texture",
        help="give it the axis `None` in `in_axes`, and map the coordinates; to map texels, use "
        "`render.texture`, which reads arrays",
    ),
    "SR0430": _language(
        "the result of a traced function holds a `{found}` whose `{name}` holds arrays",
        note="arrays of a trace have values only as results, and objects are returned as they are",
        help="return the arrays in a tuple, list, dict, dataclass, or struct",
    ),
    "SR0402": _language(
        "{what} of a loop holds a texture",
        help="capture the texture in the body: it is the same in every iteration",
    ),
    "SR0320": _language(
        "the size `{size}` is not known while a function is traced, and {what} needs a number",
        note="one trace serves every size",
        help="sizes take arithmetic, `dim=`, shapes and counts; a loop over one is "
        "`sad.fori_loop(n, body, init)`",
    ),
    "SR0321": _language(
        "{what} inside a function that is being traced",
        note="its values are known only when the graph runs",
        help="choose with `sad.where(condition, a, b)`, repeat with `sad.while_loop` or "
        "`sad.fori_loop`, or return the array and read it outside",
    ),
    "SR0322": _language(
        "an array of a traced function is used after the function has ended",
        help="return it as a result of the function",
    ),
    "SR0323": _shape(
        "axis {axis} of an array with {rank:axis|axes}",
        help="axes count from 0, or from -1 at the end; each is named once",
    ),
    "SR0324": _shape(
        "an array of shape {found} does not reshape to {wanted}",
        help="{help}",
    ),
    "SR0325": _language(
        "`{found}` is not an operator of a reduction or scan",
        help="give `sad.add`, `mul`, `min`, `max`, `any`, `all`, `matmul`, or an associative "
        "`@sad.function` of two elements",
    ),
    "SR0326": _shape(
        "`{name}` takes {takes}, but the elements are `{element}`",
        help="an operator takes two elements and returns one; convert with `sad.cast`, or select a "
        "field or component first",
    ),
    "SR0327": _shape(
        "the {what} of an array of shape {shape} has no element to start from",
        help="give `init`, or pass an array with at least one element",
    ),
    "SR0328": _shape(
        "`{name}` takes a tuple or list of at least one array",
        help="write `sad.{name}((a, b))`",
    ),
    "SR0329": _shape(
        "arrays of shapes {left} and {right} cannot be joined",
        help="all axes except the one along which they are joined must agree",
    ),
    "SR0330": _shape(
        "`{name}` holds `{found}`, but must hold `{wanted}`",
        help="convert it: `sad.cast(x, ...)`",
    ),
    "SR0331": _language(
        "`{function}` cannot be applied to elements: its parameter `{name}` is `{type}`",
        help="functions of elements take values; let a Python function capture the array, or "
        "write a kernel",
    ),
    "SR0332": _language(
        "`{name}` returns {found}, but a mapped function must return a value",
        help="return a number, vector, matrix or struct",
    ),
    "SR0333": _language(
        "{what} is a {found}, but must be a {wanted}",
        help="give it the same tuples, lists, dicts, dataclasses and structs",
    ),
    "SR0334": _shape(
        "a value of shape {found} in place of one of shape {wanted}",
        note="the carry of a loop keeps its shape, and a derivative has the shape of its value",
        help="start with an array of the final shape, such as `sad.zeros(shape)`",
    ),
    "SR0335": _language(
        '`checkpoint` must be "sqrt", "all" or "none"',
        label="found {found}",
        help='"sqrt" recomputes values that "all" stores',
    ),
    "SR0336": _shape(
        "the arrays in `xs` and `length` must agree in the first axis, found the shapes {found}",
        help="a loop takes one row of each in every iteration; without `xs`, give `length`",
    ),
    "SR0337": _shape(
        "the condition of a loop is one bool without axes, found {found}",
        help="reduce it: `sad.any(...)` or `sad.all(...)`",
    ),
    "SR0338": _language(
        "graph `{name}` reads an array that is neither an argument nor captured by a name",
        label="{found}",
        note="a later call could not detect whether it is still the same array",
        help="pass it as an argument",
    ),
    "SR0339": _language(
        "graph `{name}` captures host arrays of more than {limit} bytes",
        label="`{array}` has {size} bytes",
        note="each call compares captured host arrays with those of the trace",
        help="pass `{array}` as an argument, or make it an array on the device: "
        "`{array} = sad.array({array})`",
    ),
    "SR0340": _shape(
        "an index array holds `{found}`, but must hold `int`",
        help="convert it with `sad.cast(index, int)`; for a mask, use `sad.where` or `sad.compact`",
    ),
    "SR0341": _shape(
        "values of shape {found} for {wanted}",
        help="there is one value, or row, for each index",
    ),
    "SR0342": _shape(
        "a mask of `{found}` with shape {shape}, for rows of shape {wanted}",
        help="the mask holds one bool for each element of the first axis",
    ),
    "SR0345": _shape(
        "`{name}` has {rank:axis|axes} by its annotation",
        label="found the shape {shape}",
        help='annotate a name or number for each axis: `sad.Array[float, "h", "w"]`',
    ),
    "SR0346": _shape(
        "an axis of `{name}` has the size {wanted} by its annotation",
        label="found the shape {shape}",
        help="pass an array of that size, or give the axis a name",
    ),
    "SR0347": _shape(
        "the size `{name}` is {first} in `{left}` and {second} in `{right}`",
        help="sizes of one name agree in all arguments",
    ),
    "SR0348": _language(
        "`{found}` is not a valid size of an axis",
        note="a size is a number, 0 or more, or a name; those that begin with `$` are reserved",
        help='begin a name with a letter, as in `"n"`',
    ),
    "SR0349": _shape(
        "`init` has the shape {found}, but each result starts from one element",
        label="the results have the shape {wanted}",
        help="give one element for all of them, or an array that repeats to their shape",
    ),
    "SR0344": _shape(
        "no matrix product of shapes {left} and {right}",
        help="the last axis of the first and the last but one of the second must agree",
    ),
    "SR0386": _shape(
        "`{spec}` is not a sum of products of these arrays: {why}",
        help='give a letter for each axis, as in `sad.einsum("ik,kj->ij", a, b)`',
    ),
    "SR0387": _shape(
        "axis `{letter}` of `{spec}` has the extents {left} and {right}",
        help="axes with the same letter need the same extent, or 1 to repeat an array",
    ),
    "SR0388": _shape(
        "`where` takes a condition and two values",
        label="found {count:argument|arguments}",
        help="write `sad.where(x > 0.0, x, 0.0)`; `sad.compact(x, mask)` selects elements, and "
        "`sad.compact(sad.iota(n), mask)` the positions where a mask is true",
    ),
    "SR0389": _shape(
        "an index array of shape {found} for an array of shape {shape}",
        help="give the index one axis for each axis of the array, such as by `index[:, None]`; or "
        "write `x[index]`, which reads whole rows",
    ),
}
