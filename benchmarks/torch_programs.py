"""Programs of `many_steps.py` by PyTorch on the CPU, where that is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import torch
except ImportError:
    torch: Any = None


class TorchProgram:
    """A program that keeps its state and goes on with each step."""

    def __init__(self, program: Callable[..., Callable[[], Any]], inputs: tuple[Any, ...]) -> None:
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
    x, y = torch.from_numpy(points), torch.from_numpy(wanted)

    def step() -> Any:
        adam.zero_grad()
        loss = torch.nn.functional.mse_loss(network(x), y)
        loss.backward()
        adam.step()
        return loss.detach().numpy()

    return step
