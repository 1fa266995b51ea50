"""Threads that share one device, each with arrays and kernels of its own."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import shaderad as sad

COUNT = 256


def kernel_of(power: int) -> Any:
    """A kernel for one thread: ``y = sum of x ** power`` by an Add array, shifted."""

    @sad.kernel
    def powers(i: sad.Index, x: sad.In[float], shift: float, y: sad.Add[float]):
        y[0] += x[i] ** power + shift

    return powers


def work(device: sad.Device, number: int, rounds: int) -> list[str]:
    """What went wrong in `rounds` forward-backward steps of thread `number`."""
    wrong: list[str] = []
    power = 1 + number % 4
    powers = kernel_of(power)
    gradient_of = sad.value_and_grad(powers, argnums=(0, 1))
    for k in range(rounds):
        x = np.linspace(0.5, 1.5, COUNT, dtype=np.float32) + np.float32(0.01 * (number + k))
        value, (x_bar, shift_bar) = gradient_of(
            sad.array(x, device=device), 0.5, dim=COUNT, shapes={"y": (1,)}
        )
        expected = power * x.astype(np.float64) ** (power - 1)
        total = (x.astype(np.float64) ** power).sum() + 0.5 * COUNT
        if not np.allclose((x_bar * 2.0).numpy(), 2.0 * expected, rtol=1e-5):
            wrong.append(f"thread {number}, step {k}: gradient {x_bar.numpy()[:3]}")
        # float32, 256 atomic adds in any order
        if abs(value.item() - total) > 1e-4 * total or shift_bar.item() != COUNT:
            wrong.append(f"thread {number}, step {k}: {value.item()} is not {total}")
    return wrong


def shared(thread_count: int, of_thread: Callable[[int], list[str]]) -> list[str]:
    """Runs a function in each of several threads; what they and their exceptions say."""

    def caught(number: int) -> list[str]:
        try:
            return of_thread(number)
        except Exception:
            return [traceback.format_exc()]

    with ThreadPoolExecutor(thread_count) as pool:
        return [line for lines in pool.map(caught, range(thread_count)) for line in lines]
