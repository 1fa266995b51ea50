"""A call that does not fit the parameters of a function -> the error that names them."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from shaderad.diagnostics import Error, error
from shaderad.diagnostics.errors import counted

P = ParamSpec("P")
R = TypeVar("R")

_OWN_KEYWORDS = {
    "dim": ("axis",),
    "dims": ("axes", "axis", "shift"),
    "keepdim": ("keepdims",),
    "a": ("x", "keys", "arrays"),
    "input": ("x", "keys"),
    "arr": ("x",),
    "a_min": ("min",),
    "a_max": ("max",),
    "fill_value": ("value",),
    "correction": ("ddof",),
    "lhs": ("x",),
    "rhs": ("w",),
    "body_fun": ("body",),
    "cond_fun": ("cond",),
    "init_val": ("init",),
}
"""Keywords of NumPy, JAX and PyTorch -> our parameters with the same meaning."""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def fitting_call(function: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
    """``function(*args, **keywords)`` with arguments from the user.

    Raises:
        CallError: SR0291 to SR0294 for arguments that do not fit the parameters, SR0295 if it is
            not a function.
    """
    try:
        return function(*args, **keywords)
    except TypeError as failure:
        misfit = call_error(failure, function, args, keywords)
        if misfit is None:
            raise
        raise misfit from None


def bound_arguments(
    function: Callable[..., Any],
    signature: inspect.Signature,
    args: Sequence[Any],
    keywords: Mapping[str, Any],
) -> inspect.BoundArguments:
    """``signature.bind(*args, **keywords)``, where `signature` is that of `function`.

    Raises:
        CallError: SR0291 to SR0294, if the arguments do not fit.
    """
    try:
        return signature.bind(*args, **keywords)
    except TypeError:
        raise _explained(function, signature, args, keywords) from None


def call_error(
    failure: TypeError,
    function: Callable[..., Any],
    args: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Error | None:
    """The error that replaces `failure`; `None` if the arguments fit the parameters of `function`.

    Returns:
        SR0291 for too many positional arguments, SR0292 for an unknown keyword, SR0293 for a
        missing argument, SR0294 for an argument that is given twice, SR0295 if `function`
        is not callable.
    """
    if isinstance(failure, Error):
        return None
    if not callable(function):
        return error("SR0295", found=repr(function))
    # The signature is inspected only after a failure, so that valid calls cost nothing.
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # Functions of extension modules have none.
        return None
    try:
        signature.bind(*args, **keywords)
    except TypeError:
        return _explained(function, signature, args, keywords)
    return None


def unknown_keyword(name: str, keyword: str, parameters: Sequence[str], form: str) -> Error:
    """The error for `keyword`, which is not a parameter of `name`; `form` shows its parameters."""
    if name in ("scan", "associative_scan") and keyword in ("xs", "length"):
        return error("SR0834", name=name, found=f"with `{keyword}=`")
    close = [own for own in _OWN_KEYWORDS.get(keyword, ()) if own in parameters]
    close = close or difflib.get_close_matches(keyword, parameters, 1, cutoff=0.6)
    help_ = f"did you mean `{close[0]}`?" if close else "leave it out"
    return error("SR0292", name=name, keyword=keyword, form=form, help=help_)


def _explained(
    function: Callable[..., Any],
    signature: inspect.Signature,
    args: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Error:
    name = _shown_name(function, args)
    skipped = int(_is_method(function))
    parameters = [*signature.parameters.values()][skipped:]
    count = len(args) - skipped
    form = ", ".join(_forms(parameters))
    positional = [p.name for p in parameters if p.kind in _POSITIONAL]
    if count > len(positional) and all(p.kind is not p.VAR_POSITIONAL for p in parameters):
        by_name = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        help_ = f"pass the others by name: `{by_name[0]}=...`" if by_name else "leave out the rest"
        wanted = counted(len(positional), "positional argument")
        return error("SR0291", name=name, wanted=wanted, found=count, form=form, help=help_)
    names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if all(p.kind is not p.VAR_KEYWORD for p in parameters):
        for keyword in keywords:
            if keyword not in names:
                return unknown_keyword(name, keyword, names, form)
    for twice in positional[:count]:
        if twice in keywords:
            return error("SR0294", name=name, parameter=twice, form=form)
    passed = {*positional[:count], *keywords}
    needed = [p.name for p in parameters if p.name in names and p.default is p.empty]
    missing = ", ".join(f"`{n}`" for n in needed if n not in passed)
    return error("SR0293", name=name, missing=missing, form=form)


def _forms(parameters: Sequence[inspect.Parameter]) -> list[str]:
    """Each parameter as written in a signature, without its annotation."""
    forms: list[str] = []
    is_by_name = False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not is_by_name:
            forms.append("*")
        is_by_name |= p.kind in (p.VAR_POSITIONAL, p.KEYWORD_ONLY)
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else f"={_shown_default(p.default)}"
        forms.append(f"{stars}{p.name}{default}")
    return forms


def _shown_default(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else repr(value)


def _is_method(function: Callable[..., Any]) -> bool:
    """True if the first argument is the object or class that the function belongs to."""
    return isinstance(function, FunctionType) and bool(_owner_and_name(function)[0])


def _owner_and_name(function: FunctionType) -> tuple[str, str]:
    """The class around a function, empty without one, and its own name."""
    owner, _, own = function.__qualname__.rpartition("<locals>.")[2].rpartition(".")
    return owner, own


def _shown_name(function: Callable[..., Any], args: Sequence[Any]) -> str:
    """The name by which users call `function`; for a constructor, that of its class."""
    if not isinstance(function, FunctionType):
        return getattr(function, "__name__", type(function).__name__)
    owner, own = _owner_and_name(function)
    if own == "__call__" and args:
        shown = repr(args[0])  # Types, such as `sad.float3`, show their public name.
        return getattr(args[0], "__name__", shown[9:] if shown.startswith("shaderad.") else owner)
    return owner if own in ("__init__", "__new__") else f"{owner}.{own}".removeprefix(".")
