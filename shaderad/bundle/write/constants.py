"""``--define N=3`` -> the values of `sad.Const` parameters, for each kernel.

``N=3`` sets the parameter `N` of every kernel; ``blur.N=3`` sets and overrides that of `blur`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from shaderad.diagnostics import error

if TYPE_CHECKING:
    from shaderad.decorators import KernelFunction


def parse_defines(texts: Iterable[str]) -> dict[str, object]:
    """``["N=3"]`` -> ``{"N": 3}``; values are Python numbers, bools or tuples of them.

    Raises:
        LanguageError: SR0706, if a text has another form.
    """
    defines: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            defines[name.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            equals = ""
        if not equals or not all(part.isidentifier() for part in name.strip().split(".")):
            raise error("SR0706", text=text)
    return defines


def constants_of(
    kernels: Mapping[str, KernelFunction], defines: Mapping[str, object]
) -> dict[str, dict[str, object]]:
    """The constants of each kernel, by kernel and parameter.

    Raises:
        LanguageError: SR0705, if a parameter has no value; SR0707, if no parameter has the name of
            a define.
    """
    used: set[str] = set()
    constants: dict[str, dict[str, object]] = {}
    for kernel_name, function in kernels.items():
        values = constants.setdefault(kernel_name, {})
        signature = function.signature
        for parameter, span in zip(signature.parameters, signature.spans, strict=True):
            if not parameter.is_const:
                continue
            keys = {f"{kernel_name}.{parameter.name}", parameter.name} & defines.keys()
            if not keys:
                raise error("SR0705", span, kernel=kernel_name, name=parameter.name)
            used |= keys
            values[parameter.name] = defines[max(keys, key=len)]
    for name in defines:
        if name not in used:
            raise error("SR0707", name=name, kernels=", ".join(f"`{k}`" for k in kernels))
    return constants
