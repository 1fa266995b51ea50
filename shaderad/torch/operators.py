"""A function of flat lists as an operator of PyTorch, whose derivative is such an operator.

Invariant: results share memory with nothing, and have the shapes, dtypes and devices that their
outlines say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import cached_property
from typing import Any

import numpy as np
import torch

from shaderad.torch.tensors import empty, from_host, hollow, home_of, like, on_host
from shaderad.wrapped.flat import Flat, FlatAt, Given, Pulled, PulledForm
from shaderad.wrapped.parts import contents
from shaderad.wrapped.primals import Primal, Result
from shaderad.wrapped.structures import Structure

Tensors = Sequence[torch.Tensor]
_SCHEMA = "(Tensor[] tensors, SymInt[] whole, float[] real, int form) -> Tensor[]"

asked: ContextVar[list[FlatAt] | None] = ContextVar("shaderad_torch_asked", default=None)
"""Where a call that will be differentiated leaves its function at its arguments."""
_known: ContextVar[FlatAt | None] = ContextVar("shaderad_torch_known", default=None)
"""The primal at its arguments for a pullback that runs."""


Noted = tuple[Structure, tuple[int, ...], tuple[float, ...]]
"""The structure of a result, and the numbers in it."""
latest: ContextVar[Noted] = ContextVar("shaderad_torch_latest")
"""That of the latest call: operators give nothing but tensors."""


def noted(result: Result) -> Noted:
    """What operators do not give of a result."""
    return result.structure, tuple(result.numbers.whole), tuple(result.numbers.real)


class TensorOperator(ABC):
    """A registered operator."""

    def __init__(self, name: str, flat: Flat) -> None:
        self.name = name
        self.flat = flat
        self.op: Any = torch.library.custom_op(name, self._run, mutates_args=(), schema=_SCHEMA)
        self.op.register_fake(self._fake)
        self.op.register_autograd(self._backward, setup_context=self._keep)
        self.op.register_vmap(self._vmap)

    @cached_property
    def pullback(self) -> PulledOperator:
        """The operator that pulls cotangents of this one back."""
        return PulledOperator(f"{self.name}_bwd", Pulled(self.flat))

    @abstractmethod
    def _run(
        self, tensors: Tensors, whole: Sequence[int], real: Sequence[float], form: int
    ) -> list[torch.Tensor]: ...

    @abstractmethod
    def _fake(
        self, tensors: Tensors, whole: Sequence[int], real: Sequence[float], form: int
    ) -> list[torch.Tensor]: ...

    def _keep(self, ctx: Any, inputs: tuple[Any, ...], output: Tensors) -> None:
        tensors, whole, real, form = inputs
        ctx.call = (whole, real, form)
        ctx.floats = tuple(x.dtype.is_floating_point for x in output)
        ctx.set_materialize_grads(False)
        # What was uploaded lives as long as PyTorch keeps what a tensor saved: until it is
        # released by a pass backward, or by a checkpoint, whose second run brings another.
        ticket: Any = torch.empty(0)
        left = asked.get()
        if left:
            ticket.kept = left.pop()
        ctx.save_for_backward(*tensors, ticket)

    def _backward(self, ctx: Any, bars: Sequence[torch.Tensor | None]) -> tuple[Any, ...]:
        *tensors, ticket = ctx.saved_tensors
        whole, real, form = ctx.call
        known = [bar if one else None for bar, one in zip(bars, ctx.floats, strict=True)]
        needed = ctx.needs_input_grad[0]
        wanted = tuple(bool(one) for one in needed)
        given = [bar for bar in known if bar is not None]
        if not given or not any(wanted):
            return [None] * len(tensors), *_no_gradients(whole, real), None
        pulled = self.pullback
        mask = PulledForm(form, wanted, tuple(bar is not None for bar in known))
        token = _known.set(getattr(ticket, "kept", None))
        try:
            found = iter(pulled.op([*tensors, *given], whole, real, pulled.number(mask)))
        finally:
            _known.reset(token)
        gradients = [next(found) if one else None for one in wanted]
        return gradients, *_no_gradients(whole, real), None

    def _vmap(
        self,
        info: Any,
        in_dims: Any,
        tensors: Tensors,
        whole: Sequence[int],
        real: Sequence[float],
        form: int,
    ) -> tuple[list[torch.Tensor], list[int]]:
        pairs = list(zip(tensors, in_dims[0], strict=True))
        calls = [
            self.op([x if d is None else x.select(d, k) for x, d in pairs], whole, real, form)
            for k in range(info.batch_size)
        ]
        found = [torch.stack(column) for column in zip(*calls, strict=True)]
        return found, [0] * len(found)


class PrimalOperator(TensorOperator):
    """The operator of a function of trees."""

    def __init__(self, name: str, flat: Primal) -> None:
        self._primal = flat
        super().__init__(name, flat)
        # Now: PyTorch's compiler traces the pass backward, where nothing can be registered.
        self.pullback  # noqa: B018

    def _run(
        self, tensors: Tensors, whole: Sequence[int], real: Sequence[float], form: int
    ) -> list[torch.Tensor]:
        given = _given(tensors, whole, real, on_host)
        left = asked.get()
        if left is None:
            result = self._primal.called(form, given)
        else:
            at = self._primal.at(form, given)
            left.append(at)
            result = at.result
        latest.set(noted(result))
        home = home_of(tensors)
        return [from_host(content, home) for content in contents(result.parts)]

    def _fake(
        self, tensors: Tensors, whole: Sequence[int], real: Sequence[float], form: int
    ) -> list[torch.Tensor]:
        given = _given(tensors, [int(n) for n in whole], real, hollow)
        result, outlines = self._primal.outlined(form, given)
        latest.set(noted(result))
        home = home_of(tensors)
        return [empty(one, home) for one in outlines]


class PulledOperator(TensorOperator):
    """The operator of a pullback."""

    def __init__(self, name: str, flat: Pulled) -> None:
        self._pulled = flat
        super().__init__(name, flat)

    def number(self, form: PulledForm) -> int:
        """The number of a form."""
        return self._pulled.forms.number(form)

    def _run(
        self, tensors: Tensors, whole: Sequence[int], real: Sequence[float], form: int
    ) -> list[torch.Tensor]:
        given = _given(tensors, whole, real, on_host)
        parts = self._pulled.gradients(form, given, _known.get())
        pairs = zip(contents(parts), self._wanted(tensors, form), strict=True)
        return [like(content, tensor) for content, tensor in pairs]

    def _fake(
        self, tensors: Tensors, whole: Sequence[int], real: Sequence[float], form: int
    ) -> list[torch.Tensor]:
        return [torch.empty_like(one, memory_format=torch.contiguous_format)
                for one in self._wanted(tensors, form)]  # fmt: skip

    def _wanted(self, tensors: Tensors, form: int) -> list[torch.Tensor]:
        wanted = self._pulled.wanted(form)
        return [x for x, one in zip(tensors[: len(wanted)], wanted, strict=True) if one]


def _no_gradients(*lists: Sequence[float]) -> list[list[None] | None]:
    """The gradients of lists of numbers: PyTorch takes an empty one for a list of tensors."""
    return [None if one else [] for one in lists]


def _given(
    tensors: Tensors,
    whole: Sequence[int],
    real: Sequence[float],
    content: Callable[[torch.Tensor], np.ndarray[Any, Any]],
) -> Given:
    return Given([content(x) for x in tensors], whole, real)
