"""A function of flat lists as an operator of PyTorch, whose derivative is such an operator.

Invariant: results share memory with nothing, and have the shapes, dtypes and devices that their
outlines say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch

from shaderad.torch.tensors import empty, from_host, hollow, home_of, like, on_host
from shaderad.wrapped.flat import CallLeaves, DerivativeForm, Flat, FlatAt, PulledBack
from shaderad.wrapped.parts import contents
from shaderad.wrapped.primals import Noted, Primal

Tensors = Sequence[torch.Tensor]
_SCHEMA = "(Tensor[] tensors, *, SymInt[] whole, float[] real, int form) -> Tensor[]"

asked: ContextVar[list[FlatAt] | None] = ContextVar("shaderad_torch_asked", default=None)
"""The list to which a call that will be differentiated appends its primal."""
_kept_primal: ContextVar[FlatAt | None] = ContextVar("shaderad_torch_known", default=None)
"""The kept primal of the pullback that is running."""
latest: ContextVar[Noted] = ContextVar("shaderad_torch_latest")
"""The structure and numbers of the latest result, because operators return only tensors."""


class TensorOperator(ABC):
    """A registered operator."""

    def __init__(self, name: str, flat: Flat) -> None:
        self.name = name
        self.flat = flat
        self.op: Any = torch.library.custom_op(name, self.run, mutates_args=(), schema=_SCHEMA)
        self.op.register_fake(self._fake)
        self.op.register_autograd(self._backward, setup_context=self.keep)
        self.op.register_vmap(self._vmap)

    @cached_property
    def pullback(self) -> PulledOperator:
        """The operator that pulls cotangents of this one back."""
        return PulledOperator(f"{self.name}_bwd", self.flat.pulled)

    @abstractmethod
    def run(
        self, tensors: Tensors, *, whole: Sequence[int], real: Sequence[float], form: int
    ) -> list[torch.Tensor]: ...

    @abstractmethod
    def _fake(
        self, tensors: Tensors, *, whole: Sequence[int], real: Sequence[float], form: int
    ) -> list[torch.Tensor]: ...

    def __call__(self, tensors: Tensors, numbers: dict[str, Any]) -> Sequence[torch.Tensor]:
        """The results. The dispatcher of PyTorch is bypassed unless it traces or batches.

        It takes as long as a small kernel.
        """
        if torch.compiler.is_compiling() or not _are_plain(tensors):
            return self.op(tensors, **numbers)
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            return cast("Any", _AtOnce).apply(self, numbers, *tensors)
        return self.run(tensors, **numbers)

    def keep(
        self, ctx: Any, inputs: tuple[Tensors], keyword_only_inputs: dict[str, Any], output: Tensors
    ) -> None:
        """Saves in `ctx` everything that the backward pass needs."""
        (tensors,) = inputs
        ctx.numbers = keyword_only_inputs
        ctx.floats = tuple(x.dtype.is_floating_point for x in output)
        ctx.set_materialize_grads(False)
        # Uploaded arrays live as long as the saved tensors: until a backward pass releases them,
        # or a checkpoint, which saves new ones when it recomputes.
        ticket: Any = torch.empty(0)
        left = asked.get()
        if left:
            ticket.kept = left.pop()
        ctx.save_for_backward(*tensors, ticket)

    def _backward(self, ctx: Any, bars: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
        return self.pulled(ctx, bars, tuple(ctx.needs_input_grad[0]))

    def pulled(
        self, ctx: Any, bars: Sequence[torch.Tensor | None], wanted: tuple[bool, ...]
    ) -> list[torch.Tensor | None]:
        """The gradients of the wanted tensors; `None` for the others."""
        *tensors, ticket = ctx.saved_tensors
        float_bars = [
            bar if is_float else None for bar, is_float in zip(bars, ctx.floats, strict=True)
        ]
        present_bars = [bar for bar in float_bars if bar is not None]
        if not present_bars or not any(wanted):
            return [None] * len(tensors)
        mask = DerivativeForm(
            ctx.numbers["form"], wanted, tuple(bar is not None for bar in float_bars)
        )
        numbers = {**ctx.numbers, "form": self.pullback.number(mask)}
        token = _kept_primal.set(getattr(ticket, "kept", None))
        try:
            gradients = iter(self.pullback([*tensors, *present_bars], numbers))
        finally:
            _kept_primal.reset(token)
        return [next(gradients) if is_wanted else None for is_wanted in wanted]

    def _vmap(
        self, info: Any, in_dims: Any, tensors: Tensors, **numbers: Any
    ) -> tuple[list[torch.Tensor], list[int]]:
        pairs = list(zip(tensors, in_dims[0], strict=True))
        calls = [
            self.op([x if d is None else x.select(d, k) for x, d in pairs], **numbers)
            for k in range(info.batch_size)
        ]
        stacked = [torch.stack(column) for column in zip(*calls, strict=True)]
        return stacked, [0] * len(stacked)


class _AtOnce(torch.autograd.Function):
    """A call that PyTorch differentiates without its dispatcher for custom operators."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[torch.Tensor, ...]:
        operator, numbers, *tensors = args
        left: list[FlatAt] = []
        token = asked.set(left)
        try:
            results = operator.run(tensors, **numbers)
            operator.keep(ctx, (tensors,), numbers, results)
        finally:
            asked.reset(token)
        ctx.operator = operator
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *bars: Any) -> Any:
        return None, None, *ctx.operator.pulled(ctx, bars, ctx.needs_input_grad[2:])


def _are_plain(tensors: Tensors) -> bool:
    """True if the tensors have content and PyTorch neither traces nor batches."""
    internal = cast("Any", torch)._C
    is_followed = internal._are_functorch_transforms_active()
    if is_followed or internal._len_torch_dispatch_stack():
        return False
    return all(
        type(tensor) is torch.Tensor or type(tensor) is torch.nn.Parameter for tensor in tensors
    )


class PrimalOperator(TensorOperator):
    """The operator of a function of trees."""

    def __init__(self, name: str, flat: Primal) -> None:
        self._primal = flat
        super().__init__(name, flat)
        # Registered now: PyTorch's compiler traces the backward pass and cannot register there.
        self.pullback  # noqa: B018

    def run(
        self, tensors: Tensors, *, whole: Sequence[int], real: Sequence[float], form: int
    ) -> list[torch.Tensor]:
        arguments = _arguments(tensors, whole, real, on_host)
        left = asked.get()
        if left is None:
            result = self._primal.called(form, arguments)
        else:
            primal_run = self._primal.at(form, arguments)
            left.append(primal_run)
            result = primal_run.result
        latest.set(result.noted)
        home = home_of(tensors)
        return [from_host(content, home) for content in contents(result.parts)]

    def _fake(
        self, tensors: Tensors, *, whole: Sequence[int], real: Sequence[float], form: int
    ) -> list[torch.Tensor]:
        arguments = _arguments(tensors, [int(n) for n in whole], real, hollow)
        result, outlines = self._primal.outlined(form, arguments)
        latest.set(result.noted)
        home = home_of(tensors)
        return [empty(outline, home) for outline in outlines]


class PulledOperator(TensorOperator):
    """The operator of a pullback."""

    def __init__(self, name: str, flat: PulledBack) -> None:
        self._pulled = flat
        super().__init__(name, flat)

    def number(self, form: DerivativeForm) -> int:
        """The number of a form."""
        return self._pulled.forms.number(form)

    def run(
        self, tensors: Tensors, *, whole: Sequence[int], real: Sequence[float], form: int
    ) -> list[torch.Tensor]:
        own, bars = self._pulled.taken_apart(form, tensors)
        primal = _kept_primal.get()
        if primal is None:
            primal = self._pulled.primal_at(form, _arguments(own, whole, real, on_host))
        parts = self._pulled.mapped(form, primal, [on_host(bar) for bar in bars])
        pairs = zip(contents(parts), self._wanted(tensors, form), strict=True)
        return [like(content, tensor) for content, tensor in pairs]

    def _fake(
        self, tensors: Tensors, *, whole: Sequence[int], real: Sequence[float], form: int
    ) -> list[torch.Tensor]:
        return [torch.empty_like(tensor, memory_format=torch.contiguous_format)
                for tensor in self._wanted(tensors, form)]  # fmt: skip

    def _wanted(self, tensors: Tensors, form: int) -> list[torch.Tensor]:
        own, _ = self._pulled.taken_apart(form, tensors)
        mask = self._pulled.asked(form).tensors
        return [x for x, is_wanted in zip(own, mask, strict=True) if is_wanted]


def _arguments(
    tensors: Tensors,
    whole: Sequence[int],
    real: Sequence[float],
    content: Callable[[torch.Tensor], np.ndarray[Any, Any]],
) -> CallLeaves:
    return CallLeaves([content(x) for x in tensors], whole, real)
