"""Every message a user can see, and how one is shown under its Python source line.

A raise site names a code and passes values: ``raise error("SR0207", span, kernel="smooth")``.
The text stands once, in `MESSAGES`; nothing else in the package writes prose for users.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass


class Error(Exception):
    """Base of all errors that shaderad raises on purpose.

    Attributes:
        code: Stable identifier such as ``"SR0207"``.
        span: The Python source it speaks of, or `None`.
        message: What is wrong, one line.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        span: Span | None = None,
        label: str = "",
        note: str = "",
        help: str = "",  # noqa: A002 - the word users see
    ) -> None:
        self.code = code
        self.span = span
        self.message = message
        self.label = label
        self.note = note
        self.help = help
        super().__init__(render(self))


class LanguageError(Error):
    """The Python source says something kernels do not have, or types disagree."""


class ShapeError(Error):
    """A shape, size or element type does not fit."""


class DerivativeError(Error):
    """A derivative that cannot be taken right, and is therefore refused."""


class CompileError(Error):
    """The shader compiler refused or broke on what we emitted."""


class DeviceError(Error):
    """No device, a lost device, missing feature, out of memory."""


class BoundsError(Error, IndexError):
    """An index was outside its array while `bounds="raise"`, or an `assert` failed."""


class LimitError(Error):
    """A loop ran past its `limit`."""


class GradientError(Error):
    """`gradcheck` found a gradient that disagrees with finite differences."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one Python source line; columns count from 0, the end is exclusive."""

    file: str
    line: int
    column: int = 0
    end_column: int = 0

    def text(self) -> str:
        """The source line without its newline; empty where the file is gone."""
        return linecache.getline(self.file, self.line).rstrip("\n")


@dataclass(frozen=True, slots=True)
class Message:
    """One row: the class to raise and the sentences, with `{names}` for values."""

    kind: type[Error]
    message: str
    label: str = ""
    note: str = ""
    help: str = ""


def error(code: str, span: Span | None = None, **values: object) -> Error:
    """Builds (does not raise) the error of row `code` with `values` filled in."""
    row = MESSAGES[code]

    def fill(template: str) -> str:
        return template.format(**values)

    return row.kind(
        code,
        fill(row.message),
        span=span,
        label=fill(row.label),
        note=fill(row.note),
        help=fill(row.help),
    )


def render(shown: Error) -> str:
    """The terminal form: header, source line with carets, note, help."""
    lines = [f"error[{shown.code}]: {shown.message}"]
    gutter = ""
    if shown.span is not None:
        number = str(shown.span.line)
        gutter = " " * len(number)
        lines.append(f"{gutter}--> {shown.span.file}:{shown.span.line}:{shown.span.column + 1}")
        text = shown.span.text()
        if text:
            carets = "^" * max(1, min(shown.span.end_column, len(text)) - shown.span.column)
            lines.append(f"{gutter} |")
            lines.append(f"{number} | {text}")
            lines.append(f"{gutter} | {' ' * shown.span.column}{carets} {shown.label}".rstrip())
            lines.append(f"{gutter} |")
    elif shown.label:
        lines.append(f" = found: {shown.label}")
    lines += [f"{gutter} = note: {part}" for part in shown.note.splitlines()]
    lines += [f"{gutter} = help: {part}" for part in shown.help.splitlines()]
    return "\n".join(lines)


# SR01 source, SR02 language, SR03 types and shapes, SR04 derivatives, SR05 compiler,
# SR06 runtime and devices, SR07 build and load. Texts: lower case, no full stop.
MESSAGES: dict[str, Message] = {
    # -- SR01 source ---------------------------------------------------------------------------
    "SR0101": Message(
        LanguageError,
        "the source of `{name}` is not available",
        label="`{file}`",
        note="kernels and functions are read from their Python source",
        help="define it in a file; the interactive prompt and `exec` keep no source",
    ),
    "SR0102": Message(
        LanguageError,
        "the source of `{name}` has changed since it was imported",
        label="`def {name}` is not here any more",
        help="import the module again, or restart Python",
    ),
    "SR0103": Message(
        LanguageError,
        "kernels, functions and structs are made from `def` and `class`",
        label="found {found}",
        help="write a `def` with annotated parameters",
    ),
    "SR0104": Message(
        LanguageError,
        "struct `{name}` cannot have {found}",
        help="{help}",
    ),
    # -- SR02 language -------------------------------------------------------------------------
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
        "`{name}` is an {access}",
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
        "this form has a meaning in another place only",
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
        help="give every parameter a name and an annotation, and no default",
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
        help="mend the constants it compares",
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
        "`{name}` is `sad.Const` and needs a number",
        label="found {found}",
        help="pass a Python number: it is compiled in",
    ),
    "SR0230": Message(
        LanguageError,
        "`sad.{name}` works inside kernels only",
        help="call it in a `@sad.kernel` or `@sad.function`",
    ),
    "SR0231": Message(
        LanguageError,
        "wrong number of arguments for `{name}`",
        label="found {found}, wanted {wanted}",
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
        "the middle of this comparison is a call with an effect, and would run twice",
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
    "SR0283": Message(
        LanguageError,
        "`{op}` does not exist for `double` on GPUs",
        label="this operand is `double`",
        help="convert: `double(sad.{op}(float(x)))`, with the precision of float",
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
    # -- SR03 types and shapes -----------------------------------------------------------------
    "SR0301": Message(
        LanguageError,
        "`{found}` is no type here",
        label="{why}",
        help="types are float, int, bool, `sad.uint`, float2 .. float4x4, structs, arrays",
    ),
    "SR0302": Message(
        LanguageError,
        "parameter `{name}` has no annotation",
        help="annotate it: `{name}: float`, `{name}: sad.In[float]`",
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
        "`{type}` takes {wanted} indices, found {found}",
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
        help="mend the constant",
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
        "{found} values for {wanted} targets",
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
        help="give a structured array, a dict of arrays, or a list of structs with these fields",
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
        label="it has {found} bytes, the array needs {needed}",
        help="give the shape that the buffer holds",
    ),
    "SR0360": Message(
        ShapeError,
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
        "an array of {count} elements: indices in kernels end at {limit}",
        help="split the array",
    ),
    "SR0363": Message(
        ShapeError,
        "`{name}` takes the arguments ({wanted})",
        label="found {count} positional ones",
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
        "`{name}` is `{type}`, which has {rank} axes",
        label="found the shape {shape}",
        help="reshape the array, or annotate its rank, such as `sad.In[float, 2]`",
    ),
    "SR0369": Message(
        ShapeError,
        "`{name}` has no field `{field}`",
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
        "`{name}` must be between 0 and {limit} in every extent and in all",
        label="found {found}",
        help="split the launch",
    ),
    "SR0372": Message(
        ShapeError,
        "a call of `{name}` needs `dim`",
        label="it has {count} Index parameters",
        help="say how many threads run: `{name}(.., dim=n)`, or a tuple with one extent an Index",
    ),
    "SR0373": Message(
        ShapeError,
        "`{name}` takes {count} extents, one for each Index parameter",
        label="found dim={dim}",
        help="give one int for each Index",
    ),
    "SR0374": Message(
        ShapeError,
        "`bounds` is 'raise', 'ignore' or 'unchecked'",
        label="found {found}",
        help="'raise' reports at the next synchronisation; 'unchecked' removes the guards",
    ),
    "SR0375": Message(
        ShapeError,
        "`checks={found}` is not available",
        help="leave `checks` out; `sad.gradcheck` judges derivatives",
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
    "SR0378": Message(
        ShapeError,
        "there is no `{op}` of `{left}` and `{right}`",
        note="int mixes into float, scalars spread over vectors; nothing else is converted",
        help="convert one side with `sad.array(.., dtype=..)`, or write a kernel",
    ),
    "SR0379": Message(
        ShapeError,
        "shapes {left} and {right} do not broadcast",
        help="sizes must agree from the last axis on, or be 1",
    ),
    "SR0380": Message(
        ShapeError,
        "an array is sliced by whole numbers, slices, `None` and `...`",
        label="found {found}",
        help="gather by an index array in a kernel: `y[i] = x[index[i]]`",
    ),
    "SR0381": Message(
        ShapeError,
        "{count} indices for an array of shape {shape}",
        help="element axes are not indexed: they belong to the element type",
    ),
    "SR0382": Message(
        ShapeError,
        "`{name}` has the shape {found}, and must have {shape}",
        help="a cotangent or tangent has the shape of what it belongs to",
    ),
    # -- SR04 derivatives ----------------------------------------------------------------------
    "SR0401": Message(
        DerivativeError,
        "`{op}` has no derivative rule",
        note="bug in shaderad, stage rules: every op on floats has a row in `PARTIALS`",
        help="take the value out of the derivative with `sad.detach`, and please report it",
    ),
    "SR0410": Message(
        DerivativeError,
        "`{transform}` of `{function}`, which reads or writes an array differentiably",
        label="inside a kernel there is no buffer for that array's gradient",
        help="pass the elements as arguments, or wrap the reads in `sad.detach(..)`",
    ),
    "SR0411": Message(
        DerivativeError,
        "`{function}` has a forward derivative of its own but no backward one",
        note="reverse mode cannot follow from a custom forward derivative",
        help="add one with `@{function}.backward_derivative`, or use `jvp`",
    ),
    "SR0412": Message(
        DerivativeError,
        "`{function}` has a backward derivative of its own but no forward one",
        note="forward mode cannot follow from a custom backward derivative",
        help="add one with `@{function}.forward_derivative`, or use `vjp`",
    ),
    "SR0413": Message(
        DerivativeError,
        "{mode} of a kernel that calls `bwd_diff`",
        label="its result may reach an output",
        note="reverse mode inside reverse mode would replay the inner gradient",
        help="use `sad.fwd_diff` inside the kernel; it can be differentiated again",
    ),
    "SR0414": Message(
        DerivativeError,
        "`{array}` is written at indices that may repeat, so `{kernel}` has no gradient",
        label="two threads could write one element, and only one of them would win",
        help="write `{array}[sad.unique(j)] = ..` where you know that no index repeats, or "
        "accumulate into a `sad.Add` array",
    ),
    "SR0415": Message(
        DerivativeError,
        "loop has no compile-time bound, and carries `{name}`, whose states reverse mode must keep",
        label="runs a number of times known only at run time",
        help="write `sad.range(.., limit=64)` or `while sad.limit(condition, 64)`",
    ),
    "SR0416": Message(
        DerivativeError,
        "the gradient of `{array}` (`{type}`) would be added atomically in double",
        label="read at other indices than the thread's own",
        note="no runtime has 64-bit float atomics",
        help="read it at the thread's own index only, or pass `float` elements",
    ),
    "SR0450": Message(
        DerivativeError,
        "{what} of an array while a derivative is being taken through it",
        note="a value that leaves the device takes no derivative along",
        help="compute with the array itself, return it, or pass it as an argument of its own",
    ),
    "SR0451": Message(
        DerivativeError,
        "a transform inside of another transform",
        note="derivatives of derivatives are not taken over kernels",
        help="take the inner derivative in a kernel with `sad.fwd_diff`, or before the call",
    ),
    "SR0452": Message(
        DerivativeError,
        "`{name}` is not built like what it belongs to",
        label="found {found}, wanted {wanted}",
        help="give the same tuples, lists, dicts and structs, with arrays or `None` in them",
    ),
    "SR0453": Message(
        DerivativeError,
        "the differentiable argument `{name}` is given by keyword",
        note="gradients come back by position",
        help="pass it by position, or call through a lambda that captures it as a constant",
    ),
    "SR0454": Message(
        DerivativeError,
        "a structured NumPy array as argument of a differentiated Python function",
        note="only a kernel's annotation says which struct it stands for",
        help="make it an array first: `sad.array(data, dtype=Struct)`",
    ),
    "SR0455": Message(
        DerivativeError,
        "`argnums` names positional arguments by number",
        label="found {found}, of {count} arguments",
        help="count from 0, Index and written parameters left out",
    ),
    "SR0456": Message(
        DerivativeError,
        "argument {position} holds no float, so it has no gradient",
        help="leave it out of `argnums`",
    ),
    "SR0457": Message(
        DerivativeError,
        "a gradient is taken of exactly one float",
        label="the result is {found}",
        help="sum the result in the kernel (`sad.Add[float]` with shapes of 1), or use `sad.vjp`",
    ),
    "SR0458": Message(
        DerivativeError,
        "`accumulate` has {found} entries for {wanted} positional arguments",
        help="pass what an earlier call of the pullback returned",
    ),
    "SR0459": Message(
        DerivativeError,
        "{primals} primals and {tangents} tangents",
        help="give one tangent a primal; `None` is zero",
    ),
    "SR0460": Message(
        DerivativeError,
        "a jacobian is taken of one array of floats",
        label="the result is {found}",
        help="return one array, or use `sad.vjp`",
    ),
    "SR0461": Message(
        DerivativeError,
        "`mode` is 'reverse' or 'forward'",
        label="found {found}",
        help="'reverse' suits few results, 'forward' few arguments",
    ),
    "SR0462": Message(
        GradientError,
        "the gradient of `{name}` is wrong at {element}",
        label="the vjp says {found:.6g}, finite differences say {expected:.6g}",
        help="check the custom derivatives; at a kink choose another point, or pass `eps`",
    ),
    "SR0463": Message(
        GradientError,
        "vjp and jvp by {name} disagree",
        label="<pullback(y_bar), x_dot> is {found:.6g}, <y_bar, jvp(x_dot)> is {expected:.6g}",
        help="check that the custom backward and forward derivatives mean the same function",
    ),
    "SR0417": Message(
        DerivativeError,
        "`{kernel}` needs {count} storage buffers in one dispatch, and the device has {limit}",
        note="gradients, cotangents and tangents share one buffer each already where they can",
        help="split the kernel in two, put arrays of one length into one array of structs, or use "
        "a device with more bindings",
    ),
    "SR0418": Message(
        DerivativeError,
        "function `{function}` writes Min or Max array `{array}`, which has no derivative",
        note="the cotangent goes to a thread's first winning write; writes of a function that runs "
        "several times cannot be told apart",
        help="write the array in the kernel itself",
    ),
    "SR0419": Message(
        DerivativeError,
        "{mode} through `fwd_diff` of `{function}`, which has a loop",
        label="this loop would be differentiated twice",
        note="the forward derivative of a loop is not differentiable itself",
        help="unroll the loop with `sad.static_range`",
    ),
    # -- SR05 compiler -------------------------------------------------------------------------
    "SR0501": Message(
        CompileError,
        "the Slang compiler refuses `{entry}` for {target}: {message}",
        note="{number}, in the generated text:\n{excerpt}",
        help="if this line is within what kernels may say, it is a bug in shaderad: report it",
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
        "the Slang compiler took more than {seconds} s over `{entry}` for {target} and was stopped",
        note="the generated module is kept in {path}",
        help="unroll less: use `sad.range` where `sad.static_range` has many iterations; "
        "if the kernel is small, report it with that file attached",
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
    # -- SR06 runtime and devices --------------------------------------------------------------
    "SR0601": Message(
        DeviceError,
        "there is no runtime `{name}`",
        help="use `wgpu`, `slangpy`, or one of them with an adapter, such as `wgpu:0`",
    ),
    "SR0602": Message(
        DeviceError,
        "`{runtime}` has no adapter `{wanted}`",
        label="{found}",
        help="`shaderad doctor` lists drivers and adapters, and says what is missing",
    ),
    "SR0603": Message(
        DeviceError,
        "`{runtime}` could not open `{adapter}`",
        note="{reason}",
        help="`shaderad doctor` lists drivers and adapters, and says what is missing",
    ),
    "SR0604": Message(
        DeviceError,
        "the device `{adapter}` was lost",
        note="{reason}",
        help="open a new device; the content of arrays on the lost one is gone",
    ),
    "SR0605": Message(
        DeviceError,
        "`{adapter}` has no room for {byte_count} more bytes",
        note="{reason}",
        help="drop arrays and pullbacks that are no longer needed, or work on smaller pieces",
    ),
    "SR0606": Message(
        DeviceError,
        "an array of {byte_count} bytes is larger than `{adapter}` lets a kernel reach",
        label="the limit is {limit} bytes an array",
        help="split the array and call the kernel once a piece, or open another device",
    ),
    "SR0607": Message(
        DeviceError,
        "`{program}` binds {count} storage buffers, more than `{adapter}` has",
        label="the limit is {limit}",
        help="put arrays that belong together into one array of structs, or split the kernel",
    ),
    "SR0608": Message(
        DeviceError,
        "`{program}` needs {missing}, which `{adapter}` does not have",
        help="open another device; `shaderad doctor` lists what each of them can do",
    ),
    "SR0609": Message(
        DeviceError,
        "bug in shaderad, stage runtime: `{runtime}` refused a command",
        note="{reason}\nwhat was recorded since the last submission is dropped",
        help="please report it together with the kernel",
    ),
    "SR0610": Message(
        DeviceError,
        "the device `{adapter}` is closed",
        help="open a new one with `sad.open_device()`",
    ),
    "SR0611": Message(
        DeviceError,
        "`{program}` was dispatched with {groups} workgroups",
        label="`{adapter}` takes at most {limit} along one dimension",
        help="choose a smaller `dim`",
    ),
    "SR0612": Message(
        CompileError,
        "`{program}` cannot run on `{adapter}`: wgpu's shader reader refuses it",
        note="{reason}",
        help="open a slangpy device, or simplify the kernel; a report of it is welcome",
    ),
    "SR0613": Message(
        DeviceError,
        "there is no limit `{name}`",
        help="a limit is one of {known}",
    ),
    "SR0614": Message(
        DeviceError,
        "bug in shaderad, stage runtime: slot {slot} of `{program}` is given no buffer",
        help="please report it together with the kernel",
    ),
    "SR0615": Message(
        DeviceError,
        "bug in shaderad, stage runtime: `{program}` takes {expected} bytes of parameters, "
        "given {found}",
        help="please report it together with the kernel",
    ),
    "SR0616": Message(
        DeviceError,
        "`native=` takes a `wgpu.GPUDevice` or a `slangpy.Device`",
        label="this is a `{found}`",
    ),
    "SR0617": Message(
        CompileError,
        "slangpy could not compile `{program}`",
        note="{reason}",
        help="please report it together with the kernel",
    ),
    "SR0618": Message(
        DeviceError,
        "bug in shaderad, stage runtime: bytes {start} to {end} of a buffer of {byte_count}",
        help="please report it together with the kernel",
    ),
    "SR0650": Message(
        DeviceError,
        "`{name}` lives on another device",
        label="it is on {found}, the call runs on {device}",
        help="copy it: `sad.array(x, device=device)`",
    ),
    "SR0651": Message(
        DeviceError,
        "`device` takes what `sad.open_device` returns",
        label="found a `{found}`",
        help="write `device = sad.open_device()` and pass that",
    ),
    "SR0660": Message(
        BoundsError,
        "index {index} is out of range for `{name}` of length {length} in kernel `{kernel}`",
        note="reports since the last synchronisation: {count}; this was the first",
        help='guard the index, or call with `bounds="ignore"`: reads then give 0, writes nothing',
    ),
    "SR0661": Message(
        LimitError,
        "a loop in kernel `{kernel}` ran past its limit of {length} iterations",
        note="reports since the last synchronisation: {count}; the loop was cut off there",
        help="raise `limit`, or let the loop end earlier",
    ),
    "SR0662": Message(
        BoundsError,
        "assertion failed in kernel `{kernel}`: {name}",
        note="reports since the last synchronisation: {count}; this was the first",
    ),
    "SR0663": Message(
        BoundsError,
        "division by zero in kernel `{kernel}`",
        note="reports since the last synchronisation: {count}; the result was taken to be 0",
        help="guard the divisor",
    ),
    "SR0664": Message(
        BoundsError,
        "`{name}` has the length {length} in kernel `{kernel}`, which wants {index}",
        note="reports since the last synchronisation: {count}; this was the first",
        help="pass arrays of the sizes that the kernel expects",
    ),
    "SR0665": Message(
        BoundsError,
        "position {index} is out of range for an axis of length {length}",
        help="positions run from 0, or from the end where negative",
    ),
    # -- SR07 build and load -------------------------------------------------------------------
    "SR0701": Message(
        LanguageError,
        "there is no file `{path}`",
        help="give a Python file, or `FILE.py:NAME` for one of its kernels",
    ),
    "SR0702": Message(
        LanguageError,
        "`{file}` fails when it is imported: {failure}",
        note="a build imports the file, with its folder on the search path",
        help='put what only a run needs under `if __name__ == "__main__":`',
    ),
    "SR0703": Message(
        LanguageError,
        "`{file}` defines no kernel",
        note="kernels that it imports are built where they are named: `{file}:NAME`",
        help="decorate a function at module level with `@sad.kernel`",
    ),
    "SR0704": Message(
        LanguageError,
        "`{name}` is no kernel of `{file}`",
        label="its kernels: {known}",
        help="name one of them, or none for all",
    ),
    "SR0705": Message(
        LanguageError,
        "`{kernel}` needs a value for its constant `{name}`",
        label="`{name}` is `sad.Const[{type}]`",
        help="give one: `--define {name}=VALUE`, or `--define {kernel}.{name}=VALUE`",
    ),
    "SR0706": Message(
        LanguageError,
        "`{text}` defines nothing",
        help="write `--define NAME=VALUE` or `--define KERNEL.NAME=VALUE`, with a Python number, "
        "`True` or `False` as value",
    ),
    "SR0707": Message(
        LanguageError,
        "no constant is called `{name}`",
        note="kernels of this build: {kernels}",
        help="define what is annotated `sad.Const`; other parameters are bound when it runs",
    ),
    "SR0708": Message(
        CompileError,
        "cannot write to the folder `{folder}`: {reason}",
        help="name another folder",
    ),
    "SR0709": Message(
        CompileError,
        "`{file}` is in the way in `{folder}`",
        note="no earlier build wrote it, so it is kept",
        help="move it, or build into another folder",
    ),
    "SR0710": Message(
        DerivativeError,
        "`{kernel}` has no backward: {reason}",
        help="change the kernel, or leave out `--require-bwd` to build its primal alone",
    ),
    "SR0711": Message(
        CompileError,
        "`{name}` holds `double`, which `{target}` does not have",
        help="build for `spirv` or `hlsl`, or use `float`",
    ),
    "SR0712": Message(
        CompileError,
        "{validator} refuses `{entry}` for {target}: {reason}",
        help="this is a bug in shaderad: report it; `--no-validate` writes the files all the same",
    ),
}
