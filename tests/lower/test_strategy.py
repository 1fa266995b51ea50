"""How each gradient is summed."""

from __future__ import annotations

import pytest

import shaderad as sad
from shaderad.lower.prepare.strategy import choose


@sad.function
def first(w: sad.In[float]) -> float:
    return w[0]


@sad.kernel
def reads(
    i: sad.Index,
    own: sad.In[float],
    everywhere: sad.In[float],
    fixed: sad.In[float],
    branch: sad.In[float],
    partly: sad.In[float],
    called: sad.In[float],
    mixed: sad.In[float],
    half: sad.In[sad.half],
    guarded: sad.In[float],
    n: int,
    is_on: bool,
    scale: float,
    y: sad.Out[float],
):
    s = own[i] * own[i] + everywhere[i + 1] + fixed[0] * fixed[n] + first(called)
    s += partly[3] + partly[i] + float(half[0])
    if own[i] > 0.0:
        s += branch[0] + mixed[i]
    if is_on:
        s += guarded[2] * guarded[2]
    for k in range(2):
        s += fixed[1] * float(k)
    y[i] = s * scale + mixed[0]


STRATEGIES = {
    "own": "exclusive",
    "everywhere": "scattered",
    "fixed": "uniform",
    "branch": "scattered",
    "partly": "uniform and scattered",
    "called": "scattered",
    "mixed": "uniform and scattered",
    "half": "scattered",
    "guarded": "uniform",
    "scale": "uniform",
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategy_follows_from_where_a_parameter_is_read(name: str) -> None:
    ir = reads.specialise({})
    chosen = choose(ir, ir.body, frozenset(STRATEGIES))
    assert chosen.by_name[name] == STRATEGIES[name]


def test_only_what_is_wanted_is_hoisted() -> None:
    ir = reads.specialise({})
    chosen = choose(ir, ir.body, frozenset({"everywhere"}))
    assert chosen.by_name == {"everywhere": "scattered"}
    assert not chosen.exclusive
    assert not chosen.uniform
