"""Kernels in Slang of the user's own: what is wrong in their text and signatures."""

from __future__ import annotations

from functools import partial

from shaderad.diagnostics.errors import CompileError, DerivativeError, LanguageError, Message

_language = partial(Message, LanguageError)
_derivative = partial(Message, DerivativeError)
_compile = partial(Message, CompileError)

MESSAGES: dict[str, Message] = {
    "SR0268": _language(
        "the Slang file {path} cannot be read",
        label="{reason}",
        help="give the path from the folder in which Python runs, or "
        "`Path(__file__).with_name(...)`",
    ),
    "SR0269": _language(
        "`{text}` names Slang that is not part of the source of the kernel",
        note="compiled code is kept by the text of a kernel, which must be complete",
        help="read it with `#include` in a file; the modules of shaderad are imported anyway",
    ),
    "SR0270": _language(
        "`{text}` declares a parameter of the shader, which nobody sets",
        help="make it a parameter of the function and of `sad.slang_kernel`, or write `static "
        "const` or `groupshared` before it",
    ),
    "SR0271": _language(
        "the Slang source has no function `void {name}(...)`",
        help="name a function of the source that returns `void`",
    ),
    "SR0272": _language(
        "`group` gives the threads of a workgroup along each axis of `dim`",
        label="found {found}",
        help="give one to three positive whole numbers whose product is at most 1024, such as "
        "`group=64` or `group=(8, 8)`",
    ),
    "SR0273": _language(
        "a Slang function cannot take `{name}` (`{type}`)",
        label="{why}",
        help="use `sad.In`, `sad.Out`, `sad.Add`, a number, vector, matrix, or a `sad.struct` of "
        "such values",
    ),
    "SR0274": _language(
        "`{function}` does not have the parameters of its kernel",
        label="{why}",
        note="it takes `{wanted}`",
        help="give parameters these names and types, in any order, beside system values such as "
        "`uint3 thread : SV_DispatchThreadID`",
    ),
    "SR0275": _language(
        "two parameters of `{function}` would be called `{name}`",
        note="`_bar` ends the name of a cotangent or gradient, `_dot` that of a tangent",
        help="rename the parameter of the kernel",
    ),
    "SR0276": _language(
        "the Slang kernel `{kernel}` has no `checks`",
        note="shaderad checks values and writes in kernels that it translates",
        help="call it without `checks`, and check the arrays that it returns",
    ),
    "SR0277": _language(
        "`parameters` is a dict from names to annotations",
        label="found {found}",
        help="write `dict(x=sad.In[float], k=float, y=sad.Out[float])`",
    ),
    "SR0278": _language(
        "`{text}` declares an entry point",
        note="shaderad writes the entry point, which calls your function",
        help="remove it; `group` gives the threads of a workgroup, with the last axis first in "
        "`numthreads`",
    ),
    "SR0420": _derivative(
        "the Slang kernel `{kernel}` has no function `{name}`, so there is no {transform} of it",
        note="shaderad does not differentiate Slang that you write",
        help="write that function, and name it: `sad.slang_kernel(..., {name}=...)`",
    ),
    "SR0421": _derivative(
        "`{function}` does not take `{missing}`, so the derivative by `{of}` is not known",
        label="needed to differentiate `{kernel}`",
        help="add the parameter `{parameter}`, or take no derivative by `{of}`: name other "
        "arguments in `argnums`, or wrap it in `sad.detach`",
    ),
    "SR0422": _derivative(
        "the Slang kernel `{kernel}` has no second derivative",
        note="its derivatives are functions that you wrote, which shaderad does not differentiate",
        help="write the kernel with `@sad.kernel`, or its gradient as a kernel of its own",
    ),
    "SR0423": _derivative(
        "threads would add to the gradient of `{name}` (`{type}`) in double",
        note="no runtime has 64-bit float atomics",
        help="pass `float` elements, or take no derivative by it: wrap it in `sad.detach`",
    ),
    "SR0510": _compile(
        "the Slang of `{entry}` does not compile for {target}",
        label="{message}",
        note="{number} of the Slang compiler",
        help="change this line of the source",
    ),
}
