"""Wrapped functions beside the rest of PyTorch: threads, checkpoints, batches, builds, memory."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

import shaderad as sad
from tests.devices import entered
from tests.wrapped import functions
from tests.wrapped.functions import both, dense, gathered, scan_product, square

EXACT = {"rtol": 1e-5, "atol": 1e-6}
"""Some roundings of float32."""
SOURCE = Path(functions.__file__)

pytestmark = pytest.mark.gpu


def gradient_of(wrapped: Any, x: torch.Tensor) -> torch.Tensor:
    x = x.detach().requires_grad_()
    (found,) = torch.autograd.grad(wrapped(x, 2.0).sum(), x)
    return found


def test_threads_share_a_wrapped_function(device: sad.Device) -> None:
    wrapped = sad.torch.wrap(square, device=device)
    inputs = [torch.rand(5 + k % 3) for k in range(24)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: gradient_of(wrapped, x), inputs))
    for x, by_x in zip(inputs, found, strict=True):
        torch.testing.assert_close(by_x, 4.0 * x, **EXACT)


def test_the_pass_backward_may_run_in_another_thread(device: sad.Device) -> None:
    wrapped = sad.torch.wrap(square)
    x = torch.rand(4, requires_grad=True)
    loss = wrapped(x, 2.0).sum()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(loss.backward).result()
    torch.testing.assert_close(x.grad, 4.0 * x.detach(), **EXACT)


@sad.kernel
def tripled(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = 3.0 * x[i]


class Tripled(torch.nn.Module):
    """A module that contains a wrapped function, and parameters in PyTorch's containers."""

    def __init__(self, wrapped: Any) -> None:
        super().__init__()
        self.named = torch.nn.ParameterDict({"x": torch.tensor([1.0, 2.0])})
        self.wrapped = wrapped

    def forward(self) -> torch.Tensor:
        return self.wrapped(self.named["x"]).sum()


def test_a_module_with_a_wrapped_function_is_copied_and_pickled(device: sad.Device) -> None:
    module = Tripled(sad.torch.wrap(tripled))
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        other().backward()
        torch.testing.assert_close(other.named["x"].grad, torch.tensor([3.0, 3.0]))
    assert module.named["x"].grad is None


def test_containers_of_parameters_are_arguments(device: sad.Device) -> None:
    named = torch.nn.ParameterDict({"x": torch.tensor([1.0, 2.0]), "y": torch.tensor([3.0, 4.0])})
    listed = torch.nn.ParameterList([torch.tensor([5.0, 6.0])])
    wrapped = sad.torch.wrap(lambda p, q: sad.sum(p["x"] * p["y"] * q[0]))
    wrapped(named, listed).backward()
    torch.testing.assert_close(named["x"].grad, torch.tensor([15.0, 24.0]))
    torch.testing.assert_close(listed[0].grad, torch.tensor([3.0, 8.0]))


def test_batches_come_from_a_loader_with_workers(device: sad.Device) -> None:
    wrapped = sad.torch.wrap(square)
    data = torch.rand(16, requires_grad=False)
    loader = DataLoader(TensorDataset(data), batch_size=4, num_workers=2)
    for number, (x,) in enumerate(loader):
        torch.testing.assert_close(gradient_of(wrapped, x), 4.0 * data[4 * number :][:4], **EXACT)


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoints_run_the_function_again(
    device: sad.Device, use_reentrant: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapped, runs = sad.torch.wrap(square), []
    original = type(wrapped.operator.flat).at
    monkeypatch.setattr(
        type(wrapped.operator.flat), "at", lambda *args: runs.append(1) or original(*args)
    )
    x = torch.rand(4, requires_grad=True)
    loss = checkpoint(lambda x: wrapped(x, 2.0) * x, x, use_reentrant=use_reentrant).sum()
    loss.backward()
    torch.testing.assert_close(x.grad, 6.0 * x.detach() ** 2, **EXACT)
    assert len(runs) == (1 if use_reentrant else 2)


def test_vmap_calls_it_once_an_element(device: sad.Device) -> None:
    wrapped = sad.torch.wrap(square)
    x, w = torch.rand(3, 5, requires_grad=True), torch.rand(3)
    found = torch.func.vmap(wrapped, in_dims=(0, 0))(x, w)
    torch.testing.assert_close(found, w[:, None] * x * x, **EXACT)
    (by_x,) = torch.autograd.grad(found.sum(), x)
    torch.testing.assert_close(by_x, 2.0 * w[:, None] * x, **EXACT)
    several = torch.func.vmap(lambda p: sad.torch.wrap(both)(p, 2), in_dims=1)(torch.rand(4, 2, 3))
    assert [x.shape for x in several] == [(2, 4), (2, 4), (2, 4, 3)]


def test_a_batched_kernel_is_one_call(device: sad.Device) -> None:
    batched = sad.torch.wrap(sad.vmap(lambda x: square(x, 2.0, dim=x.shape[0])))
    x = torch.rand(3, 5, requires_grad=True)
    found = batched(x)
    torch.testing.assert_close(found, 2.0 * x * x, **EXACT)
    (by_x,) = torch.autograd.grad(found.sum(), x)
    torch.testing.assert_close(by_x, 4.0 * x, **EXACT)


def test_entries_of_a_build_are_wrapped(device: sad.Device, tmp_path: Path) -> None:
    entries = ("gathered", "scan_product")
    sad.build(SOURCE, tmp_path, entries=entries, targets="wgsl,spirv", validate=False)
    loaded = sad.load(tmp_path)
    to = torch.tensor([0, 2, 0], dtype=torch.int32)
    x = torch.rand(3, requires_grad=True)
    calls = [
        (sad.torch.wrap(gathered, shapes={"total": 3}), loaded.gathered, (x, to)),
        (sad.torch.wrap(scan_product), loaded.scan_product, (x,)),
    ]
    for wrapped, entry, args in calls:
        call = {"shapes": {"total": 3}} if entry is loaded.gathered else {}
        built = sad.torch.wrap(entry, **call)
        torch.testing.assert_close(built(*args), wrapped(*args), **EXACT)
        torch.testing.assert_close(
            torch.autograd.grad(built(*args).sum(), x),
            torch.autograd.grad(wrapped(*args).sum(), x),
            **EXACT,
        )
        tensors, numbers = built.operands(*args)
        checked = torch.library.opcheck(
            built.operator.op, (tensors,), numbers, atol=1e-5, rtol=1e-5
        )
        assert set(checked.values()) == {"SUCCESS"}


def test_second_derivatives_of_a_built_graph_are_refused(
    device: sad.Device, tmp_path: Path
) -> None:
    sad.build(SOURCE, tmp_path, entries="scan_product", targets="wgsl,spirv", validate=False)
    built = sad.torch.wrap(sad.load(tmp_path).scan_product)
    x = torch.rand(3, requires_grad=True)
    (by_x,) = torch.autograd.grad(built(x), x, create_graph=True)
    with pytest.raises(sad.Error, match="SR0733"):
        torch.autograd.grad(by_x.sum(), x)


def test_an_argument_is_copied_in_once_and_a_result_out_once(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapped = sad.torch.wrap(dense)
    x, w, b = (torch.rand(s, requires_grad=True) for s in ((4, 3), (3, 2), (2,)))
    wrapped(x, {"w": w, "b": b})["y"].sum().backward()
    written: list[int] = []
    read: list[int] = []
    runtime = device.runtime
    write, reads = runtime.write, runtime.read

    def noted_write(buffer: Any, offset: int, data: Any) -> Any:
        written.append(len(data))
        return write(buffer, offset, data)

    def noted_read(requests: Any) -> Any:
        read.extend(length for _, _, length in requests)
        return reads(requests)

    monkeypatch.setattr(runtime, "write", noted_write)
    monkeypatch.setattr(runtime, "read", noted_read)
    y = wrapped(x, {"w": w, "b": b}, 1.0)["y"]
    assert (sorted(written), read) == ([8, 24, 48], [32])
    y.backward(torch.ones_like(y))
    assert (sorted(written), read) == ([8, 24, 32, 48], [32, 48, 24, 8])


def test_many_calls_leave_nothing_behind(device: sad.Device) -> None:
    wrapped = sad.torch.wrap(square)
    x = torch.rand(100)
    counts: list[int] = []
    for _ in range(3):
        for _ in range(50):
            gradient_of(wrapped, x)
        gc.collect()
        counts.append(len(gc.get_objects()))
    assert counts[2] - counts[1] < 50


def test_results_keep_what_they_need_until_the_pass_backward(device: sad.Device) -> None:
    wrapped = sad.torch.wrap(square)
    x = torch.rand(3, requires_grad=True)
    loss = wrapped(x, 1.0).sum()
    kept = sum(type(one).__name__ == "TreeAt" for one in gc.get_objects())
    assert kept == 1
    loss.backward()
    gc.collect()
    assert not any(type(one).__name__ == "TreeAt" for one in gc.get_objects())


def test_pytorch_is_imported_where_it_is_asked_for() -> None:
    code = (
        "import sys, shaderad as sad; assert 'torch' not in sys.modules; "
        "sys.modules['torch'] = None\n"
        "try:\n    sad.torch\n"
        "except ImportError as missing:\n"
        "    assert isinstance(missing, sad.DeviceError)\n"
        "    assert 'SR0624' in str(missing) and 'pip install shaderad[torch]' in str(missing)\n"
        "else:\n    raise SystemExit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


ORDERS = {
    "before": """
import torch
import shaderad as sad
device = sad.open_device("slangpy")
import slangpy
assert slangpy.is_torch_bridge_available()
""",
    "after": """
import sys
import shaderad as sad
device = sad.open_device("slangpy")
assert "torch" not in sys.modules
import torch
""",
}
"""Programs that import PyTorch before or after the first device of slangpy is opened."""


@pytest.mark.parametrize("order", ORDERS)
def test_pytorch_may_be_imported_before_and_after_slangpy(order: str) -> None:
    with entered("slangpy"):
        pass
    uses = """
from tests.wrapped.functions import square
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = sad.torch.wrap(square)(x, 2.0)
y.sum().backward()
assert y.tolist() == [2.0, 8.0, 18.0]
assert x.grad.tolist() == [4.0, 8.0, 12.0]
copied = sad.from_dlpack(x.detach())
assert copied.device is device and torch.from_dlpack(copied).tolist() == [1.0, 2.0, 3.0]
assert (sad.array(x.detach()) + copied).numpy().tolist() == [2.0, 4.0, 6.0]
"""
    command = [sys.executable, "-c", ORDERS[order] + uses]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
