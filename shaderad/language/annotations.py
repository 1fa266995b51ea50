"""Python annotations -> IR types, and the Python objects of those types.

Invariant: nothing is resolved before the first use, so annotations may refer to later definitions,
and mean the same with and without ``from __future__ import annotations``.
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product
from typing import Any, cast

import numpy as np

from shaderad.diagnostics import Error, Span, UnknownNameError, counted, error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.ir import types as ir
from shaderad.ir.pointers import holds_pointers, reaches_floats
from shaderad.ir.saturation import to_integer
from shaderad.ir.types import Kind, Scalar
from shaderad.language import help_texts
from shaderad.language.intrinsics import is_device_array

__all__ = [
    "Add",
    "Const",
    "DifferentialPair",
    "In",
    "Index",
    "LocalArray",
    "Max",
    "Min",
    "Out",
    "Pointer",
    "Sampler",
    "Texture1D",
    "Texture2D",
    "Texture2DArray",
    "Texture3D",
    "TextureCube",
]

NUMPY_BY_KIND: dict[Kind, type[np.generic]] = {
    Kind.FLOAT: np.float32,
    Kind.HALF: np.float16,
    Kind.DOUBLE: np.float64,
    Kind.INT: np.int32,
    Kind.UINT: np.uint32,
    Kind.BOOL: np.bool_,
}


class HostVector(np.ndarray[Any, np.dtype[Any]]):
    """A vector or matrix of the host, such as ``float3(1, 2, 3)``.

    Results of arithmetic, slices and copies are ordinary NumPy arrays.
    """

    element: ir.Vector | ir.Matrix | None = None

    def __deepcopy__(self, memo: Any) -> HostVector:
        duplicate = self.copy().view(HostVector)
        duplicate.element = self.element
        return duplicate

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else array

    def __repr__(self) -> str:
        return repr(np.asarray(self))


@dataclass(frozen=True)
class TypeObject:
    # ``sad.float3``: an annotation, a dtype, and a constructor in kernels and in Python. Each class
    # has a `__doc__` of its own, so the property with an instance's text cannot be inherited.

    ir_type: Scalar | ir.Vector | ir.Matrix

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The text of ``help(sad.float3)``."""
        return help_texts.of_type(self.ir_type)

    def __repr__(self) -> str:
        return f"shaderad.{self.ir_type}"

    @api_boundary
    def __call__(self, *parts: object) -> Any:
        """A NumPy value of this type from parts as in a kernel; from arrays, an array."""
        array = cast("Any", next(filter(is_device_array, parts), None))
        if array is not None:
            return array.__constructed__(self, parts)
        shape = shape_of(self.ir_type)
        dtype = np.dtype(NUMPY_BY_KIND[_scalar(self.ir_type).kind])
        flat = np.concatenate([self._numbers(p) for p in parts]) if parts else np.zeros(1)
        saturates = dtype.kind in "iu" and flat.dtype.kind == "f"
        flat = to_integer(flat, dtype) if saturates else flat.astype(dtype)
        count = int(np.prod(shape, dtype=int))
        if flat.size not in (1, count):
            raise error("SR0313", None, type=self.ir_type, found=counted(flat.size, "number"),
                        wanted=f"{count} numbers, or one for all")  # fmt: skip
        data = np.broadcast_to(flat, (count,)).reshape(shape).copy()
        if isinstance(self.ir_type, Scalar):
            return data[()]
        vector = data.view(HostVector)
        vector.element = self.ir_type
        return vector

    def _numbers(self, part: object) -> np.ndarray:
        try:
            numbers = np.ravel(np.asarray(part))
        except Exception:
            numbers = np.zeros(0, object)
        if numbers.dtype.kind not in "biuf":
            raise error("SR0313", None, type=self.ir_type, found=f"a `{type(part).__name__}`",
                        wanted="numbers")  # fmt: skip
        return numbers

    def identity(self) -> np.ndarray:
        """The identity matrix of this type."""
        t = self.ir_type
        if not isinstance(t, ir.Matrix) or t.row_count != t.column_count:
            raise error(
                "SR0310", None, type=t, name="identity", known="none: it is no square matrix"
            )
        return np.eye(t.row_count, dtype=NUMPY_BY_KIND[t.element.kind])


@dataclass(frozen=True)
class Subscripted:
    """An unresolved annotation with arguments: ``sad.In[float3, 2]``."""

    form: AnnotationForm
    arguments: tuple[object, ...]

    def __repr__(self) -> str:
        inner = ", ".join(getattr(a, "__name__", repr(a)) for a in self.arguments)
        return f"{self.form!r}[{inner}]"

    def __call__(self) -> np.ndarray:
        """``sad.LocalArray[float, 8]()`` on the host: zeros."""
        resolved = resolve(self, {}, None)
        if not isinstance(resolved, ir.LocalArray):
            raise error("SR0301", None, found=repr(self), why="it makes no values")
        scalars = {s.kind for s in ir.scalars(resolved)}
        if len(scalars) != 1:
            raise error("SR0301", None, found=repr(self), why="only arrays of numbers exist here")
        return np.zeros(shape_of(resolved), NUMPY_BY_KIND[scalars.pop()])


@dataclass(frozen=True)
class AnnotationForm:
    # An annotation that takes arguments in brackets: ``sad.In``, ``sad.LocalArray``, ...

    name: str

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The text of ``help(sad.In)``."""
        return help_texts.ANNOTATIONS[self.name]

    def __repr__(self) -> str:
        return f"shaderad.{self.name}"

    def __getitem__(self, arguments: object) -> Subscripted:
        if isinstance(arguments, tuple):
            return Subscripted(self, cast("tuple[object, ...]", arguments))
        return Subscripted(self, (arguments,))


@dataclass(frozen=True)
class IndexMark:
    # ``sad.Index``: the annotation of the thread's own index.

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The text of ``help(sad.Index)``."""
        return help_texts.ANNOTATIONS["Index"]

    def __repr__(self) -> str:
        return "shaderad.Index"


@dataclass(frozen=True)
class ResourceMark:
    # ``sad.Sampler``: the annotation of a resource without elements.

    name: str

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The text of ``help(sad.Sampler)``."""
        return help_texts.ANNOTATIONS[self.name]

    def __repr__(self) -> str:
        return f"shaderad.{self.name}"


@dataclass(frozen=True)
class ConstType(ir.Type):
    """A resolved ``sad.Const[T]``; never part of the IR."""

    value: Scalar
    enum: type[Enum] | None = None
    """The class if `T` is an enum; `value` is then the type of its members."""

    def __str__(self) -> str:
        return f"Const[{self.enum.__name__ if self.enum else self.value}]"


@dataclass(frozen=True)
class IndexType(ir.Type):
    """A resolved ``sad.Index``; never part of the IR."""

    def __str__(self) -> str:
        return "Index"


Index = IndexMark()
Sampler = ResourceMark("Sampler")
In, Out, Add, Min, Max = (AnnotationForm(access.value) for access in ir.ANNOTATED)
Const, LocalArray, DifferentialPair, Pointer = map(
    AnnotationForm, ("Const", "LocalArray", "DifferentialPair", "Pointer")
)


Texture1D, Texture2D, Texture2DArray, Texture3D, TextureCube = map(
    AnnotationForm, ("Texture1D", "Texture2D", "Texture2DArray", "Texture3D", "TextureCube")
)


def _type_objects() -> dict[str, TypeObject]:
    counts = (2, 3, 4)
    floats = (Kind.FLOAT, Kind.HALF, Kind.DOUBLE)
    all_types = (
        *(ir.UINT, ir.HALF, ir.DOUBLE),
        *(ir.Vector(Scalar(kind), n) for kind, n in product(Kind, counts)),
        *(ir.Matrix(Scalar(kind), r, c) for kind, r, c in product(floats, counts, counts)),
    )
    return {str(t): TypeObject(t) for t in all_types}


TYPES: Mapping[str, TypeObject] = types.MappingProxyType(_type_objects())
"""Every type object by its public name: ``float2`` ... ``double4x4``, ``half, double, uint``."""

BUILTIN_TYPES: Mapping[type, Scalar] = types.MappingProxyType(
    {builtins.float: ir.FLOAT, builtins.int: ir.INT, builtins.bool: ir.BOOL}
)
"""The IR types of Python's own types."""
_ACCESS = {access.value: access for access in (*ir.ANNOTATED, *ir.OF_OUR_KERNELS)}
STRUCT_ATTRIBUTE = "__shaderad_struct__"


def _scalar(t: ir.Type) -> Scalar:
    scalar = ir.scalar_of(t)
    assert scalar is not None
    return scalar


def shape_of(t: ir.Type) -> tuple[int, ...]:
    """The NumPy axes of one element of `t`; structs have none."""
    if isinstance(t, ir.Vector):
        return (t.count,)
    if isinstance(t, ir.Matrix):
        return (t.row_count, t.column_count)
    if isinstance(t, ir.LocalArray):
        return (t.count, *shape_of(t.element))
    return ()


def value_type(annotation: object) -> ir.Type | None:
    """The type that a Python object denotes: ``float``, ``sad.float3``, a struct class."""
    if isinstance(annotation, TypeObject):
        return annotation.ir_type
    if isinstance(annotation, type):
        if annotation in BUILTIN_TYPES:
            return BUILTIN_TYPES[annotation]
        info = annotation.__dict__.get(STRUCT_ATTRIBUTE)
        return None if info is None else info.ir_type
    return None


def resolve(
    annotation: object,
    namespace: Mapping[str, object],
    span: Span | None,
    structs: dict[ir.Struct, type] | None = None,
) -> ir.Type:
    """The IR type of an annotation; strings are evaluated in `namespace`.

    Args:
        annotation: The Python object, or its text.
        namespace: Values of the names in the text.
        span: The place that errors show.
        structs: Gets the class of every struct that the annotation contains.

    Raises:
        LanguageError: SR0301 where it is no type of the kernel language.
    """
    return _Resolver(namespace, span, {} if structs is None else structs).resolve(annotation)


def resource_type(annotation: object) -> ir.ResourceType | None:
    """The type of a texture or sampler; `None` for any other annotation."""
    form = annotation.form if isinstance(annotation, Subscripted) else annotation
    is_resource = isinstance(form, AnnotationForm | ResourceMark) and form.name in ir.RESOURCES
    return cast("Any", resolve(annotation, {}, None)) if is_resource else None


class _Resolver:
    """Resolves the annotations of one place."""

    def __init__(
        self, namespace: Mapping[str, object], span: Span | None, structs: dict[ir.Struct, type]
    ) -> None:
        self._namespace = namespace
        self._span = span
        self._structs = structs

    def resolve(self, annotation: object) -> ir.Type:
        annotation = self._evaluated(annotation)
        t = value_type(annotation)
        if t is not None:
            if isinstance(t, ir.Struct) and isinstance(annotation, type):
                self._structs[t] = annotation
                self._structs.update(annotation.__dict__[STRUCT_ATTRIBUTE].nested)
            return t
        if annotation is None or annotation is type(None):
            return ir.VOID
        if isinstance(annotation, IndexMark):
            return IndexType()
        if isinstance(annotation, ResourceMark):
            return ir.RESOURCES[annotation.name]
        if isinstance(annotation, types.GenericAlias) and annotation.__origin__ is tuple:
            return ir.Tuple(tuple(map(self.resolve, annotation.__args__)))
        if isinstance(annotation, Subscripted):
            return self._const(annotation) if annotation.form == Const else self._form(annotation)
        text = annotation.__name__ if isinstance(annotation, type) else repr(annotation)
        raise self._error(text, _remedy(annotation))

    def _error(self, annotation: object, why: str) -> Error:
        return error("SR0301", self._span, found=annotation, why=why)

    def _evaluated(self, text: object) -> object:
        """The object that a text stands for; other objects as they are."""
        if not isinstance(text, str):
            return text
        try:
            return eval(text, {"__builtins__": builtins}, self._namespace)
        except UnknownNameError as failure:
            why = f"{failure.message}: {failure.help}" if failure.help else failure.message
            raise self._error(text, why) from failure
        except Exception as failure:
            raise self._error(text, str(failure)) from failure

    def _const(self, annotation: Subscripted) -> ir.Type:
        (argument, *more) = annotation.arguments
        if more:
            raise self._error(annotation, _WRONG_COUNT)
        argument = self._evaluated(argument)
        enum = cast("type[object]", argument) if isinstance(argument, type) else object
        if issubclass(enum, Enum):
            return ConstType(self._scalar_of_enum(enum), enum)
        inner = self.resolve(argument)
        if not isinstance(inner, Scalar):
            why = "Const takes int, float, bool, uint, ..., or an enum of numbers"
            raise self._error(f"Const[{inner}]", why)
        return ConstType(inner)

    def _scalar_of_enum(self, enum: type[Enum]) -> Scalar:
        """The type of the members of an enum: bool, int, or float where ints and floats mix."""
        kinds: set[type] = {type(member.value) for member in enum}
        if kinds <= {builtins.bool}:
            return ir.BOOL
        if kinds <= {builtins.int}:
            return ir.INT
        if kinds <= {builtins.int, builtins.float}:
            return ir.FLOAT
        raise self._error(f"Const[{enum.__name__}]", "not every member of this enum is a number")

    def _form(self, annotation: Subscripted) -> ir.Type:
        """The type of any form but `Const`."""
        form, arguments = annotation.form, annotation.arguments
        inner = self.resolve(arguments[0])
        is_sized = form.name in _ACCESS or form == LocalArray
        if len(arguments) > 1 + is_sized or (form == LocalArray and len(arguments) != 2):
            raise self._error(annotation, _WRONG_COUNT)
        size = self._evaluated(arguments[1]) if len(arguments) == 2 else 1
        if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 1:
            raise self._error(annotation, "a size is a positive whole number")
        size = int(cast("int", size))
        if form == DifferentialPair:
            if isinstance(inner, ir.ResourceType):
                raise self._error(annotation, _NO_PAIR)
            if not reaches_floats(inner) or isinstance(inner, ir.Pair):
                raise self._error(annotation, f"`{inner}` holds no float")
            return ir.Pair(inner)
        why = _why_no_element(form, inner, size)
        if why:
            raise self._error(annotation, why)
        if form == LocalArray:
            return ir.LocalArray(inner, size)
        if form == Pointer:
            return ir.Pointer(inner)
        if form.name in ir.RESOURCES:
            return replace(ir.RESOURCES[form.name], element=inner)
        return ir.BufferType(_ACCESS[form.name], inner, size)


_NO_PAIR = "textures have no pair: read them outside, and pass what was read"
_WRONG_COUNT = "wrong number of entries in `[]`"
_POINTERS = "pointers lie in structs, and those behind `sad.Pointer`, in `sad.In` or in a parameter"


def _why_no_element(form: AnnotationForm, t: ir.Type, size: int) -> str:
    """The reason why a `form` takes no elements of type `t`; empty if it does."""
    if isinstance(t, ir.BufferType | ir.Void | ir.Tuple | ir.Pair | ConstType | IndexType):
        return f"`{t}` is no element type"
    if isinstance(t, ir.Struct) and t.holds_buffers:
        return f"`{t}` holds arrays: pass it as a parameter of its own"
    if holds_pointers(t):
        if form not in (In, Pointer) or not isinstance(t, ir.Struct):
            return _POINTERS
        if size > 1:
            return "arrays of structs that hold pointers have one axis"
    if isinstance(t, ir.LocalArray) and form != LocalArray:
        return "give the array one more axis, or put the local array in a struct"
    resource = ir.RESOURCES.get(form.name)
    if resource is not None and t not in resource.elements:
        return f"texels are {', '.join(f'`{texel}`' for texel in resource.elements)}"
    if form in (Min, Max) and (ir.scalar_of(t) is None or ir.is_bool(t)):
        return "Min and Max take numbers and vectors"
    return ""


_CONTAINERS = (list, tuple, dict, set, np.ndarray)
_CONTAINER = (
    "arrays are `sad.In[float]`, `sad.Out[float]`, `sad.LocalArray[float, 8]`; "
    "several results `tuple[A, B]`"
)


def _remedy(annotation: object) -> str:
    if isinstance(annotation, AnnotationForm):
        return f"it needs an element type: `{annotation.name}[float]`"
    if isinstance(annotation, type) and issubclass(annotation, np.generic):
        return "NumPy's scalar types have names of their own here: float, int, uint, half, double"
    if isinstance(annotation, types.GenericAlias) or annotation in _CONTAINERS:
        return _CONTAINER
    if isinstance(annotation, type):
        return "decorate the class with `@sad.struct`"
    return ""
