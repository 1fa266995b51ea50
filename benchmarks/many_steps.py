"""Whole programs of many steps, as users write them, against JAX and PyTorch.

    python benchmarks/many_steps.py [--runtime wgpu slangpy] [--plan] [NAME ...]

Each line comes from a process of its own. Inputs are resident, and each side waits for its result.
Where ours runs on a GPU, JAX and PyTorch do as well if they can; else a line says "cpu".
Results are held against JAX's, which takes part where it is installed, and the loss of the training
against PyTorch's. Ratios are medians over
pairs that ran one after the other; the parabola is also held against a kernel by hand in registers,
dispatched by raw slangpy, and the gradient of the sweeps against the sweeps alone. `--plan` prints
the steps of ours.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise, product
from typing import Any, NamedTuple

import jax_programs
import numpy as np
import torch_programs
from dispatched import dispatched
from programs import smoke as smoke_program
from raw_slang import ByHand, Pass
from timing import Floats, alternated, dispatch_count, median_ratio, on_each, relative_error
from workloads import parabola as parabola_workload

import shaderad as sad
from shaderad import float2

ROUNDS = 25
SECONDS = 6.0
"""For the rounds of a program, of which there are three at least."""
USELESS = 20.0
"""Seconds of a step after which nothing is compared."""


class Program(NamedTuple):
    """A function of arrays as users write it, and the same by others."""

    ours: Callable[..., Any]
    jax: Callable[..., Any]
    inputs: tuple[Any, ...]
    """Trees of NumPy arrays."""
    goals: Mapping[str, float] = {}
    """The largest ratio by the name of a side."""
    dispatch_goal: int | None = None
    dtypes: Mapping[int, Any] = {}
    """Element types of inputs that are not scalars, by position."""
    by_hand: Callable[[], ByHand] | None = None
    part: Callable[..., Any] | None = None
    """A part of `ours` that serves as a side."""
    torch: Callable[..., Callable[[], Any]] | None = None
    """From the inputs a step by PyTorch, whose result is the first of `ours`."""

    def resident(self) -> list[Any]:
        """The inputs on the current device."""
        return [
            mapped(partial(sad.array, dtype=self.dtypes.get(k)), x)
            for k, x in enumerate(self.inputs)
        ]


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """A tree of dicts and tuples with `function` of each leaf."""
    if isinstance(tree, dict):
        return {name: mapped(function, x) for name, x in tree.items()}
    if isinstance(tree, tuple):
        return tuple(mapped(function, x) for x in tree)
    return function(tree)


def leaves(tree: Any) -> Iterator[Floats]:
    """The arrays of a tree as NumPy arrays, dicts by name."""
    if isinstance(tree, dict):
        for name in sorted(tree):
            yield from leaves(tree[name])
    elif isinstance(tree, tuple | list):
        for x in tree:
            yield from leaves(x)
    else:
        yield tree.numpy() if isinstance(tree, sad.Array) else np.asarray(tree)


def drawn(*shape: int, scale: float = 1.0, seed: int = 3) -> Floats:
    return np.random.default_rng(seed).uniform(-scale, scale, shape).astype(np.float32)


# -- a parabola ---------------------------------------------------------------------------------

SAMPLES = 1000
"""Of a thread of the kernel by hand, the best of those tried."""
NEIGHBOURS = 8
"""Adjacent threads of it, which read adjacent samples; 2 at a time, the best of those tried."""


def parabola_loss(p: Any, x: Any, y: Any) -> Any:
    return sad.sum((p[0] * x * x + p[1] * x + p[2] - y) ** 2)


def parabola_by_hand(inputs: Mapping[str, Floats]) -> ByHand:
    """Value and gradient: samples of a thread in registers, then the wave, then atomic adds."""
    threads = len(inputs["x"]) // SAMPLES
    text = f"""
StructuredBuffer<float> parameters;
StructuredBuffer<float> x;
StructuredBuffer<float> y;
RWStructuredBuffer<Atomic<float>> sums;

[shader("compute")]
[numthreads(64, 1, 1)]
void entry(uint3 thread : SV_DispatchThreadID)
{{
    if (thread.x >= {threads})
        return;
    float a = parameters[0], b = parameters[1], c = parameters[2];
    float4 s = 0;
    uint neighbour = thread.x % {NEIGHBOURS};
    uint first = (thread.x - neighbour) * {SAMPLES} + neighbour;
    for (uint k = 0; k < {SAMPLES}; k += 2)
    {{
        [ForceUnroll]
        for (uint j = 0; j < 2; j++)
        {{
            uint i = first + (k + j) * {NEIGHBOURS};
            float X = x[i];
            float r = a * X * X + b * X + c - y[i];
            s += r * float4(2 * X * X, 2 * X, 2, r);
        }}
    }}
    s = float4(WaveActiveSum(s.x), WaveActiveSum(s.y), WaveActiveSum(s.z), WaveActiveSum(s.w));
    if (WavePrefixSum(1u) == 0u)
        for (uint k = 0; k < 4; k++)
            sums[k].add(s[k]);
}}"""
    arrays = {**inputs, "sums": np.zeros(4, np.float32)}
    return ByHand([Pass(text, threads, arrays)], arrays, ("sums",))


def parabola(count: int = 4_000_000) -> Program:
    inputs = parabola_workload(count).inputs
    return Program(
        sad.value_and_grad(parabola_loss),
        jax_programs.parabola,
        tuple(inputs[name] for name in ("parameters", "x", "y")),
        {"by hand": 1.3},
        by_hand=partial(parabola_by_hand, inputs),
    )


# -- training -----------------------------------------------------------------------------------

WIDTHS = (16, 64, 64, 3)
ADAM = sad.optim.Adam(0.001)


def network_loss(layers: Any, points: Any, wanted: Any) -> Any:
    hidden = points
    for w, b in layers[:-1]:
        hidden = sad.relu(hidden @ w + b)
    w, b = layers[-1]
    return sad.mean((hidden @ w + b - wanted) ** 2)


def training_step(points: Any, wanted: Any, layers: Any, state: Any) -> Any:
    loss, gradients = sad.value_and_grad(network_loss)(layers, points, wanted)
    return loss, *ADAM.step(layers, gradients, state)


def drawn_layers(pairs: Any, seed: int) -> Any:
    """Weights and biases of layers, by pairs of widths."""
    return tuple(
        (drawn(m, n, scale=m**-0.5, seed=seed + k), drawn(n, scale=0.1, seed=seed - 1 - k))
        for k, (m, n) in enumerate(pairs)
    )


def training(count: int = 128 * 128) -> Program:
    """A step of Adam on the way, where roots are not 0."""
    pairs = list(pairwise(WIDTHS))
    weight = np.array(0.5, np.float32)
    state = {
        "mean": mapped(lambda x: 0.1 * x, drawn_layers(pairs, 30)),
        "square": mapped(lambda x: x * x + np.float32(0.01), drawn_layers(pairs, 40)),
        "mean_weight": weight,
        "square_weight": weight,
    }
    data = drawn(count, WIDTHS[0]), drawn(count, WIDTHS[-1], seed=4)
    return Program(
        training_step,
        jax_programs.training,
        (*data, drawn_layers(pairs, 20), state),
        {"torch": 3.0},
        torch=torch_programs.training,
    )


# -- smoke --------------------------------------------------------------------------------------


def smoke_inputs(size: int) -> tuple[Floats, Floats, Floats]:
    """Velocities, a puff of smoke, and where it should be."""
    y, x = np.mgrid[0:size, 0:size] / size * 2 * np.pi
    v = 0.5 * np.stack([np.sin(y) + 0.3 * np.cos(2 * x), 0.7 * np.cos(x)], -1)
    d = np.exp(-((x - 3) ** 2 + (y - 3) ** 2)).astype(np.float32)
    return v.astype(np.float32), d, np.roll(d, size // 8, 1)


def smoke(size: int = 64, count: int = 100) -> Program:
    return Program(
        lambda v, d, wanted: smoke_program.loss(count, v, d, wanted),
        partial(jax_programs.smoke, count),
        smoke_inputs(size),
        {"JAX": 8.0},
        dtypes={0: float2},
    )


def smoke_gradient(size: int = 64, count: int = 100) -> Program:
    forward = smoke(size, count)
    return forward._replace(
        ours=sad.value_and_grad(forward.ours), jax=partial(jax_programs.smoke_gradient, count)
    )


def sweeps(size: int = 64, count: int = 1000) -> Program:
    b = drawn(size, size)
    return Program(
        lambda b: sad.mean(smoke_program.pressure(b, count) ** 2),
        partial(jax_programs.sweeps, count),
        (b - b.mean(),),
        {"JAX": 8.0},
    )


def sweeps_gradient(size: int = 64, count: int = 1000) -> Program:
    forward = sweeps(size, count)
    return forward._replace(
        ours=sad.value_and_grad(forward.ours),
        jax=partial(jax_programs.sweeps_gradient, count),
        goals={"JAX": 8.0, "forward": 4.0},
        part=forward.ours,
    )


# -- a recurrent network ------------------------------------------------------------------------


def cell(x: Any, state: Any, w: Any, b: Any) -> Any:
    h, c = state
    n = h.shape[0]
    gates = sad.concatenate([x, h]) @ w + b
    i, f, g, o = (gates[k * n : (k + 1) * n] for k in range(4))
    c = sad.sigmoid(f) * c + sad.sigmoid(i) * sad.tanh(g)
    return sad.sigmoid(o) * sad.tanh(c), c


def lstm_loss(layers: Any, xs: Any, wanted: Any) -> Any:
    def step(states: Any, x: Any) -> Any:
        new = []
        for (w, b), state in zip(layers, states, strict=True):
            new.append(cell(x, state, w, b))
            x = new[-1][0]
        return tuple(new), x

    zeros = sad.zeros(wanted.shape[1])
    _, ys = sad.loop(step, tuple((zeros, zeros) for _ in layers), xs)
    return sad.mean((ys - wanted) ** 2)


def lstm(width: int = 14, count: int = 1024) -> Program:
    return Program(
        lambda xs, wanted, layers: sad.grad(lstm_loss)(layers, xs, wanted),
        jax_programs.lstm,
        (
            drawn(count, width),
            drawn(count, width, seed=4),
            drawn_layers([(2 * width, 4 * width)] * 2, 20),
        ),
        {"JAX": 5.0},
        dispatch_goal=10,
    )


# -- clusters -----------------------------------------------------------------------------------


def newton_direction(points: Any, centres: Any) -> Any:
    """Of the sum of squared distances to the nearest centre, whose Hessian is diagonal."""

    def cost(centres: Any) -> Any:
        distances = sad.sum((points[:, None] - centres[None]) ** 2, axis=2)
        return sad.sum(sad.min(distances, axis=1))

    ones = sad.full(centres.shape, 1.0)
    gradient, diagonal = sad.jvp(sad.grad(cost), (centres,), (ones,))
    return gradient / diagonal


def kmeans(count: int = 10_000, centre_count: int = 100) -> Program:
    points = drawn(count, 16)
    centres = points[:centre_count] + drawn(centre_count, 16, scale=0.1, seed=4)
    return Program(newton_direction, jax_programs.kmeans, (points, centres), {"JAX": 8.0})


# -- an ordinary differential equation ----------------------------------------------------------


def lorenz96(x: Any) -> Any:
    return (sad.roll(x, -1) - sad.roll(x, 2)) * sad.roll(x, 1) - x + 8.0


def runge_kutta(x: Any, count: int, h: float = 0.01) -> Any:
    def step(_: Any, x: Any) -> Any:
        k1 = lorenz96(x)
        k2 = lorenz96(x + 0.5 * h * k1)
        k3 = lorenz96(x + 0.5 * h * k2)
        k4 = lorenz96(x + h * k3)
        return x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    return sad.fori_loop(count, step, x)


def ode(size: int = 10_000, count: int = 10) -> Program:
    return Program(
        sad.grad(lambda x: sad.mean(runge_kutta(x, count) ** 2)),
        partial(jax_programs.ode, count),
        (drawn(size, scale=4.0),),
        {"JAX": 8.0},
    )


# -- all of them --------------------------------------------------------------------------------

PROGRAMS: dict[str, Callable[..., Program]] = {
    "parabola": parabola,
    "training": training,
    "smoke": smoke,
    "smoke-gradient": smoke_gradient,
    "sweeps": sweeps,
    "sweeps-gradient": sweeps_gradient,
    "lstm": lstm,
    "k-means": kmeans,
    "ode": ode,
}


def jax_side(program: Program, *, is_on_gpu: bool = False) -> jax_programs.JaxProgram | None:
    """The program by JAX after a step; says so where it is not installed."""
    if jax_programs.jax is None:
        print("jax not here: `pip install -e .[benchmarks]` adds it")
        return None
    opponent = jax_programs.JaxProgram(program.jax, program.inputs, is_on_gpu=is_on_gpu)
    opponent.step()
    return opponent


def error_of(results: Any, others: Any) -> float:
    """The largest relative error of an array, in trees of the same form."""
    pairs = zip(leaves(results), leaves(others), strict=True)
    return max(relative_error(ours, other) for ours, other in pairs)


def stepped(function: Callable[..., Any], args: list[Any], device: sad.Device) -> Callable[[], Any]:
    """A call as one graph, to the end of its computation."""
    graph = sad.graph(function)

    def step() -> Any:
        results = graph(*args)
        device.synchronize()
        return results

    return step


def compare(
    name: str, runtime: str, *, rounds: int = ROUNDS, plan: bool = False, **sizes: int
) -> None:
    """Prints a line of one program on one runtime, and the steps of its plan if `plan`."""
    program = PROGRAMS[name](**sizes)
    with sad.open_device(runtime) as device:
        args = program.resident()
        sides = {"ours": stepped(program.ours, args, device)}
        try:
            results = sides["ours"]()
            start = time.perf_counter()
            sides["ours"]()
            seconds = time.perf_counter() - start
        except sad.Error as failure:
            print(f"{name:16} {runtime:8} refused: {failure.message}", flush=True)
            return
        count = dispatch_count(device, sides["ours"])
        if seconds > USELESS:
            print(f"{name:16} {runtime:8} {seconds:.0f} s a step, {count} dispatches", flush=True)
            return
        errors = compared(program, results, sides, device)
        if program.part is not None:
            sides["forward"] = stepped(program.part, args, device)
        rounds = min(rounds, max(3, int(SECONDS / 2 / seconds)))
        report(name, runtime, program, alternated(sides, rounds), count, errors)
        if plan:
            print(sad.graph(program.ours).explain(*args))


def compared(
    program: Program, results: Any, sides: dict[str, Callable[[], Any]], device: sad.Device
) -> list[str]:
    """Adds the other sides, and tells how far ours is from them."""
    errors: list[str] = []
    is_on_gpu = device.capabilities.is_parallel

    def name_at(name: str, place: str) -> str:
        return f"{name}, cpu" if is_on_gpu and place == "cpu" else name

    opponent = jax_side(program, is_on_gpu=is_on_gpu)
    if opponent is not None:
        errors.append(f"error {error_of(results, opponent.results()):.0e}")
        sides[name_at("JAX", opponent.place)] = opponent.step
    if program.torch is not None:
        if torch_programs.torch is None:
            print("torch not here: `pip install torch` adds it")
        else:
            other = torch_programs.TorchProgram(program.torch, program.inputs, is_on_gpu=is_on_gpu)
            first = next(leaves(results))
            errors.append(f"torch {relative_error(first, other.first):.0e}")
            sides[name_at("torch", other.place)] = other.step
    if program.by_hand is not None:
        hand = dispatched(program.by_hand(), device)
        hand.step()
        value, gradient = leaves(results)
        sums = np.append(gradient, value)
        errors.append(f"by hand {relative_error(hand.found('sums'), sums):.0e}")
        sides["by hand"] = hand.step
    return errors


def report(
    name: str,
    runtime: str,
    program: Program,
    times: Mapping[str, list[float]],
    count: int,
    errors: list[str],
) -> None:
    """Prints the line of a program; goals that are missed stand at its end."""
    ratios = {side: median_ratio(times["ours"], took) for side, took in times.items()}
    del ratios["ours"]
    parts = [f"{name:16} {runtime:8} {statistics.median(times['ours']):8.2f} ms"]
    parts += [f"{ratio:.2f}x of {side}" for side, ratio in ratios.items()]
    parts += [f"{count} dispatches", *errors]
    missed = [
        f"{goal}x of {side}" for side, goal in program.goals.items() if ratios.get(side, 0.0) > goal
    ]
    goal = program.dispatch_goal
    missed += [f"{goal} dispatches"] if goal is not None and count > goal else []
    parts += [f"above {', '.join(missed)}"] if missed else []
    print("   ".join(parts), flush=True)


def in_child(name: str, runtime: str, *options: str) -> None:
    """A line from a process of its own, which a driver may end."""
    command = [sys.executable, __file__, name, "--runtime", runtime, *options]
    code = subprocess.run(command, check=False).returncode
    if code:
        print(f"{name:16} {runtime:8} ended with exit code {code}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(PROGRAMS), metavar="NAME")
    parser.add_argument("--runtime", nargs="*", default=["wgpu", "slangpy"])
    parser.add_argument("--plan", action="store_true", help="print the steps of ours")
    args = parser.parse_args()
    pairs = list(product(args.names, args.runtime))
    if len(pairs) == 1:
        ((name, runtime),) = pairs
        on_each([runtime], partial(compare, name, plan=args.plan))
        return
    for name, runtime in pairs:
        in_child(name, runtime, *(["--plan"] if args.plan else []))


if __name__ == "__main__":
    main()
