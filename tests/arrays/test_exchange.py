"""Arrays of other libraries as arguments, and ours handed to them.

What PyTorch and JAX hand over is imitated by NumPy where they are not installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad

pytestmark = pytest.mark.gpu

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


class Tensor:
    """An array of another library: no sequence, no arithmetic, no subclass of NumPy's."""

    def __init__(self, content: Any, *, dtype: str = "", on_cpu: bool = True) -> None:
        self.content = np.asarray(content)
        self.dtype = dtype or str(self.content.dtype)
        self.on_cpu = on_cpu
        self.requires_grad = False
        self.copy_count = 0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.content.shape

    def float(self) -> Tensor:
        return Tensor(self.content.astype(np.float32))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if self.dtype.endswith("bfloat16") or not self.on_cpu:
            raise TypeError("got an unsupported ScalarType or device")
        return self.content

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0) if self.on_cpu else (2, 0)

    def __dlpack__(self, **options: Any) -> Any:
        if not self.on_cpu and options.get("dl_device") != (1, 0):
            raise BufferError("the content is on another device")
        self.copy_count += 1
        options["dl_device"] = None
        return self.content.__dlpack__(**options)


def tensors() -> dict[str, Any]:
    """Arrays with the content `X`, and how they differ from NumPy's."""
    read_only = X.copy()
    read_only.flags.writeable = False
    made: dict[str, Any] = {
        "imitated": Tensor(X),
        "on another device": Tensor(X, on_cpu=False),
        "bfloat16": Tensor(X, dtype="torch.bfloat16"),
        "read-only": read_only,
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
    }
    try:
        import torch
    except ImportError:
        pass
    else:
        made |= {"torch": torch.tensor(X), "torch, transposed": torch.tensor(X.T.copy()).T,
                 "torch, bfloat16": torch.tensor(X).bfloat16()}  # fmt: skip
    try:
        import jax.numpy as jnp
    except ImportError:
        pass
    else:
        made |= {"jax": jnp.asarray(X), "jax, bfloat16": jnp.asarray(X, jnp.bfloat16)}
    return made


TENSORS = tensors()


@sad.kernel
def doubled(i: sad.Index, j: sad.Index, x: sad.In[float, 2], y: sad.Out[float, 2]):
    y[i, j] = 2.0 * x[i, j]


@pytest.mark.parametrize("name", TENSORS)
def test_every_argument_takes_them(name: str, device: sad.Device) -> None:
    x = TENSORS[name]
    np.testing.assert_array_equal(sad.array(x).numpy(), X)
    np.testing.assert_array_equal(doubled(x).numpy(), 2 * X)
    np.testing.assert_array_equal(sad.sum(x, axis=0).numpy(), X.sum(0))
    np.testing.assert_array_equal((sad.array(X) * x).numpy(), X * X)
    np.testing.assert_array_equal(sad.graph(lambda x: x * x)(x).numpy(), X * X)
    np.testing.assert_array_equal(sad.graph(lambda y: y * x)(X).numpy(), X * X)
    for function in (doubled, lambda x: doubled(x) + x, sad.graph(lambda x: doubled(x))):
        y, pullback = sad.vjp(function, x)
        (x_bar,) = pullback(x)
        assert isinstance(x_bar, sad.Array)
        np.testing.assert_array_equal(x_bar.numpy(), y.numpy())
        _, tangent = sad.jvp(function, (x,), (x,))
        np.testing.assert_array_equal(tangent.numpy(), y.numpy())


@pytest.mark.parametrize("shape", [(), (0, 3), (1,)])
def test_shapes_stay(shape: tuple[int, ...], device: sad.Device) -> None:
    assert sad.array(Tensor(np.ones(shape))).shape == shape
    assert sad.from_dlpack(np.ones(shape, np.float16)).shape == shape


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "uint32", "bool"])
def test_elements_are_those_of_numpy(dtype: str, device: sad.Device) -> None:
    data = np.array([0, 1, 1], dtype)
    assert sad.array(Tensor(data)).dtype == sad.array(data).dtype
    assert sad.from_dlpack(data).dtype == sad.array(data).dtype


def test_positions_may_be_tensors(device: sad.Device) -> None:
    found = sad.array([1.0, 2.0, 3.0])[Tensor(np.array([2, 0]))]
    np.testing.assert_array_equal(found.numpy(), [3.0, 1.0])


def test_a_tensor_that_requires_grad_is_refused_by_name(device: sad.Device) -> None:
    x = Tensor(X)
    x.requires_grad = True
    for call in (sad.array, sad.from_dlpack, sad.sum, doubled, sad.graph(lambda x: x * 2.0)):
        with pytest.raises(sad.DerivativeError, match=r"SR0476.*requires grad") as raised:
            call(x)
        assert ".detach()" in raised.value.help


def test_errors_name_the_dtype_of_the_tensor(device: sad.Device) -> None:
    with pytest.raises(sad.ShapeError, match=r"SR0353[\s\S]*bfloat16"):
        sad.array(Tensor(X, dtype="bfloat16"), dtype=int)
    with pytest.raises(sad.ShapeError, match=r"SR0351[\s\S]*complex"):
        sad.array(Tensor(X + 1j))
    with pytest.raises(sad.ShapeError, match=r"SR0351[\s\S]*without `__dlpack__`"):
        sad.from_dlpack([1.0])


def test_ours_are_handed_over_as_copies(device: sad.Device) -> None:
    for data in (X, X[:0], np.float16([1, 2, 3])[1:], np.array(7), np.array([True, False])):
        x = sad.array(data)
        found = np.from_dlpack(x)
        assert found.dtype == x.numpy().dtype
        np.testing.assert_array_equal(found, data)
    assert x.__dlpack_device__() == (1, 0)
    vectors = np.from_dlpack(sad.array(X, dtype=sad.float3))
    np.testing.assert_array_equal(vectors, X)


def test_what_cannot_be_handed_over_says_why(device: sad.Device) -> None:
    x = sad.array(X)
    with pytest.raises(sad.ShapeError, match=r"SR0384.*without a copy"):
        x.__dlpack__(copy=False)

    @sad.struct
    class Pair:
        a: float
        b: int

    with pytest.raises(sad.ShapeError, match="SR0384") as raised:
        np.from_dlpack(sad.array([Pair(1.0, 2)], dtype=Pair))
    assert "`x.field`" in raised.value.help
    assert np.from_dlpack(sad.array([Pair(1.0, 2)], dtype=Pair).a).tolist() == [1.0]


def test_torch_and_jax_take_ours(device: sad.Device) -> None:
    torch, jnp = pytest.importorskip("torch"), pytest.importorskip("jax.numpy")
    x = sad.array(X)
    np.testing.assert_array_equal(torch.from_dlpack(x).numpy(), X)
    np.testing.assert_array_equal(torch.as_tensor(x).numpy(), X)
    np.testing.assert_array_equal(np.asarray(jnp.from_dlpack(x)), X)
