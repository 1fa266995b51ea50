"""A function of flat lists as an operator of PyTorch, whose derivative is such an operator.

Invariant: results share memory with nothing, and have the shapes, dtypes and devices that their
outlines say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import (
    _SingleLevelFunction,  # pyright: ignore[reportPrivateUsage]
)

from shaderad.arrays.textures import Texture, texture_by_serial
from shaderad.diagnostics import error
from shaderad.torch.tensors import empty, from_host, hollow, home_of, like, on_host
from shaderad.wrapped.flat import DerivativeForm, Flat, FlatAt, LinearMap
from shaderad.wrapped.parts import contents
from shaderad.wrapped.primals import Noted, Primal
from shaderad.wrapped.structures import CallLeaves

Tensors = Sequence[torch.Tensor]
_torch: Any = torch
_internal, _forward_ad, _unpack_dual = _torch._C, cast("Any", forward_ad), _torch._VF._unpack_dual
_LIBRARY: Any = torch.library.Library("shaderad", "FRAGMENT")
_SCHEMA = (
    "(Tensor[] tensors, *, SymInt[] whole, float[] real, int[] textures, int form) -> Tensor[]"
)

asked: ContextVar[list[FlatAt] | None] = ContextVar("shaderad_torch_asked", default=None)
"""The list to which a call that will be differentiated appends its primal."""
_kept_primal: ContextVar[FlatAt | None] = ContextVar("shaderad_torch_known", default=None)
"""The kept primal of the derivative that is running."""
latest: ContextVar[Noted] = ContextVar("shaderad_torch_latest")
"""The structure and numbers of the latest result, because operators return only tensors."""


class TensorOperator(ABC):
    """A registered operator."""

    def __init__(self, name: str, flat: Flat) -> None:
        self.name = name
        self.flat = flat
        _LIBRARY.define(name + _SCHEMA, tags=(torch.Tag.pt2_compliant_tag,))
        self.op: Any = getattr(torch.ops.shaderad, name).default
        _LIBRARY.impl(name, self.run, "CompositeExplicitAutograd")
        _LIBRARY.impl(name, self._differentiated, "Autograd", with_keyset=True)
        _torch.library.register_fake(self.op, self._fake, lib=_LIBRARY)
        _torch.library.register_vmap(self.op, self._vmap, lib=_LIBRARY)

    @cached_property
    def pullback(self) -> PulledOperator:
        """The operator that pulls cotangents of this one back."""
        return PulledOperator(f"{self.name}_bwd", self)

    @cached_property
    def pushforward(self) -> PushedOperator:
        """The operator that pushes tangents through this one."""
        return PushedOperator(f"{self.name}_fwd", self)

    @abstractmethod
    def run(self, tensors: Tensors, *, form: int, **numbers: Any) -> list[torch.Tensor]: ...

    @abstractmethod
    def _fake(self, tensors: Tensors, *, form: int, **numbers: Any) -> list[torch.Tensor]: ...

    @abstractmethod
    def conformed(
        self, content: Sequence[np.ndarray[Any, Any]], tensors: Tensors, form: int
    ) -> list[torch.Tensor]:
        """Tensors with this content, in the form of the results that have floats."""

    def __call__(self, tensors: Tensors, numbers: dict[str, Any]) -> Sequence[torch.Tensor]:
        """The results. The dispatcher of PyTorch is bypassed unless it traces or transforms.

        It takes as long as a small kernel.
        """
        if torch.compiler.is_compiling() or not _are_plain(tensors):
            return self.op(tensors, **numbers)
        if _are_differentiated(tensors):
            return cast("Any", _Differentiated).apply(self, self.run, numbers, *tensors)
        return self.run(tensors, **numbers)

    def _differentiated(
        self, keyset: Any, tensors: Tensors, **numbers: Any
    ) -> Sequence[torch.Tensor]:
        """The kernel of PyTorch's dispatcher that differentiates, at one level of transforms."""
        modes = torch.is_grad_enabled(), _internal._is_fwd_grad_enabled()

        def below(tensors: Tensors, **numbers: Any) -> Sequence[torch.Tensor]:
            # The levels below differentiate, too; an autograd function turns both modes off.
            with (
                torch.set_grad_enabled(modes[0]),
                _forward_ad._set_fwd_grad_enabled(modes[1]),
                _internal._AutoDispatchBelowAutograd(),
            ):
                return self.op.redispatch(
                    keyset & _internal._after_autograd_keyset, tensors, **numbers
                )

        if not _are_differentiated(tensors):
            return below(tensors, **numbers)
        with enable_single_level_autograd_function():
            return list(cast("Any", _Differentiated).apply(self, below, numbers, *tensors))

    def pulled(
        self, ctx: Any, bars: Sequence[torch.Tensor | None], wanted: tuple[bool, ...]
    ) -> list[torch.Tensor | None]:
        """The gradients of the wanted tensors; `None` for the others."""
        float_bars = [
            bar if is_float else None for bar, is_float in zip(bars, ctx.floats, strict=True)
        ]
        if not any(wanted) or all(bar is None for bar in float_bars):
            return [None] * len(wanted)
        present = tuple(bar is not None for bar in float_bars)
        form = DerivativeForm(ctx.numbers["form"], wanted, present)
        gradients = iter(self.pullback.mapped(ctx.saved_tensors, ctx.numbers, form, float_bars))
        return [next(gradients) if is_wanted else None for is_wanted in wanted]

    def pushed(self, ctx: Any, dots: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
        """The tangents of the results; `None` for one without floats."""
        moving = tuple(dot is not None for dot in dots)
        form = DerivativeForm(ctx.numbers["form"], moving, ctx.floats)
        if not any(ctx.floats):
            return [None] * len(ctx.floats)
        *tensors, ticket = ctx.saved_tensors
        # PyTorch turns forward mode off here, which would drop the tangents of levels below. Those
        # of this level are pushed already, so they are taken off the primals.
        with _forward_ad._set_fwd_grad_enabled(True):
            saved = [*(_unpack_dual(x, level=0)[0] for x in tensors), ticket]
            result_dots = iter(self.pushforward.mapped(saved, ctx.numbers, form, dots))
        return [next(result_dots) if is_float else None for is_float in ctx.floats]

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


class _Differentiated(_SingleLevelFunction):
    """A call that PyTorch differentiates, at one level of transforms and in both modes."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[torch.Tensor, ...]:
        operator, run, numbers, *tensors = args
        runs: list[FlatAt] = []
        token = asked.set(runs)
        try:
            results = run(tensors, **numbers)
        finally:
            asked.reset(token)
        ctx.operator, ctx.numbers = operator, numbers
        ctx.textures = _textures(numbers["textures"])  # kept until the pass backward
        ctx.floats = tuple(x.dtype.is_floating_point for x in results)
        ctx.set_materialize_grads(False)
        # Uploaded arrays live as long as the saved tensors: until a backward pass releases them,
        # or a checkpoint, which saves new ones when it recomputes.
        ticket: Any = torch.empty(0)
        if len(runs) == 1:  # A batch has several, and code that is traced has none.
            ticket.kept = runs[0]
        ctx.save_for_backward(*tensors, ticket)
        ctx.save_for_forward(*tensors, ticket)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *bars: Any) -> Any:
        return None, None, None, *ctx.operator.pulled(ctx, bars, tuple(ctx.needs_input_grad[3:]))

    @staticmethod
    def jvp(ctx: Any, *dots: Any) -> Any:
        return tuple(ctx.operator.pushed(ctx, dots[3:]))


def _are_differentiated(tensors: Tensors) -> bool:
    """True if PyTorch differentiates by one of the tensors, or one carries a tangent."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        return True
    # The level is 0, the only one that PyTorch has: compiled code enters it unseen by Python.
    return any(_unpack_dual(x, level=0)[1] is not None for x in tensors)


def _are_plain(tensors: Tensors) -> bool:
    """True if the tensors have content and PyTorch neither traces nor transforms."""
    if _internal._are_functorch_transforms_active() or _internal._len_torch_dispatch_stack():
        return False
    return all(
        (type(tensor) is torch.Tensor or type(tensor) is torch.nn.Parameter)
        and not _internal._functorch.is_functorch_wrapped_tensor(tensor)
        for tensor in tensors
    )


class PrimalOperator(TensorOperator):
    """The operator of a function of trees."""

    def __init__(self, name: str, flat: Primal) -> None:
        self._primal = flat
        super().__init__(name, flat)
        # Registered now: PyTorch's compiler traces derivatives and cannot register there.
        self.pullback  # noqa: B018
        self.pushforward  # noqa: B018

    def run(self, tensors: Tensors, *, form: int, **numbers: Any) -> list[torch.Tensor]:
        arguments = _arguments(tensors, numbers, on_host)
        runs = asked.get()
        if runs is None:
            result = self._primal.called(form, arguments)
        else:
            primal_run = self._primal.at(form, arguments)
            runs.append(primal_run)
            result = primal_run.result
        latest.set(result.noted)
        return self.conformed(contents(result.parts), tensors, form)

    def _fake(self, tensors: Tensors, *, form: int, **numbers: Any) -> list[torch.Tensor]:
        arguments = _arguments(tensors, numbers, hollow)
        result, outlines = self._primal.outlined(form, arguments)
        latest.set(result.noted)
        home = home_of(tensors)
        return [empty(outline, home) for outline in outlines]

    def conformed(
        self, content: Sequence[np.ndarray[Any, Any]], tensors: Tensors, form: int
    ) -> list[torch.Tensor]:
        home = home_of(tensors)
        return [from_host(x, home) for x in content]


class LinearOperator(TensorOperator):
    """The operator of a linear map of derivatives."""

    linear: LinearMap

    def __init__(self, name: str, primal: TensorOperator, linear: LinearMap) -> None:
        self.primal = primal
        self.linear = linear
        super().__init__(name, linear)

    def mapped(
        self,
        saved: Tensors,
        numbers: dict[str, Any],
        form: DerivativeForm,
        derivatives: Sequence[torch.Tensor | None],
    ) -> Sequence[torch.Tensor]:
        """The map of these derivatives at a call that saved its tensors and a ticket."""
        *tensors, ticket = saved
        present = [x for x in derivatives if x is not None]
        numbers = {**numbers, "form": self.linear.forms.number(form)}
        token = _kept_primal.set(getattr(ticket, "kept", None))
        try:
            return self([*tensors, *present], numbers)
        finally:
            _kept_primal.reset(token)

    def run(self, tensors: Tensors, *, form: int, **numbers: Any) -> list[torch.Tensor]:
        own, derivatives = self.linear.taken_apart(form, tensors)
        primal = _kept_primal.get()
        if primal is None:
            primal = self.linear.primal_at(form, _arguments(own, numbers, on_host))
        parts = self.linear.mapped(form, primal, [on_host(x) for x in derivatives])
        return self.conformed(contents(parts), tensors, form)


class PulledOperator(LinearOperator):
    """The operator of a pullback."""

    def __init__(self, name: str, primal: TensorOperator) -> None:
        super().__init__(name, primal, primal.flat.pulled)

    def _fake(self, tensors: Tensors, *, form: int, **numbers: Any) -> list[torch.Tensor]:
        return [torch.empty_like(tensor, memory_format=torch.contiguous_format)
                for tensor in self._wanted(tensors, form)]  # fmt: skip

    def conformed(
        self, content: Sequence[np.ndarray[Any, Any]], tensors: Tensors, form: int
    ) -> list[torch.Tensor]:
        pairs = zip(content, self._wanted(tensors, form), strict=True)
        return [like(x, tensor) for x, tensor in pairs]

    def _wanted(self, tensors: Tensors, form: int) -> list[torch.Tensor]:
        own, _ = self.linear.taken_apart(form, tensors)
        mask = self.linear.asked(form).tensors
        return [x for x, is_wanted in zip(own, mask, strict=True) if is_wanted]


class PushedOperator(LinearOperator):
    """The operator of a pushforward."""

    def __init__(self, name: str, primal: TensorOperator) -> None:
        super().__init__(name, primal, primal.flat.pushed)

    def _fake(self, tensors: Tensors, *, form: int, **numbers: Any) -> list[torch.Tensor]:
        own, _ = self.linear.taken_apart(form, tensors)
        inner = self.linear.asked(form)
        results = self.primal._fake(own, **{**numbers, "form": inner.form})
        return [x for x, is_float in zip(results, inner.leaves, strict=True) if is_float]

    def conformed(
        self, content: Sequence[np.ndarray[Any, Any]], tensors: Tensors, form: int
    ) -> list[torch.Tensor]:
        own, _ = self.linear.taken_apart(form, tensors)
        return self.primal.conformed(content, own, self.linear.asked(form).form)


def _arguments(
    tensors: Tensors,
    numbers: Mapping[str, Any],
    content: Callable[[torch.Tensor], np.ndarray[Any, Any]],
) -> CallLeaves:
    whole = [int(n) for n in numbers["whole"]]
    textures = _textures(numbers["textures"])
    return CallLeaves([content(x) for x in tensors], whole, numbers["real"], textures)


def _textures(serials: Sequence[int]) -> list[Texture]:
    """The textures with these numbers; raises SR0485 for one that no longer exists."""
    textures = [texture_by_serial.get(serial) for serial in serials]
    alive = [texture for texture in textures if texture is not None]
    if len(alive) < len(textures):
        raise error("SR0485")
    return alive
