"""SR03: types, shapes and sizes that do not fit."""

from __future__ import annotations

from shaderad.diagnostics.errors import LanguageError, Message, NoAxesError, ShapeError

MESSAGES: dict[str, Message] = {
    "SR0301": Message(
        LanguageError,
        "`{found}` is no type here",
        label="{why}",
        help="types are float, int, bool, `sad.uint`, float2 .. float4x4, structs, arrays",
    ),
    "SR0302": Message(
        LanguageError,
        "parameter `{name}` has no annotation",
        help="{help}",
    ),
    "SR0303": Message(
        LanguageError,
        "expected `{wanted}`, found {found}",
        help="{help}",
    ),
    "SR0304": Message(
        LanguageError,
        "`{symbol}` does not take {left} and {right}",
        help="{help}",
    ),
    "SR0305": Message(
        LanguageError,
        "a condition must be `bool`, found {found}",
        label="numbers have no truth value in kernels",
        help="{help}",
    ),
    "SR0306": Message(
        LanguageError,
        "`{value}` does not fit `{type}`",
        label="{why}",
        help="use a number in range, or another type",
    ),
    "SR0307": Message(
        LanguageError,
        "`{type}` takes {wanted:index|indices}, found {found}",
        help="give one index an axis: `a[y, x]`",
    ),
    "SR0308": Message(
        LanguageError,
        "index {found} is out of range for {owner}",
        label="{why}",
        help="use an index from 0 up to the length",
    ),
    "SR0309": Message(
        LanguageError,
        "an index must be `int`, found {found}",
        help="convert it: `int(..)`",
    ),
    "SR0310": Message(
        LanguageError,
        "{type} has no `{name}`",
        label="{known}",
        help="use one of its own fields, components or methods",
    ),
    "SR0311": Message(
        LanguageError,
        "`{symbol}` does not take {found}",
        label="bools do not count as numbers in kernels",
        help="write `int(..)` or `float(..)`, or a conditional expression",
    ),
    "SR0312": Message(
        LanguageError,
        "`{name}` does not take {found}",
        help="{help}",
    ),
    "SR0313": Message(
        LanguageError,
        "`{type}` cannot be made from {found}",
        label="wanted: {wanted}",
        help="give the parts in order",
    ),
    "SR0314": Message(
        LanguageError,
        "`{symbol}` by a constant zero",
        help="correct the constant",
    ),
    "SR0315": Message(
        LanguageError,
        "`int ** int` has no fixed type in Python",
        label="the exponent is {found}, known only at run time",
        help="write `float(x) ** n`, or a constant exponent",
    ),
    "SR0316": Message(
        LanguageError,
        "`{symbol}` does not take {found}",
        help="it takes numbers, and `~` integers or bools",
    ),
    "SR0317": Message(
        LanguageError,
        "`{name}` is `{type}` and cannot become {found}",
        label="a name keeps one type",
        help="{help}",
    ),
    "SR0318": Message(
        LanguageError,
        "{found:value|values} for {wanted:target|targets}",
        help="write as many targets as there are values",
    ),
    "SR0319": Message(
        LanguageError,
        "{found} is known only at run time, and a constant is needed here",
        help="write a number, capture one, or make the parameter `sad.Const[int]`",
    ),
    "SR0350": Message(
        ShapeError,
        "NumPy's `{found}` has no element type here",
        help="name one: `sad.array(data, dtype=float)`, a `sad.*` type, or a `@sad.struct` class",
    ),
    "SR0351": Message(
        ShapeError,
        "`{name}` is no array of numbers",
        label="{found}",
        help="give a NumPy array, or lists of numbers of equal length",
    ),
    "SR0352": Message(
        ShapeError,
        "`{name}` takes elements of type `{type}`, with trailing axes {axes}",
        label="its shape is {shape}",
        help="reshape the data so that its last axes are {axes}",
    ),
    "SR0353": Message(
        ShapeError,
        "`{name}` takes `{type}`",
        label="it holds `{found}` values, which do not become `{type}` by themselves",
        help="convert it yourself, with `.astype` or `int`, `float`, `bool`",
    ),
    "SR0354": Message(
        ShapeError,
        "`{name}` holds {value}, which `{type}` cannot hold",
        help="scale the data, or use a wider type where the device has one",
    ),
    "SR0355": Message(
        ShapeError,
        "`{name}` takes `{type}` with the fields {wanted}",
        label="found {found}",
        help="give a structured array, a dict of arrays, or structs with these fields; where "
        "`{type}` was defined again, define what uses it again, too",
    ),
    "SR0356": Message(
        ShapeError,
        "fields of `{name}` have different lengths",
        label="`{field}` has the shape {found}, the fields before it {shape}",
        help="give every field one entry an element",
    ),
    "SR0357": Message(
        ShapeError,
        "`{name}` is one `{type}` for the whole launch",
        label="found an array of shape {shape}",
        help="pass one element, such as `x[0]`, or annotate the parameter `sad.In[{type}]`",
    ),
    "SR0358": Message(
        ShapeError,
        "`{found!r}` is no element type",
        help="use float, int, bool, a `sad.*` type, a `@sad.struct` class without arrays, or one "
        "of NumPy's float16, float32, float64, int32, uint32, bool",
    ),
    "SR0359": Message(
        ShapeError,
        "the buffer is too small for the array",
        label="it has {found:byte|bytes}, the array needs {needed}",
        help="give the shape that the buffer holds",
    ),
    "SR0360": Message(
        NoAxesError,
        "{what} of an array without axes",
        help="use `.item()` for its one element",
    ),
    "SR0361": Message(
        ShapeError,
        "only an array of exactly one number converts to a Python number",
        label="{found}",
        help="select one element first, or use `.numpy()`",
    ),
    "SR0362": Message(
        ShapeError,
        "an array of {count:element|elements}: indices in kernels end at {limit}",
        help="split the array",
    ),
    "SR0363": Message(
        ShapeError,
        "`{name}` takes the arguments ({wanted})",
        label="found {count:positional one|positional ones}",
        help="leave out Index parameters and written arrays: those are what the call returns",
    ),
    "SR0364": Message(
        ShapeError,
        "a call of `{name}` lacks {missing}",
        help="pass every parameter but Index ones and written arrays",
    ),
    "SR0365": Message(
        ShapeError,
        "`{name}` has no parameter `{found}` to pass",
        label="it takes ({wanted}) and the keywords dim, shapes, bounds, checks, device",
        help="written arrays are not passed: the call returns them",
    ),
    "SR0366": Message(
        ShapeError,
        "`{parameter}` is given twice in a call of `{name}`",
        help="pass it by position or by name",
    ),
    "SR0367": Message(
        ShapeError,
        "`{name}` takes elements of type `{type}`",
        label="found a device array of `{found}` with shape {shape}",
        note="arrays on a device are never converted behind your back",
        help="make it with `sad.array(data, dtype=..)` in the type the kernel asks for",
    ),
    "SR0368": Message(
        ShapeError,
        "`{name}` is `{type}`, which has {rank:axis|axes}",
        label="found the shape {shape}",
        help="reshape the array, or annotate its rank, such as `sad.In[float, 2]`",
    ),
    "SR0369": Message(
        ShapeError,
        "`{name}` has no field `{field}`",
        label="found {found}",
        help="pass an object of the struct's class, or a dict with all its fields",
    ),
    "SR0370": Message(
        ShapeError,
        "`{name}` takes whole numbers",
        label="found {found}",
        help="write an int or a tuple of ints; `int(x)` converts",
    ),
    "SR0371": Message(
        ShapeError,
        "every extent of `{name}`, and their product, must be between 0 and {limit}",
        label="found {found}",
        help="{help}",
    ),
    "SR0372": Message(
        ShapeError,
        "a call of `{name}` needs `dim`",
        label="it has {count:Index parameter|Index parameters}",
        help="say how many threads run: `{name}(.., dim=n)`, or a tuple with one extent an Index; "
        "it may be left out where an array is read or written at every Index itself",
    ),
    "SR0373": Message(
        ShapeError,
        "`{name}` takes {count:extent|extents}, one for each Index parameter",
        label="found dim={dim}",
        help="{help}",
    ),
    "SR0374": Message(
        ShapeError,
        "`bounds` is 'raise', 'ignore' or 'unchecked'",
        label="found {found}",
        help="'raise' reports at the next synchronisation; 'unchecked' removes the guards",
    ),
    "SR0375": Message(
        ShapeError,
        "`checks` is 'nan' or 'writes'",
        label="found {found}",
        help="'nan' finds where a NaN or infinity first appears, 'writes' what is written twice",
    ),
    "SR0383": Message(
        ShapeError,
        "`shapes` takes a dict of shapes by array",
        label="found {found}",
        help='write `shapes={{"{example}": n}}`, or a tuple of sizes in place of `n`',
    ),
    "SR0384": Message(
        ShapeError,
        "an array on a device cannot be {what}",
        help="{help}",
    ),
    "SR0385": Message(
        ShapeError,
        "a call of `{name}` needs `dim`: arrays at `{index}` differ in extent",
        label="{found}",
        help="say how many threads run: `{name}(.., dim=n)`; or pass arrays of one extent",
    ),
    "SR0376": Message(
        ShapeError,
        "`{name}` writes no array `{found}`",
        label="`shapes` takes {known}",
        help="name arrays that the kernel writes",
    ),
    "SR0377": Message(
        ShapeError,
        "`{name}` is `{type}`, but would have the shape {shape}",
        note="written arrays have the launch's shape unless `shapes` says otherwise",
        help='give its shape, such as `shapes={{"{name}": 1}}`, or annotate its rank',
    ),
    "SR0379": Message(
        ShapeError,
        "shapes {left} and {right} do not broadcast",
        help="sizes must agree from the last axis on, or be 1",
    ),
    "SR0380": Message(
        ShapeError,
        "an array is indexed by whole numbers, slices, int arrays, `None` and `...`",
        label="found {found}",
        help="convert the index, such as with `int(..)` or `sad.cast(index, int)`",
    ),
    "SR0381": Message(
        ShapeError,
        "{count:index|indices} for an array of shape {shape}",
        help="element axes are not indexed: they belong to the element type",
    ),
    "SR0382": Message(
        ShapeError,
        "`{name}` has the shape {found}, and must have {shape}",
        help="a cotangent or tangent has the shape of what it belongs to",
    ),
    "SR0390": Message(
        ShapeError,
        "`{name}` takes a pointer to `{type}`, and got a `{found}`",
        help="give it the array: `sad.pointer(array)`, or `sad.pointer(None)` for nothing",
    ),
    "SR0392": Message(
        ShapeError,
        "`sad.pointer` leads to the elements of an array, and got a `{found}`",
        help="give it an array with one axis, or `None` for a pointer to nothing",
    ),
    "SR0393": Message(
        ShapeError,
        "`{name}` of an optimiser is a number {limits}, and is `{found}`",
        help="a learning rate that changes from step to step is the `lr` of `step`",
    ),
    "SR0391": Message(
        ShapeError,
        "`{name}` takes `{type}` structs, and got a `{found}`",
        note="structs that hold pointers stay on the host until a kernel reads them",
        help="give it a list of them: `[{type}(..), ..]`",
    ),
}
