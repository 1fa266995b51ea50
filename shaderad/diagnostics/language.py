"""SR01 and SR02: Python that kernels, functions and structs do not have."""

from __future__ import annotations

from functools import partial

from shaderad.diagnostics.errors import CallError, LanguageError, Message, UnknownNameError

_language = partial(Message, LanguageError)
_call = partial(Message, CallError)
_unknown_name = partial(Message, UnknownNameError)

MESSAGES: dict[str, Message] = {
    "SR0101": _language(
        "the source of `{name}` is not available",
        label="`{file}`",
        note="kernels and functions are read from their Python source",
        help="define it in a file; the interactive prompt and `exec` keep no source",
    ),
    "SR0102": _language(
        "the source of `{name}` has changed since it was imported",
        label="`def {name}` is not here any more",
        help="import the module again, or restart Python",
    ),
    "SR0103": _language(
        "kernels, functions and structs are made from `def` and `class`",
        label="found {found}",
        help="write a `def` with annotated parameters, and pass it what it needs",
    ),
    "SR0106": _language(
        "`{name}` nests deeper than Python's stack can follow",
        note="a sum of hundreds of terms nests one expression per term",
        help="split long expressions over several statements, or write a loop",
    ),
    "SR0105": _language(
        "another decorator has wrapped `{name}`",
        note="a kernel is read from its own `def`; what a wrapper adds would be lost",
        help="remove the other decorator, or put it above `@sad.kernel`",
    ),
    "SR0104": _language("struct `{name}` cannot have {found}", help="{help}"),
    "SR0201": _language(
        "this cannot be assigned",
        label="found {found}",
        help="assign names, fields, components and elements",
    ),
    "SR0202": _language(
        "kernels do not have {found}",
        label="not in the kernel language",
        help="{help}",
    ),
    "SR0203": _language(
        "name `{name}` is not defined",
        note="{remedy}",
        help="assign it first, or import it at the top of the file",
    ),
    "SR0204": _language(
        "`{name}` may be read before it is assigned",
        label="{why}",
        help="assign `{name}` before, on every path",
    ),
    "SR0205": _language(
        "{name} cannot be changed in part",
        label="parameters are values of the caller",
        help="{help}",
    ),
    "SR0206": _language("`{name}` cannot be assigned", label="{why}", help="use another name"),
    "SR0208": _language(
        "`{name}` is {access}",
        label="{how}",
        help="use the access that the parameter's annotation gives, or change the annotation",
    ),
    "SR0209": _language(
        "components `{found}` repeat on the left-hand side",
        help="write each component once",
    ),
    "SR0210": _language(
        "kernels loop over ranges only",
        label="found {found}",
        help="write `for k in range(n):` and read the elements by `k`",
    ),
    "SR0211": _language(
        "this form is not valid here",
        note="`sad.range` and `sad.static_range` follow `in` of a `for`, "
        "`sad.limit` follows `while`, "
        "`sad.unique` stands in the index of an Out array that is written",
        help="write it there",
    ),
    "SR0212": _language(
        "a kernel cannot capture the array `{name}`",
        label="it is defined outside of the kernel",
        help="pass it as a parameter `{name}: sad.In[float]`",
    ),
    "SR0213": _language(
        "`{name}` has no meaning in a kernel",
        label="it is {found}",
        help="capture numbers, vectors, structs, tuples of them, functions and classes",
    ),
    "SR0214": _language(
        "parameters of kernels and functions are plain names",
        label="found {found}",
        help="{help}",
    ),
    "SR0215": _language(
        "`{name}` is a call keyword and cannot be a parameter",
        note="reserved are dim, shapes, bounds, checks, device",
        help="use another name",
    ),
    "SR0216": _language(
        "this value is thrown away",
        label="nothing uses it",
        help="assign it, or remove the line",
    ),
    "SR0217": _language(
        "`{name}` must be a positive whole number known while compiling",
        label="found {found}",
        help="write a number, or capture one: `limit=64`",
    ),
    "SR0218": _language(
        "a kernel returns nothing",
        label="results go to arrays",
        help="write to an `sad.Out` parameter: `y[i] = ...`",
    ),
    "SR0219": _language(
        "`{name}` returns `{type}`, and some path through it ends without a value",
        help="end every path with `return`",
    ),
    "SR0220": _language(
        "returns disagree",
        label="found {found}, elsewhere {wanted}",
        help="return one type on every path",
    ),
    "SR0221": _language(
        "the text of an `assert` must be a plain string",
        help='write `assert condition, "what went wrong"`',
    ),
    "SR0222": _language(
        "this `assert` fails while compiling: {text}",
        help="correct the constants it compares",
    ),
    "SR0251": _language(
        "`{primal}` reads texture `{texture}`, so it cannot have a custom derivative",
        label="`{type}`",
        note="a custom derivative gets no cotangents of texels",
        help="read the texture outside, and pass the values",
    ),
    "SR0250": _language(
        "this loop never ends",
        label="it has no `break` or `return`",
        help="a hanging device freezes the whole display: write a condition, or `break`",
    ),
    "SR0223": _language("a range with step 0 never ends", help="give a step above or below 0"),
    "SR0224": _language(
        "`sad.static_range` needs bounds known while compiling",
        label="a bound is known only at run time",
        help="use `range`, or a `sad.Const[int]` parameter for the bound",
    ),
    "SR0225": _language(
        "Index `{name}` follows another parameter",
        help="put the Index parameters first",
    ),
    "SR0226": _language(
        "a kernel returns nothing, but is annotated `{found}`",
        help="remove the annotation, and write to an `sad.Out` parameter",
    ),
    "SR0227": _language(
        "`{name}` is `sad.{type}` and needs a number",
        label="found {found}",
        help="pass a Python number or a member of an enum: it is compiled in",
    ),
    "SR0228": _language(
        "`{found}` is not a member of `{enum}`",
        note="its members: {known}",
        help="pass one of them, or annotate the parameter `sad.Const[int]`",
    ),
    "SR0229": _unknown_name("`shaderad` has no `{name}`", help="{remedy}"),
    "SR0290": _unknown_name("an array of `{element}` has no attribute `{name}`", help="{remedy}"),
    "SR0291": _call(
        "`{name}` takes {wanted}, found {found}",
        label="its parameters are ({form})",
        help="{help}",
    ),
    "SR0292": _call(
        "`{name}` has no argument `{keyword}`",
        label="its parameters are ({form})",
        help="{help}",
    ),
    "SR0293": _call(
        "a call of `{name}` lacks {missing}",
        label="its parameters are ({form})",
        help="pass every parameter that has no default",
    ),
    "SR0294": _call(
        "`{parameter}` is given twice in a call of `{name}`",
        label="its parameters are ({form})",
        help="pass it by position or by name",
    ),
    "SR0295": _call(
        "{found} stands where a function is expected",
        help="pass the function itself: `f`, not `f(x)`",
    ),
    "SR0296": _call(
        "`sad.profiled` cannot profile `{name}`: it is {kind}, so its body runs after the call",
        help="write `with sad.profile() as profile:` around the code that runs kernels",
    ),
    "SR0230": _language(
        "`sad.{name}` works inside kernels only",
        help="call it in a `@sad.kernel` or `@sad.function`",
    ),
    "SR0231": _language(
        "wrong number of arguments for `{name}`",
        label="found {found:argument|arguments}, wanted {wanted}",
        help="give every parameter once",
    ),
    "SR0232": _language("{found} cannot be called in a kernel", help="{help}"),
    "SR0233": _language(
        "{found} is not an argument of this call",
        help="pass the arguments by position, each once",
    ),
    "SR0234": _language(
        "derivative `{name}` does not fit `{primal}`",
        label="found ({found})",
        help="take ({wanted})",
    ),
    "SR0235": _language(
        "`{name}` takes a `@sad.function` or a method",
        label="found {found}",
        help="write `sad.{name}(f)(...)`",
    ),
    "SR0236": _language("`{name}` is a derivative and is not {found} itself", help="{help}"),
    "SR0237": _language(
        "`sad.bwd_diff(f)(...)` returns no value",
        label="it writes `.d` of the pairs in its arguments",
        help="write it as a statement of its own, and read `x.d` after it",
    ),
    "SR0238": _language(
        "{found} is not a value",
        label="a number, vector, matrix, struct or local array is needed here",
        help="index an array, call a function",
    ),
    "SR0240": _language(
        "`{name}` calls itself",
        label="{cycle}",
        note="GPUs have no call stack to recurse on",
        help="write a loop",
    ),
    "SR0241": _language(
        "calling `{name}` here has no effect",
        label="it writes no array, and its result is not used",
        note="arguments are passed by value, so the caller does not see changes to them",
        help="return the result and assign it, or remove the line",
    ),
    "SR0243": _language("{found} cannot be unpacked", help="unpack tuples and vectors"),
    "SR0244": _language(
        "this call has an effect, and would run twice",
        help="assign it to a name first; if a `while` tests it, write `while True:` and `break`",
    ),
    "SR0245": _language(
        "`{name}` takes `{wanted}` here",
        label="found {found}",
        help="make a pair and give it a name: `x = sad.diff_pair(value)`",
    ),
    "SR0246": _language(
        "two structs of one kernel are called `{name}`",
        help="rename one of the classes",
    ),
    "SR0247": _language(
        "struct `{name}` contains itself",
        help="hold an index into an array of `{name}` instead",
    ),
    "SR0248": _language(
        "`{primal}` writes array `{array}`, so it cannot have a custom derivative",
        label="`{type}`",
        note="a custom derivative gets no cotangent or tangent of a written array",
        help="return the value from `{primal}`, and write it where it is called",
    ),
    "SR0249": _language(
        "`{primal}` reads array `{array}`, so it cannot have a custom forward derivative",
        label="`{type}`",
        note="a custom derivative gets no tangent of an array",
        help="pass the elements as arguments",
    ),
    "SR0260": _language(
        "{found} cannot be printed in a kernel",
        help="print numbers, vectors, matrices, structs of these, strings, and elements of arrays",
    ),
    "SR0261": _language(
        "`{spec}` is not a format for {found}: {why}",
        help="formats are Python's: `.3f` of a float or of each component of a vector, `d` or `x` "
        "of an int",
    ),
    "SR0262": _language(
        "this `print` has {count} words of values, and the limit is {limit}",
        note="each word takes one instruction that writes it to memory",
        help="print the elements that matter",
    ),
    "SR0263": _language(
        "{name} of this `print` must be a string known while compiling",
        help="write it out, or capture a string of the module",
    ),
    "SR0265": _language(
        "`{function}` prints, and an array function calls it",
        note="it becomes part of fused kernels, which may compute an element twice",
        help="print in a `@sad.kernel`, or call `{function}` on numbers",
    ),
    "SR0266": _language(
        "kernel `{kernel}` writes no array, and {caller} calls it",
        note="it computes only what its results need, and nothing needs this call",
        help="call the kernel outside or in the body of the loop, or write the values to an array "
        "that a result depends on",
    ),
    "SR0280": _language(
        "`{array}` is written both at the thread's own index and at another one",
        label="not `{array}[{own}]`",
        note="an Out element at the Index names is a local value until the thread ends",
        help="write `{array}` only at `[{own}]`, or give its shape with `shapes=` and write it "
        "only "
        "at computed indices",
    ),
    "SR0281": _language(
        "Out array `{array}` is read at an element that is not the thread's own",
        label="an Out can be read back only at `{array}[{own}]`, where it is written",
        help="keep the value in a local name, or compute it in a separate kernel and read it as In",
    ),
    "SR0282": _language(
        "`{array}` is `{type}`, which no device accumulates atomically",
        help="{help}",
    ),
    "SR0284": _language(
        "`{array}` is `{type}`, whose fields mix floats and integers",
        note="one array is added to either as floats or as integers",
        help="use two Add arrays",
    ),
    "SR0285": _language(
        "a half in an element of `{array}` cannot be written alone",
        label="`{type}`",
        note="two halves share a word, and another thread may write the other one",
        help="write the whole element: `{array}[j] = value`",
    ),
    "SR0287": _language(
        "a graph cannot be drawn to `{path}`",
        note="the suffix of the file name selects the format",
        help="use one of the suffixes {formats}",
    ),
    "SR0288": _language(
        "blocks nest {depth} deep",
        label="the innermost of them",
        note="the limit is {limit}, because drivers crash on deeper nesting; branches, loops, "
        "`and`, `or` and conditional expressions count, also in called functions, and code after "
        "a branch that returns counts as its `else`",
        help="write one chain of `elif`, join conditions by `and`, or store the result in a local "
        "and test it after the branch",
    ),
}
