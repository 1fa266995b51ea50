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
_SCHEMA = "(Tensor[] tensors, *, SymInt[] whole, float[] real, int form) -> Tensor[]"

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
        self, tensors: Tensors, *, whole: Sequence[int], real: Sequence[float], form: int
    ) -> list[torch.Tensor]: ...

    @abstractmethod
    def _fake(
        self, tensors: Tensors, *, whole: Sequence[int], real: Sequence[float], form: int
    ) -> list[torch.Tensor]: ...

    def _keep(
        self, ctx: Any, inputs: tuple[Tensors], keyword_only_inputs: dict[str, Any], output: Tensors
    ) -> None:
        (tensors,) = inputs
        ctx.numbers = keyword_only_inputs
        ctx.floats = tuple(x.dtype.is_floating_point for x in output)
        ctx.set_materialize_grads(False)
        # What was uploaded lives as long as PyTorch keeps what a tensor saved: until it is
        # released by a pass backward, or by a checkpoint, whose second run brings another.
        ticket: Any = torch.empty(0)
        left = asked.get()
        if left:
            ticket.kept = left.pop()
        ctx.save_for_backward(*tensors, ticket)

    def _backward(self, ctx: Any, bars: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
        *tensors, ticket = ctx.saved_tensors
        known = [bar if one else None for bar, one in zip(bars, ctx.floats, strict=True)]
        given = [bar for bar in known if bar is not None]
        wanted = tuple(ctx.needs_input_grad[0])
        if not given or not any(wanted):
            return [None] * len(tensors)
        mask = PulledForm(ctx.numbers["form"], wanted, tuple(bar is not None for bar in known))
        numbers = {**ctx.numbers, "form": self.pullback.number(mask)}
        token = _known.set(getattr(ticket, "kept", None))
        try:
            found = iter(self.pullback.op([*tensors, *given], **numbers))
        finally:
            _known.reset(token)
        return [next(found) if one else None for one in wanted]

    def _vmap(
        self, info: Any, in_dims: Any, tensors: Tensors, **numbers: Any
    ) -> tuple[list[torch.Tensor], list[int]]:
        pairs = list(zip(tensors, in_dims[0], strict=True))
        calls = [
            self.op([x if d is None else x.select(d, k) for x, d in pairs], **numbers)
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
        self, tensors: Tensors, *, whole: Sequence[int], real: Sequence[float], form: int
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
        self, tensors: Tensors, *, whole: Sequence[int], real: Sequence[float], form: int
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
        self, tensors: Tensors, *, whole: Sequence[int], real: Sequence[float], form: int
    ) -> list[torch.Tensor]:
        own, bars = self._taken_apart(tensors, form)
        known = _known.get()
        if known is None:
            known = self._pulled.primal_at(form, _given(own, whole, real, on_host))
        parts = self._pulled.gradients(form, known, [on_host(bar) for bar in bars])
        pairs = zip(contents(parts), self._wanted(tensors, form), strict=True)
        return [like(content, tensor) for content, tensor in pairs]

    def _fake(
        self, tensors: Tensors, *, whole: Sequence[int], real: Sequence[float], form: int
    ) -> list[torch.Tensor]:
        return [torch.empty_like(one, memory_format=torch.contiguous_format)
                for one in self._wanted(tensors, form)]  # fmt: skip

    def _wanted(self, tensors: Tensors, form: int) -> list[torch.Tensor]:
        own, _ = self._taken_apart(tensors, form)
        return [x for x, one in zip(own, self._pulled.wanted(form), strict=True) if one]

    def _taken_apart(self, tensors: Tensors, form: int) -> tuple[Tensors, Tensors]:
        """The tensors of the primal, and the cotangents."""
        count = len(self._pulled.wanted(form))
        return tensors[:count], tensors[count:]


def _given(
    tensors: Tensors,
    whole: Sequence[int],
    real: Sequence[float],
    content: Callable[[torch.Tensor], np.ndarray[Any, Any]],
) -> Given:
    return Given([content(x) for x in tensors], whole, real)
