"""SR02: Python that the kernel language does not have."""

from __future__ import annotations

from shaderad.diagnostics.errors import LanguageError, Message, UnknownNameError

MESSAGES: dict[str, Message] = {
    "SR0201": Message(
        LanguageError,
        "this cannot be assigned",
        label="found {found}",
        help="assign names, fields, components and elements",
    ),
    "SR0202": Message(
        LanguageError,
        "kernels do not have {found}",
        label="not in the kernel language",
        help="{help}",
    ),
    "SR0203": Message(
        LanguageError,
        "name `{name}` is not defined",
        note="{remedy}",
        help="assign it first, or import it at the top of the file",
    ),
    "SR0204": Message(
        LanguageError,
        "`{name}` may be read before it is assigned",
        label="{why}",
        help="assign `{name}` before, on every path",
    ),
    "SR0205": Message(
        LanguageError,
        "{name} cannot be changed in part",
        label="parameters are values of the caller",
        help="{help}",
    ),
    "SR0206": Message(
        LanguageError,
        "`{name}` cannot be assigned",
        label="{why}",
        help="use another name",
    ),
    "SR0208": Message(
        LanguageError,
        "`{name}` is {access}",
        label="{how}",
        help="use the access that the parameter's annotation gives, or change the annotation",
    ),
    "SR0209": Message(
        LanguageError,
        "components `{found}` repeat on the left-hand side",
        help="write each component once",
    ),
    "SR0210": Message(
        LanguageError,
        "kernels loop over ranges only",
        label="found {found}",
        help="write `for k in range(n):` and read the elements by `k`",
    ),
    "SR0211": Message(
        LanguageError,
        "this form is not valid here",
        note="`sad.range` and `sad.static_range` follow `in` of a `for`, "
        "`sad.limit` follows `while`, "
        "`sad.unique` stands in the index of an Out array that is written",
        help="write it there",
    ),
    "SR0212": Message(
        LanguageError,
        "a kernel cannot capture the array `{name}`",
        label="it is defined outside of the kernel",
        help="pass it as a parameter `{name}: sad.In[float]`",
    ),
    "SR0213": Message(
        LanguageError,
        "`{name}` has no meaning in a kernel",
        label="it is {found}",
        help="capture numbers, tuples of numbers, functions and structs",
    ),
    "SR0214": Message(
        LanguageError,
        "parameters of kernels and functions are plain names",
        label="found {found}",
        help="{help}",
    ),
    "SR0215": Message(
        LanguageError,
        "`{name}` is a call keyword and cannot be a parameter",
        note="reserved are dim, shapes, bounds, checks, device",
        help="use another name",
    ),
    "SR0216": Message(
        LanguageError,
        "this value is thrown away",
        label="nothing uses it",
        help="assign it, or remove the line",
    ),
    "SR0217": Message(
        LanguageError,
        "`{name}` must be a positive whole number known while compiling",
        label="found {found}",
        help="write a number, or capture one: `limit=64`",
    ),
    "SR0218": Message(
        LanguageError,
        "a kernel returns nothing",
        label="results go to arrays",
        help="write to an `sad.Out` parameter: `y[i] = ..`",
    ),
    "SR0219": Message(
        LanguageError,
        "`{name}` returns `{type}`, and some path through it ends without a value",
        help="end every path with `return`",
    ),
    "SR0220": Message(
        LanguageError,
        "returns disagree",
        label="found {found}, elsewhere {wanted}",
        help="return one type on every path",
    ),
    "SR0221": Message(
        LanguageError,
        "the text of an `assert` must be a plain string",
        help='write `assert condition, "what went wrong"`',
    ),
    "SR0222": Message(
        LanguageError,
        "this `assert` fails while compiling: {text}",
        help="correct the constants it compares",
    ),
    "SR0250": Message(
        LanguageError,
        "this loop never ends",
        label="nothing in it says `break` or `return`",
        help="a device that hangs takes the whole display with it: write a condition, or `break`",
    ),
    "SR0223": Message(
        LanguageError,
        "a range with step 0 never ends",
        help="give a step above or below 0",
    ),
    "SR0224": Message(
        LanguageError,
        "`sad.static_range` needs bounds known while compiling",
        label="a bound is known only at run time",
        help="use `range`, or a `sad.Const[int]` parameter for the bound",
    ),
    "SR0225": Message(
        LanguageError,
        "Index `{name}` follows another parameter",
        help="put the Index parameters first",
    ),
    "SR0226": Message(
        LanguageError,
        "a kernel returns nothing, and is annotated `{found}`",
        help="remove the annotation, and write to an `sad.Out` parameter",
    ),
    "SR0227": Message(
        LanguageError,
        "`{name}` is `sad.{type}` and needs a number",
        label="found {found}",
        help="pass a Python number or a member of an enum: it is compiled in",
    ),
    "SR0228": Message(
        LanguageError,
        "`{found}` is no member of `{enum}`",
        note="its members: {known}",
        help="pass one of them, or annotate the parameter `sad.Const[int]`",
    ),
    "SR0229": Message(
        UnknownNameError,
        "`shaderad` has no `{name}`",
        help="{remedy}",
    ),
    "SR0290": Message(
        UnknownNameError,
        "an array of `{element}` has no attribute `{name}`",
        help="{remedy}",
    ),
    "SR0230": Message(
        LanguageError,
        "`sad.{name}` works inside kernels only",
        help="call it in a `@sad.kernel` or `@sad.function`",
    ),
    "SR0231": Message(
        LanguageError,
        "wrong number of arguments for `{name}`",
        label="found {found:argument|arguments}, wanted {wanted}",
        help="give every parameter once",
    ),
    "SR0232": Message(
        LanguageError,
        "{found} cannot be called in a kernel",
        help="{help}",
    ),
    "SR0233": Message(
        LanguageError,
        "{found} is no argument of this call",
        help="pass the arguments by position, each once",
    ),
    "SR0234": Message(
        LanguageError,
        "derivative `{name}` does not fit `{primal}`",
        label="found ({found})",
        help="take ({wanted})",
    ),
    "SR0235": Message(
        LanguageError,
        "`{name}` takes a `@sad.function` or a method",
        label="found {found}",
        help="write `sad.{name}(f)(..)`",
    ),
    "SR0236": Message(
        LanguageError,
        "`{name}` is a derivative and is not {found} itself",
        help="{help}",
    ),
    "SR0237": Message(
        LanguageError,
        "`sad.bwd_diff(f)(..)` gives no value",
        label="it writes `.d` of the pairs it is given",
        help="write it as a statement of its own, and read `x.d` after it",
    ),
    "SR0238": Message(
        LanguageError,
        "{found} is no value",
        label="a number, vector, matrix, struct or local array is needed here",
        help="index an array, call a function",
    ),
    "SR0240": Message(
        LanguageError,
        "`{name}` calls itself",
        label="{cycle}",
        note="GPUs have no call stack to recurse on",
        help="write a loop",
    ),
    "SR0241": Message(
        LanguageError,
        "calling `{name}` here has no effect",
        label="it writes no array, and its result is not used",
        note="arguments are values: what the function does to them stays its own",
        help="return the result and assign it, or remove the line",
    ),
    "SR0243": Message(
        LanguageError,
        "{found} cannot be unpacked",
        help="unpack tuples and vectors",
    ),
    "SR0244": Message(
        LanguageError,
        "this call has an effect, and would run twice",
        help="assign it to a name first; where a `while` tests it, write `while True:` and `break`",
    ),
    "SR0245": Message(
        LanguageError,
        "`{name}` takes `{wanted}` here",
        label="found {found}",
        help="make a pair and give it a name: `x = sad.diff_pair(value)`",
    ),
    "SR0246": Message(
        LanguageError,
        "two structs of one kernel are called `{name}`",
        help="rename one of the classes",
    ),
    "SR0247": Message(
        LanguageError,
        "struct `{name}` contains itself",
        help="hold an index into an array of `{name}` instead",
    ),
    "SR0248": Message(
        LanguageError,
        "`{primal}` writes array `{array}`, and cannot have a derivative of its own",
        label="`{type}`",
        note="a derivative is handed no cotangent or tangent of an array that is written",
        help="return the value from `{primal}`, and write it where it is called",
    ),
    "SR0249": Message(
        LanguageError,
        "`{primal}` reads array `{array}`, and cannot have a forward derivative of its own",
        label="`{type}`",
        note="a derivative is handed no tangent of an array",
        help="pass the elements as arguments",
    ),
    "SR0260": Message(
        LanguageError,
        "{found} cannot be printed in a kernel",
        help="print numbers, vectors, matrices, structs of them, and strings; of an array its "
        "elements",
    ),
    "SR0261": Message(
        LanguageError,
        "`{spec}` is no format of {found}: {why}",
        help="formats are Python's: `.3f` of a float or of each component of a vector, `d` or `x` "
        "of an int",
    ),
    "SR0262": Message(
        LanguageError,
        "this `print` has {count} words of values, and the limit is {limit}",
        note="each is written to memory by an instruction of its own",
        help="print the elements that matter",
    ),
    "SR0263": Message(
        LanguageError,
        "{name} of this `print` must be a string known while compiling",
        help="write it out, or capture a string of the module",
    ),
    "SR0264": Message(
        LanguageError,
        "kernel `{kernel}` prints, and `sad.while_loop` calls it",
        note="a device may run iterations after the end of the loop, which do not change its carry",
        help="use `sad.fori_loop`, or call the kernel outside of the loop",
    ),
    "SR0265": Message(
        LanguageError,
        "`{function}` prints, and an array function calls it",
        note="it becomes part of fused kernels, which may compute an element twice",
        help="print in a `@sad.kernel`, or call `{function}` on numbers",
    ),
    "SR0266": Message(
        LanguageError,
        "kernel `{kernel}` prints and writes no array, and a graph calls it",
        note="a graph computes what its results need, and nothing needs this call",
        help="write what it prints about to an array of the graph, or call it outside",
    ),
    "SR0280": Message(
        LanguageError,
        "`{array}` is written both at the thread's own index and at another one",
        label="not `{array}[{own}]`",
        note="an Out element at the Index names is a local value until the thread ends",
        help="write `{array}` only at `[{own}]`, or give its shape with `shapes=` and write it "
        "only "
        "at computed indices",
    ),
    "SR0281": Message(
        LanguageError,
        "Out array `{array}` is read where it is not the thread's own",
        label="an Out can be read back only at `{array}[{own}]`, where it is written",
        help="keep the value in a local name, or compute it in a kernel of its own and read "
        "it as In",
    ),
    "SR0282": Message(
        LanguageError,
        "`{array}` is `{type}`, which no device accumulates atomically",
        help="accumulate in `float`, `int` or `uint` and convert the result",
    ),
    "SR0284": Message(
        LanguageError,
        "`{array}` is `{type}`, whose fields mix floats and integers",
        note="one array is added to either as floats or as integers",
        help="use two Add arrays",
    ),
    "SR0285": Message(
        LanguageError,
        "a part of an element of `{array}` that is half cannot be written alone",
        label="`{type}`",
        note="two halves share a word, and another thread may write the other one",
        help="write the whole element: `{array}[j] = value`",
    ),
    "SR0287": Message(
        LanguageError,
        "a graph cannot be drawn to `{path}`",
        note="the name of the file says in which format",
        help="let it end in one of {formats}",
    ),
    "SR0288": Message(
        LanguageError,
        "blocks nest {depth} deep",
        label="the innermost of them",
        note="drivers end with the process where blocks lie too deep, so {limit} is the limit; "
        "branches, loops, `and`, `or` and conditional expressions count, with those of functions "
        "that are called inside, and what follows a branch that returns lies in its `else`",
        help="write one chain of `elif`, join conditions by `and`, or store the result in a local "
        "and test it after the branch",
    ),
}
