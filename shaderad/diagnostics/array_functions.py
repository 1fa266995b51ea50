"""SR0320 to SR0349: arguments of array functions, and values that tracing does not know."""

from __future__ import annotations

from shaderad.diagnostics.errors import LanguageError, Message, ShapeError

MESSAGES: dict[str, Message] = {
    "SR0320": Message(
        LanguageError,
        "the size `{size}` is not known while a function is traced, and {what} needs a number",
        note="one trace serves every size",
        help="sizes take arithmetic, `dim=`, shapes and counts; a loop over one is "
        "`sad.fori_loop(n, body, init)`",
    ),
    "SR0321": Message(
        LanguageError,
        "{what} of an array inside of a function that is being traced",
        note="its values are known only when the graph runs",
        help="choose with `sad.where(condition, a, b)`, repeat with `sad.while_loop` or "
        "`sad.fori_loop`, or return the array and read it outside",
    ),
    "SR0322": Message(
        LanguageError,
        "an array of a traced function is used after the function has ended",
        help="return it as a result of the function",
    ),
    "SR0323": Message(
        ShapeError,
        "axis {axis} of an array with {rank:axis|axes}",
        help="axes count from 0, or from -1 at the end; each is named once",
    ),
    "SR0324": Message(
        ShapeError,
        "an array of shape {found} does not reshape to {wanted}",
        help="the number of elements must stay the same; one extent may be -1",
    ),
    "SR0325": Message(
        LanguageError,
        "`{found}` is no operator of a reduction or scan",
        help="give `sad.add`, `mul`, `min`, `max`, `any`, `all`, `matmul`, or an associative "
        "`@sad.function` of two elements",
    ),
    "SR0326": Message(
        ShapeError,
        "`{name}` takes {takes}, and the elements are `{element}`",
        help="an operator takes two elements and gives one; convert with `sad.cast`, or select a "
        "field or component first",
    ),
    "SR0327": Message(
        ShapeError,
        "the {what} of an array of shape {shape} has no element to start from",
        help="give `init`, or pass an array with at least one element",
    ),
    "SR0328": Message(
        ShapeError,
        "`{name}` takes a tuple or list of at least one array",
        help="write `sad.{name}((a, b))`",
    ),
    "SR0329": Message(
        ShapeError,
        "arrays of shapes {left} and {right} do not join",
        help="all axes but the one they are joined along must agree",
    ),
    "SR0330": Message(
        ShapeError,
        "`{name}` holds `{found}`, and must hold `{wanted}`",
        help="convert it: `sad.cast(x, ..)`",
    ),
    "SR0331": Message(
        LanguageError,
        "`{function}` cannot be applied to elements: its parameter `{name}` is `{type}`",
        help="functions of elements take values; let a Python function capture the array, or "
        "write a kernel",
    ),
    "SR0332": Message(
        LanguageError,
        "`{name}` returns {found}, and a mapped function must return a value",
        help="return a number, vector, matrix or struct",
    ),
    "SR0333": Message(
        LanguageError,
        "{what} is a {found}, and must be a {wanted}",
        help="give it the same tuples, lists, dicts and structs",
    ),
    "SR0334": Message(
        ShapeError,
        "a value of shape {found} in place of one of shape {wanted}",
        note="the carry of a loop keeps its shape, and a derivative has the shape of its value",
        help="start with an array of the final shape, such as `sad.zeros(shape)`",
    ),
    "SR0335": Message(
        LanguageError,
        '`checkpoint` is "sqrt", "all" or "none"',
        label="found {found}",
        help='"sqrt" recomputes values that "all" stores',
    ),
    "SR0336": Message(
        ShapeError,
        "the arrays in `xs` must agree in their first axis, found the shapes {found}",
        help="a loop takes one row of each in every iteration",
    ),
    "SR0337": Message(
        ShapeError,
        "the condition of a loop is one bool without axes, found {found}",
        help="reduce it: `sad.any(..)` or `sad.all(..)`",
    ),
    "SR0338": Message(
        LanguageError,
        "graph `{name}` reads an array that is neither an argument nor captured by a name",
        label="{found}",
        note="a later call could not know if it is still the same array",
        help="pass it as an argument",
    ),
    "SR0340": Message(
        ShapeError,
        "an index array holds `{found}`, and must hold `int`",
        help="convert it with `sad.cast(index, int)`; where a mask chooses, use `sad.where` or "
        "`sad.compact`",
    ),
    "SR0341": Message(
        ShapeError,
        "values of shape {found} for {wanted}",
        help="there is one value, or row, for each index",
    ),
    "SR0342": Message(
        ShapeError,
        "a mask of `{found}` with shape {shape}, for rows of shape {wanted}",
        help="the mask holds one bool for each element of the first axis",
    ),
    "SR0343": Message(
        LanguageError,
        "`{name}` inside of a function given to `sad.map`",
        help="call it on whole arrays, outside of the mapped function{instead}",
    ),
    "SR0345": Message(
        ShapeError,
        "`{name}` has {rank:axis|axes} by its annotation",
        label="found the shape {shape}",
        help='annotate a name or number for each axis: `sad.Array[float, "h", "w"]`',
    ),
    "SR0346": Message(
        ShapeError,
        "an axis of `{name}` has the size {wanted} by its annotation",
        label="found the shape {shape}",
        help="pass an array of that size, or give the axis a name",
    ),
    "SR0347": Message(
        ShapeError,
        "the size `{name}` is {first} in `{left}` and {second} in `{right}`",
        help="sizes of one name agree in all arguments",
    ),
    "SR0348": Message(
        LanguageError,
        "`{found}` is no name for a size",
        note="names that begin with `$` are reserved for plans",
        help='begin it with a letter, as in `"n"`',
    ),
    "SR0349": Message(
        ShapeError,
        "`init` has the shape {found}, and each result begins with one element",
        label="the results have the shape {wanted}",
        help="give one element for all of them, or an array that repeats to their shape",
    ),
    "SR0344": Message(
        ShapeError,
        "no matrix product of shapes {left} and {right}",
        help="the last axis of the first and the last but one of the second must agree",
    ),
}
