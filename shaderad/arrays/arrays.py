"""Arrays that live on a device: element type, shape, and a range of a buffer.

Invariant: an array is a value. Its bytes do not change once they are computed, except by pullbacks
that accumulate ``into=`` it; hence slices share memory, and a launch may be deferred until its
results are read.
"""

from __future__ import annotations

from contextvars import ContextVar
from math import prod
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from shaderad.arrays.containers import register
from shaderad.arrays.dtypes import ArrayAnnotation, element_type, shown_dtype
from shaderad.arrays.operators import ArrayOperators
from shaderad.arrays.pointers import StructArray, is_pointer_structs
from shaderad.arrays.syntax import SYNTAX
from shaderad.arrays.traced_sizes import normalised_shape
from shaderad.device.devices import Device, asked_device, current_device
from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary, api_class
from shaderad.ir import types
from shaderad.language.annotations import HostVector
from shaderad.runtime import buffers, capabilities
from shaderad.runtime.foreign_arrays import is_foreign_array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from shaderad.arrays.tape import Trace
    from shaderad.runtime import DeviceBuffer

__all__ = ["Array", "array", "from_dlpack"]

Shape = tuple[int, ...]

noted: ContextVar[list[Array] | None] = ContextVar("shaderad_noted_arrays", default=None)
"""The list to which `array` appends new arrays, as constants of the function being traced."""
looked_at: ContextVar[list[Array] | None] = ContextVar("shaderad_arrays_looked_at", default=None)
"""The list of arrays read on the host, on whose content the function being traced depends."""


@api_class
class Array(ArrayOperators):
    """An array on a device, made by `sad.array`, array functions and kernel calls.

    Its content never changes, except by a pullback that accumulates ``into=`` it.

    Attributes:
        element: The element type in the IR; users write it as `dtype`.
        device: The device that holds the content.
        given_vector: The type of the host vector or matrix that it was made from, such as
            ``float3(1, 2, 3)``; else `None`.
        trace: The trace of a transformed function that computes with it; else `None`.
    """

    __slots__ = ("__weakref__", "_buffer", "_offset", "_pending", "_shape", "device",
                 "element", "given_vector", "trace")  # fmt: skip

    def __init__(
        self,
        device: Device,
        element: types.Type,
        shape: Shape,
        buffer: DeviceBuffer | None,
        offset: int = 0,
        pending: Callable[[], None] | None = None,
    ) -> None:
        # pending: computes an array that has no buffer yet, when its content is first read.
        self.device = device
        self.element = element
        self._shape = shape
        self._offset = offset
        self.trace: Trace | None = None
        self._buffer = buffer
        self._pending = pending
        self.given_vector: types.Type | None = None

    def __class_getitem__(cls, wanted: Any) -> ArrayAnnotation:
        """The annotation ``sad.Array[float3, "h", "w"]`` of a graph function's argument.

        Extents may be a tuple, as in ``sad.Array[float, (2, "n")]``. ``sad.Array[Lens, ()]`` is one
        value: it has no axes.
        """
        items = cast("tuple[Any, ...]", wanted if isinstance(wanted, tuple) else (wanted,))
        extents = items[1:]
        if len(extents) == 1 and isinstance(extents[0], tuple):
            return ArrayAnnotation(items[0], cast("tuple[Any, ...]", extents[0]))
        return ArrayAnnotation(items[0], extents or None)

    # -- properties ------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """Extents of the axes, those of elements excluded: ``(n,)`` for an array of ``float3`` that
        NumPy shows as ``(n, 3)``.
        """
        return self._shape

    @property
    def dtype(self) -> Any:
        """``float``, ``int``, ``bool``, a `sad.*` type, or a structured NumPy dtype."""
        return shown_dtype(self.element)

    @property
    def ndim(self) -> int:
        """Number of axes, those of elements excluded."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements: the product of `shape`."""
        return prod(self.shape)

    @property
    def byte_count(self) -> int:
        """Bytes of the content."""
        return buffers.byte_count(self.element, self.size)

    @property
    def buffer(self) -> DeviceBuffer:
        """The device memory; the array starts at byte `offset`."""
        if self._pending is not None:
            self.settle()
        if self._buffer is None:
            raise RuntimeError("an array was left without content")
        return self._buffer

    @property
    def offset(self) -> int:
        """Bytes before the first element in `buffer`."""
        if self._pending is not None:
            self.settle()
        return self._offset

    def aligned(self) -> tuple[DeviceBuffer, int]:
        """Its buffer and offset, aligned for programs; those of a copy if necessary."""
        if self._pending is not None:
            self.settle()
        buffer, offset = self._buffer or self.buffer, self._offset
        if not offset or offset % types.alignment(self.element) == 0:
            return buffer, offset
        runtime = self.device.runtime
        copy = runtime.allocate(self.byte_count, zeroed=False)
        runtime.copy(buffer, offset, copy, 0, self.byte_count)
        return copy, 0

    def settle(self) -> None:
        """Computes the content if it is pending."""
        # Read once, because another thread may fill in the array meanwhile.
        pending = self._pending
        if pending is not None:
            pending()

    def fill_in(self, buffer: DeviceBuffer, offset: int = 0) -> None:
        """Gives a pending array its content."""
        self._buffer, self._offset, self._pending = buffer, offset, None

    @property
    def is_pending(self) -> bool:
        """True until the content is computed, which the first read does."""
        return self._pending is not None

    @property
    def native(self) -> Any:
        """The runtime's buffer, with all recorded work submitted; content starts at `offset`."""
        buffer = self.buffer
        self.device.runtime.submit()
        return buffer.shared()

    @staticmethod
    @api_boundary
    def from_native(
        native: Any, dtype: Any = float, shape: Shape | int | None = None,
        device: Device | None = None,
    ) -> Array:  # fmt: skip
        """Wraps a buffer of the runtime's own library without a copy.

        Args:
            native: A `wgpu.GPUBuffer` or `slangpy.Buffer` of the same device.
            dtype: Element type of the content, as for `sad.array`.
            shape: Extents; default: one axis of as many elements as fit.
            device: Default: the current one.

        Raises:
            ShapeError: SR0358 for an unknown `dtype`, SR0359 where the buffer is smaller than the
                shape, SR0370 and SR0371 for anything but extents.
            DeviceError: SR0619, where `native` is no buffer of the device's runtime; SR0651 for a
                `device` that is none.
        """
        device = asked_device(device) or current_device()
        t = element_type(dtype)
        buffer = device.runtime.wrap(native)
        if shape is None:
            shape = (buffer.byte_count // types.byte_count(t),)
        result = Array(device, t, normalised_shape(shape, "shape"), buffer)
        if result.byte_count > buffer.byte_count:
            raise error("SR0359", needed=result.byte_count, found=buffer.byte_count)
        return result

    def __len__(self) -> int:
        if not self.shape:
            raise error("SR0360", what="`len()`")
        return self.shape[0]

    def __summary__(self) -> str:
        """The text in messages: element type, shape and device, without the content."""
        where = self.device.capabilities.runtime
        return f"Array({self.element}, shape={self.shape}, device={where!r})"

    def __repr__(self) -> str:
        """The values with element type and shape; waits for the device, as `numpy` does."""
        from shaderad.arrays.shown import array_repr

        return self.__summary__() if self._is_open() else array_repr(self)

    def __str__(self) -> str:
        """The values as NumPy prints them."""
        from shaderad.arrays.shown import array_text

        return self.__summary__() if self._is_open() else array_text(self)

    def _repr_html_(self) -> str | None:
        """The values, or an array of colours as a picture; nothing while it is traced."""
        if self._is_open():
            return None
        from shaderad.arrays.shown import array_html

        return array_html(self)

    # -- to the host -----------------------------------------------------------------------

    def numpy(self) -> np.ndarray[Any, Any]:
        """The content as a NumPy array; waits for the device.

        Vectors and matrices are trailing axes, structs a structured dtype.

        Raises:
            BoundsError: SR0660, SR0662, SR0663, SR0666, SR0669, reported by a kernel since
                the last synchronisation.
            LimitError: SR0661, likewise.
            GradientError: SR0667, SR0668, likewise.
            DerivativeError: SR0450, while a transformed function computes with the array.
        """
        self.check_readable("`.numpy()`")
        arrays = looked_at.get()
        if arrays is not None:
            arrays.append(self)
        return on_host(self.device, [self])[0]

    def _is_open(self) -> bool:
        """True while a transform computes with this array, so its content must not be read."""
        return self.trace is not None and self.trace.is_open

    def check_readable(self, what: str) -> None:
        """Raises SR0450 while a transform traces this array."""
        if self._is_open():
            raise error("SR0450", what=f"{what} of an array")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        self.check_readable("conversion to NumPy")
        content = self.numpy()
        return content if dtype is None else content.astype(dtype)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A copy on the host as a DLPack capsule: ``torch.from_dlpack(x)``, ``np.from_dlpack(x)``.

        Raises:
            ShapeError: SR0384 for structs, and with ``copy=False``.
        """
        if copy is False:
            raise error("SR0384", what="handed over without a copy",
                        help="leave `copy` out: others get a copy on the host")  # fmt: skip
        if isinstance(buffers.base_of(self.element), types.Struct):
            raise error("SR0384", what=f"handed over where it holds structs: `{self.element}`",
                        help="hand over its fields, `x.field`")  # fmt: skip
        content = self.numpy()
        # As in NumPy, an unsupported device or stream raises a `BufferError`.
        return content.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The host, to which the content is copied."""
        return (1, 0)

    def item(self) -> Any:
        """The one element as a Python number.

        Raises:
            ShapeError: SR0361, unless it holds exactly one scalar.
        """
        self.check_readable("`.item()`")
        if self.size != 1 or not isinstance(self.element, types.Scalar):
            raise error("SR0361", found=self)
        return self.numpy().item()

    def __float__(self) -> float:
        self.check_readable("`float()`")
        return float(self.item())

    def __int__(self) -> int:
        self.check_readable("`int()`")
        return int(self.item())

    def __index__(self) -> int:
        if not types.is_integer(self.element):
            raise TypeError(f"{self.__summary__()} is no whole number")
        return int(self)

    def __bool__(self) -> bool:
        self.check_readable("a condition")
        return bool(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    def __copy__(self) -> Array:
        storage, shape = buffers.to_storage(self.numpy(), self.element, "array")
        return uploaded(self.device, self.element, storage, shape)

    def __deepcopy__(self, memo: object) -> Array:
        return self.__copy__()

    def __reduce__(self) -> Any:
        raise error("SR0384", what="pickled", help="pickle its content: `x.numpy()`")

    # -- parts -----------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Array:
        """The elements at `key`, as in NumPy; ``x["field"]`` is ``x.field``, whatever it is called.

        Differentiable: a cotangent is added where its element was read.

        Args:
            key: Positions, slices, `None`, ``...``, int arrays, or the name of a field. Negative
                positions count from the end; those in int arrays are out of range.

        Raises:
            ShapeError: SR0380 for keys of another sort, SR0381 for too many.
            BoundsError: SR0665 for a position out of range; SR0660 at the next synchronisation for
                one in an int array.
        """
        return SYNTAX.functions.subscripted(self, key)

    def __getattr__(self, name: str) -> Array:
        """``x.y``, ``x.xz``, ``x.field``: a component, components or a field of every element."""
        if name.startswith("_"):
            raise AttributeError(name)  # Arrays lack these protocols of other libraries.
        return SYNTAX.functions.attribute(self, name)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise error("SR0384", what="written to from Python",
                    help="write it in a kernel, as an `sad.Out` array of its call")  # fmt: skip

    def __iter__(self) -> Iterator[Array]:
        if not self.shape:
            raise error("SR0360", what="iteration")
        return (self[k] for k in range(len(self)))

    def noted_as(self, vector: types.Type | None) -> Self:
        """Marks the array as made from a host vector or matrix, and returns it."""
        self.given_vector = vector
        return self

    def viewed(self, element: types.Type, shape: Shape, skipped: int = 0) -> Array:
        """The bytes after the first `skipped`, as another array that no trace records."""
        if self._pending is None:
            return Array(self.device, element, shape, self._buffer, self._offset + skipped)

        def fill() -> None:
            view.fill_in(self.buffer, self.offset + skipped)

        view = Array(self.device, element, shape, None, pending=fill)
        return view


def on_host(device: Device, arrays: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
    """The content of several arrays of one device, as from `Array.numpy`, in one round trip."""
    # Halves may start in the middle of a word, but devices read whole words.
    skipped = [array.offset % buffers.WORD_BYTES if array.size else 0 for array in arrays]
    requests = [
        (array.buffer, array.offset - skip, capabilities.padded(skip + array.byte_count))
        for array, skip in zip(arrays, skipped, strict=True)
        if array.size
    ]
    read = iter(device.read(requests))
    return [
        buffers.from_storage(next(read)[skip:] if array.size else b"", array.element, array.shape)
        for array, skip in zip(arrays, skipped, strict=True)
    ]


register(Array, None)


def is_host_array(x: Any) -> bool:
    """True for arrays of NumPy and of other libraries, on any device."""
    return not isinstance(x, Array) and (isinstance(x, np.ndarray) or is_foreign_array(x))


def vector_of(value: Any) -> types.Type | None:
    """The type of a host vector or matrix, or of the one from which an array was made."""
    if isinstance(value, HostVector):
        return value.element
    return value.given_vector if isinstance(value, Array) else None


@api_boundary
def array(data: Any, dtype: Any = None, device: Device | None = None) -> Array:
    """Puts `data` on a device.

    Args:
        data: An array of NumPy, PyTorch, JAX or whatever has ``__dlpack__`` or ``__array__``, on
            any device, or nested lists; for structs a structured array, a dict of arrays, or a
            list of structs. Structs that hold pointers must be a list; they stay on the host.
            Vectors and matrices are trailing axes: data of shape (n, 3) is n elements of
            ``float3``.
        dtype: Element type: ``float``, ``int``, ``bool``, a `sad.*` type, a NumPy dtype or a
            struct class. Without one it follows from the data; 64-bit numbers become 32-bit.
        device: Default: the current one.

    Returns:
        A copy; `data` itself if it is an array of this type on this device.

    Raises:
        ShapeError: SR0350 to SR0358, where the data does not fit or a value is out of range.
        DerivativeError: SR0476 for a tensor that PyTorch differentiates.
        DeviceError: SR0605, SR0606, where the device has no room for it; SR0651 for a `device`
            that is none.
    """
    return array_called("data", data, dtype, device)


@api_boundary
def from_dlpack(x: Any, device: Device | None = None) -> Array:
    """A copy of an array that has ``__dlpack__``, as `array` makes it: a tensor of PyTorch, JAX.

    Args:
        x: The array, on any device that its library can copy from.
        device: Default: the current one.

    Raises:
        ShapeError: SR0351 for anything else, and as `array`.
        DerivativeError: SR0476 for a tensor that PyTorch differentiates.
    """
    if not hasattr(x, "__dlpack__"):
        raise error("SR0351", name="x", found=f"found a `{type(x).__name__}`, without `__dlpack__`")
    return array_called("x", x, None, device)


def array_called(name: str, data: Any, dtype: Any = None, device: Device | None = None) -> Array:
    """Like `array`, but messages call the data `name`."""
    if is_pointer_structs(data):
        # Pointers are resolved when a kernel reads the structs; users see only the type.
        return cast("Array", StructArray(data))
    if isinstance(data, Array):
        same_type = dtype is None or element_type(dtype) == data.element
        if same_type and (device is None or device is data.device):
            return data
        dtype = data.element if dtype is None else dtype
        data = data.numpy()
    device = asked_device(device) or current_device()
    t = buffers.inferred_type(buffers.as_numpy(data, name)) if dtype is None else None
    t = t or element_type(dtype)
    storage, shape = buffers.to_storage(data, t, name)
    result = uploaded(device, t, storage, shape)
    constants = noted.get()
    if constants is not None:
        constants.append(result)
    return result


def uploaded(device: Device, t: types.Type, storage: np.ndarray[Any, Any], shape: Shape) -> Array:
    """A new array with the content `storage`, which is in storage layout."""
    buffers.check_element_count(shape)
    size = buffers.byte_count(t, prod(shape))
    buffer = device.runtime.allocate(size, zeroed=False)
    if size:
        raw = np.ascontiguousarray(storage).reshape(-1).view(np.uint8)
        if raw.size < size:
            raw = np.concatenate([raw, np.zeros(size - raw.size, np.uint8)])
        device.runtime.write(buffer, 0, raw.data)
    return Array(device, t, shape, buffer)


def copied(source: Array, target: Array) -> None:
    """Records a copy of all bytes of `source` to `target`, unless both have the same buffer."""
    if source.size and source.buffer is not target.buffer:
        source.device.runtime.copy(
            source.buffer, source.offset, target.buffer, target.offset, source.byte_count
        )


def zeros(device: Device, t: types.Type, shape: Shape) -> Array:
    """An array of zeros."""
    buffers.check_element_count(shape)
    return Array(device, t, shape, device.runtime.allocate(buffers.byte_count(t, prod(shape))))
