"""Programs of `many_steps.py` by PyTorch, where that is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import torch
except ImportError:
    torch: Any = None


class TorchProgram:
    """A program that keeps its state and goes on with each step."""

    def __init__(
        self,
        program: Callable[..., Callable[[], Any]],
        inputs: tuple[Any, ...],
        *,
        is_on_gpu: bool = False,
    ) -> None:
        """It runs on the CPU unless `is_on_gpu` and PyTorch has CUDA."""
        self.place = "cuda" if is_on_gpu and torch.cuda.is_available() else "cpu"
        with torch.device(self.place):
            self._run = program(*inputs)
        self.first = self._run()
        """The result of the first step, a NumPy array."""

    def step(self) -> None:
        self._run()


def training(points: Any, wanted: Any, layers: Any, state: Any) -> Callable[[], Any]:
    """A step of `torch.optim.Adam` from `layers`; gives the loss. Its state starts from zeros."""
    del state
    modules: list[Any] = []
    for w, b in layers:
        linear = torch.nn.Linear(*w.shape)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(w.T.copy()))
            linear.bias.copy_(torch.from_numpy(b))
        modules += [linear, torch.nn.ReLU()]
    network = torch.nn.Sequential(*modules[:-1])
    adam = torch.optim.Adam(network.parameters(), lr=0.001)
    x, y = torch.tensor(points), torch.tensor(wanted)

    def step() -> Any:
        adam.zero_grad()
        loss = torch.nn.functional.mse_loss(network(x), y)
        loss.backward()
        adam.step()
        return loss.detach().cpu().numpy()

    return step
