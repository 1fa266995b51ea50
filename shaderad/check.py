"""`gradcheck`: derivatives against finite differences, and the vjp against the jvp.

With ``L(x) = <y_bar, f(x)>`` for a random cotangent `y_bar` and ``g = pullback(y_bar)``:
``(L(x + h s) - L(x - h s)) / 2h`` must equal ``<g, s>`` for random signs `s` and for single
elements, and ``<y_bar, jvp(s)>`` must equal ``<g, s>``. Steps are measured after rounding to the
argument's own type, and what float32 rounding can do to a difference is allowed for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from shaderad.diagnostics import DerivativeError, error
from shaderad.frontend.decorators import KernelFunction
from shaderad.frontend.structs import info_of
from shaderad.ir import nodes, types
from shaderad.ir.walk import called
from shaderad.session import trees
from shaderad.session.arguments import rebuilt, struct_fields
from shaderad.session.arrays import Array, array
from shaderad.session.call import is_given
from shaderad.session.linearised import Linearised, linearised
from shaderad.session.vectors import Vector, as_float32, filled, floats_of, has_floats

DEFAULT_RTOL = 1e-2
DEFAULT_ATOL = 1e-4
# Relative to the argument. Large steps keep rounding small, small ones stay clear of kinks; a
# right gradient agrees at one of them.
STEPS = (1e-2, 2e-3, 5e-4)
# A few units in the last place of a float32 result, summed as independent errors.
FLOAT32_NOISE = 4e-7
# The identity compares two exact derivatives: only rounding separates them.
IDENTITY_RTOL = 2e-3
ELEMENT_LIMIT = 32
"""Arguments up to this size are checked element by element."""
SAMPLE_COUNT = 8
"""Elements of larger arguments that are checked one by one."""
SEARCH_LIMIT = 256
"""Elements that are tried to find the one that a failing direction points at."""


@dataclass
class ArgumentReport:
    """What was compared for one argument."""

    name: str
    size: int
    comparisons: int = 0
    worst: float = 0.0
    """Largest difference, as a fraction of what was allowed."""


@dataclass
class Report:
    """What `gradcheck` compared. Where it did not raise, everything agreed."""

    function: str
    arguments: list[ArgumentReport] = field(default_factory=list[ArgumentReport])
    is_exempt: bool = False
    """A function in it has a derivative with ``check=False``: nothing was compared."""
    identity: str = "vjp agrees with jvp"

    def __repr__(self) -> str:
        if self.is_exempt:
            return f"gradcheck of {self.function}: exempt by backward_derivative(check=False)"
        lines = [f"gradcheck of {self.function}: {self.identity}"]
        lines += [
            f"  {one.name}: {one.comparisons} comparisons over {one.size} floats, "
            f"worst at {one.worst:.0%} of the tolerance"
            for one in self.arguments
        ]
        return "\n".join(lines)


@dataclass
class _Slot:
    """One differentiable leaf of the arguments as a vector of floats."""

    name: str
    like: Any
    data: NDArray[Any]
    position: int
    values: Vector

    def rounded(self, values: Vector) -> Vector:
        """`values` as the device will hold them."""
        return floats_of(filled(self.data, values))

    def leaf(self, values: Vector) -> Any:
        """The argument with other floats in it."""
        data = filled(self.data, values)
        if isinstance(self.like, Array):
            return array(data, dtype=self.like.element, device=self.like.device)
        return data if isinstance(self.like, np.ndarray | list | tuple) else float(data)


@dataclass
class _Problem:
    """A function at a point, with a random cotangent."""

    function: Callable[..., Any]
    args: Sequence[Any]
    call: dict[str, Any]
    slots: list[_Slot]
    cotangent: Vector
    gradients: list[Vector]
    rtol: float
    atol: float
    steps: Sequence[float]

    def results(self, slot: int, values: Vector) -> Vector:
        changed = self.slots[slot].leaf(values)
        leaves = [changed if k == slot else one.like for k, one in enumerate(self.slots)]
        args = _with_leaves(self.args, leaves)
        return _result_floats(linearised(self.function, args, self.call, is_lazy=False).out)


def gradcheck(
    function: Callable[..., Any],
    *args: Any,
    eps: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    **call: Any,
) -> Report:
    """Judges the derivatives of `function` at `args`.

    Args:
        function: A kernel, or a Python function that calls kernels.
        args: Its positional arguments.
        eps: Step of the finite differences, relative to the argument (at least to 1). Default:
            several, of which one must agree.
        rtol: Largest relative difference; default 1e-2, for float32.
        atol: Largest absolute difference; default 1e-4.
        call: Call keywords such as ``dim``.

    Returns:
        What was compared; its ``repr`` can be read.

    Raises:
        GradientError: SR0462 where a gradient disagrees with finite differences, SR0463 where
            the vjp disagrees with the jvp.
        DerivativeError: Where the function cannot be differentiated.
    """
    name = getattr(function, "__name__", type(function).__name__)
    args = tuple(_as_data(function, one) for one in args)
    at = linearised(function, args, call, is_lazy=False)
    report = Report(name)
    if any(_is_exempt(launch.kernel) for launch in at.launches):
        report.is_exempt = True
        return report
    random = np.random.default_rng(0)
    slots = _slots(function, args)
    cotangent = random.uniform(0.5, 1.5, _result_floats(at.out).size)
    out_bar = _as_tree(at.out, cotangent)
    pulled = at.pull(out_bar, range(len(args)), None)
    problem = _Problem(
        function=function,
        args=args,
        call=call,
        slots=slots,
        cotangent=as_float32(cotangent),
        gradients=_gradient_vectors(slots, args, pulled),
        rtol=DEFAULT_RTOL if rtol is None else rtol,
        atol=DEFAULT_ATOL if atol is None else atol,
        steps=STEPS if eps is None else (eps,),
    )
    for k in range(len(slots)):
        report.arguments.append(_check_slot(problem, k, random))
    report.identity = _check_identity(at, problem, random)
    return report


# -- finite differences -----------------------------------------------------------------------


def _check_slot(problem: _Problem, k: int, random: np.random.Generator) -> ArgumentReport:
    slot = problem.slots[k]
    size = slot.values.size
    report = ArgumentReport(slot.name, size)
    if size > ELEMENT_LIMIT:
        for _ in range(2):
            signs = random.choice([-1.0, 1.0], size)
            if not _agrees(problem, k, signs, report):
                _search(problem, k, signs, report)
        chosen = random.choice(size, SAMPLE_COUNT, replace=False)
    else:
        chosen = np.arange(size)
    for element in chosen:
        _check_element(problem, k, int(element), report)
    return report


def _search(problem: _Problem, k: int, signs: Vector, report: ArgumentReport) -> None:
    """Finds the element that makes a direction disagree; kinks may add up without one."""
    size = signs.size
    for element in range(min(size, SEARCH_LIMIT)):
        _check_element(problem, k, element, report)
    if size > SEARCH_LIMIT:
        found, expected, _ = _compare(problem, k, signs, problem.steps[-1])
        raise error("SR0462", name=report.name, element="a random direction", found=found,
                    expected=expected)  # fmt: skip


def _check_element(problem: _Problem, k: int, element: int, report: ArgumentReport) -> None:
    unit = np.zeros(problem.slots[k].values.size)
    unit[element] = 1.0
    if not _agrees(problem, k, unit, report):
        found, expected, _ = _compare(problem, k, unit, problem.steps[-1])
        raise error("SR0462", name=report.name, element=f"float {element}", found=found,
                    expected=expected)  # fmt: skip


def _agrees(problem: _Problem, k: int, direction: Vector, report: ArgumentReport) -> bool:
    report.comparisons += 1
    best = np.inf
    for step in problem.steps:
        found, expected, noise = _compare(problem, k, direction, step)
        largest = max(abs(found), abs(expected))
        allowed = problem.rtol * largest + problem.atol + noise
        if abs(found - expected) <= allowed:
            best = abs(found - expected) / allowed
            break
    report.worst = max(report.worst, float(best)) if np.isfinite(best) else report.worst
    return bool(np.isfinite(best))


def _compare(
    problem: _Problem, k: int, direction: Vector, step: float
) -> tuple[float, float, float]:
    """The gradient's answer, the difference quotient, and what rounding may do to the latter."""
    slot = problem.slots[k]
    scale = step * np.maximum(1.0, np.abs(slot.values))
    high = slot.rounded(slot.values + scale * direction)
    low = slot.rounded(slot.values - scale * direction)
    upper, lower = problem.results(k, high), problem.results(k, low)
    # One number to divide both sides by keeps directions with different steps comparable.
    width = 2 * float(np.max(scale[direction != 0], initial=step))
    changed = upper != lower
    weighted = problem.cotangent * np.maximum(np.abs(upper), np.abs(lower))
    noise = FLOAT32_NOISE * float(np.linalg.norm(weighted[changed])) / width
    expected = float(np.dot(problem.cotangent, upper - lower)) / width
    found = float(np.dot(problem.gradients[k], high - low)) / width
    return found, expected, noise


# -- vjp against jvp --------------------------------------------------------------------------


def _check_identity(at: Linearised, problem: _Problem, random: np.random.Generator) -> str:
    directions = [as_float32(random.choice([-1.0, 1.0], one.values.size)) for one in problem.slots]
    leaves = [
        _derivative_leaf(one, values) for one, values in zip(problem.slots, directions, strict=True)
    ]
    try:
        pushed = at.push(_with_leaves(problem.args, leaves, others=None))
    except DerivativeError as refused:
        return f"no jvp to compare with ({refused.code})"
    tangent = _derivative_floats(at.out, pushed)
    forward = float(np.dot(problem.cotangent, tangent))
    pairs = list(zip(problem.gradients, directions, strict=True))
    backward = float(sum(np.dot(one, way) for one, way in pairs))
    size = float(np.sum(np.abs(problem.cotangent * tangent)))
    size += float(sum(np.sum(np.abs(one * way)) for one, way in pairs))
    if not abs(forward - backward) <= IDENTITY_RTOL * size + problem.atol:
        names = ", ".join(one.name for one in problem.slots)
        raise error("SR0463", name=names, found=backward, expected=forward)
    return "vjp agrees with jvp"


def _derivative_leaf(slot: _Slot, values: Vector) -> Any:
    blank = np.zeros(slot.data.shape, slot.data.dtype)
    data = filled(blank, values)
    return data if isinstance(slot.like, Array | np.ndarray | list | tuple) else float(data)


# -- vectors <-> arguments and results --------------------------------------------------------


def _as_data(function: Callable[..., Any], given: Any) -> Any:
    """For kernels a tuple of numbers is a vector; elsewhere it is a container of arguments."""
    fields = struct_fields(given)
    if fields is not None and info_of(given) is not None:
        return rebuilt(given, {n: _as_data(function, value) for n, value in fields.items()})
    if isinstance(function, KernelFunction) and _is_sequence_of_floats(given):
        return np.asarray(given, np.float32)
    return given


def _is_sequence_of_floats(given: Any) -> bool:
    if not isinstance(given, tuple | list):
        return False
    try:
        return np.asarray(cast("Any", given)).dtype.kind == "f"
    except ValueError:
        return False


def _slots(function: Callable[..., Any], args: Sequence[Any]) -> list[_Slot]:
    slots: list[_Slot] = []
    for position, (name, given) in enumerate(zip(_names(function, args), args, strict=True)):
        for path, leaf in _leaf_paths(given):
            data = leaf.numpy() if isinstance(leaf, Array) else np.asarray(leaf)
            if has_floats(data) and not isinstance(leaf, int):
                slots.append(_Slot(name + path, leaf, data, position, floats_of(data)))
    return slots


def _leaf_paths(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    parts = trees.children(tree)
    if parts is None:
        yield path, tree
        return
    for key, part in parts.items():
        step = f".{key}" if struct_fields(tree) is not None else f"[{key!r}]"
        yield from _leaf_paths(part, path + step)


def _names(function: Callable[..., Any], args: Sequence[Any]) -> list[str]:
    if isinstance(function, KernelFunction):
        return [p.name for p in function.signature.parameters if is_given(p)][: len(args)]
    try:
        known = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        known = []
    return [known[k] if k < len(known) else f"argument {k}" for k in range(len(args))]


def _with_leaves(args: Sequence[Any], leaves: Sequence[Any], **fixed: Any) -> list[Any]:
    """`args` with the differentiable leaves replaced, in order; others by ``others`` if given."""
    remaining = iter(leaves)

    def replaced(leaf: Any) -> Any:
        data = leaf if isinstance(leaf, Array) else np.asarray(leaf)
        is_slot = not isinstance(leaf, int) and (
            types.is_differentiable(data.element) if isinstance(data, Array) else has_floats(data)
        )
        return next(remaining) if is_slot else fixed.get("others", leaf)

    return [trees.mapped(replaced, one) for one in args]


def _gradient_vectors(
    slots: Sequence[_Slot], args: Sequence[Any], pulled: Sequence[Any]
) -> list[Vector]:
    found: list[Vector] = []

    def collect(_: Any, part: Any) -> None:
        if isinstance(part, Array):
            found.append(floats_of(part.numpy()))

    def collect_columns(given: Any, column: Any) -> None:
        """A dict of columns was one array of structs; its gradient is one too."""
        if isinstance(given, Mapping):
            for field, part in cast("Mapping[str, Any]", given).items():
                collect_columns(part, column[field])
        elif has_floats(np.asarray(given)):
            found.append(floats_of(column))

    for given, gradient in zip(args, pulled, strict=True):
        if isinstance(given, Mapping) and isinstance(gradient, Array):
            collect_columns(given, gradient.numpy())
        else:
            trees.mapped(collect, given, gradient)
    if [one.size for one in found] != [slot.values.size for slot in slots]:
        raise RuntimeError("gradients do not match the arguments they belong to")
    return found


def _result_floats(out: Any) -> Vector:
    parts = [
        floats_of(leaf.numpy())
        for leaf in trees.leaves(out)
        if isinstance(leaf, Array) and types.is_differentiable(leaf.element)
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def _derivative_floats(out: Any, pushed: Any) -> Vector:
    parts: list[Vector] = []

    def collect(_: Any, part: Any) -> None:
        if isinstance(part, Array):
            parts.append(floats_of(part.numpy()))

    trees.mapped(collect, out, pushed)
    return np.concatenate(parts) if parts else np.zeros(0)


def _as_tree(out: Any, cotangent: Vector) -> Any:
    offset = 0

    def part(leaf: Any) -> Any:
        nonlocal offset
        if not isinstance(leaf, Array) or not types.is_differentiable(leaf.element):
            return None
        blank = np.zeros_like(leaf.numpy())
        count = floats_of(blank).size
        offset += count
        return filled(blank, cotangent[offset - count : offset])

    return trees.mapped(part, out)


# -- exemption --------------------------------------------------------------------------------


def _is_exempt(kernel: nodes.Kernel) -> bool:
    """Whether the kernel reaches a function whose derivative asks not to be checked."""
    seen: set[nodes.Function] = set()
    pending = list(called(kernel.body))
    while pending:
        function = pending.pop()
        if not function.is_checked:
            return True
        if function not in seen:
            seen.add(function)
            pending += called(function.body)
    return False
