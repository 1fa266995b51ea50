"""Words -> kernels in which each of them plays one role.

Names that end in an underscore are those of the text around: no word does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_HEAD = "import shaderad as sad_\nF_ = float\nI_ = int\n"


@dataclass(frozen=True)
class Role:
    """What words can name."""

    text: Callable[[list[str]], str]
    batch: int = 40
    """Words of one module; what they name must fit the storage buffers of a device."""
    kernels: Callable[[list[str]], list[str]] = lambda _: ["probe_"]
    """Those of a module."""
    is_parameter: bool = False
    """Of kernels, which keep some names for the keywords of a call."""

    @property
    def name(self) -> str:
        return self.text.__name__

    def source(self, words: list[str]) -> str:
        """A module."""
        return _HEAD + self.text(words)


def functions_and_parameters(words: list[str]) -> str:
    """Functions, each with a parameter of its own name."""
    made = [f"@sad_.function\ndef {w}({w}: F_) -> F_:\n    return {w} * 0.5\n" for w in words]
    uses = "".join(f"    x_ += {w}(x_)\n" for w in words)
    return "\n".join([*made, _kernel("a_: sad_.In[F_], out_: sad_.Out[F_]", "a_[k_]", uses)])


def locals_of_loops(words: list[str]) -> str:
    """Locals that a loop carries."""
    before = "".join(f"    {w} = a_[k_] * 2.0\n" for w in words)
    inside = "".join(f"        {w} = {w} * x_\n" for w in words)
    after = "".join(f"    x_ += {w}\n" for w in words)
    loop = f"{before}    for j_ in range(3):\n{inside}{after}"
    return _kernel("a_: sad_.In[F_], out_: sad_.Out[F_]", "a_[k_ // 2]", loop)


def structs_and_fields(words: list[str]) -> str:
    """Structs, each with a field of its own name."""
    made = [f"@sad_.struct\nclass {w}:\n    {w}: F_\n    b_: sad_.int2\n" for w in words]
    given = "".join(f", s{k}_: {w}" for k, w in enumerate(words))
    uses = "".join(f"    x_ += s{k}_.{w} * {w}(x_, s{k}_.b_).{w}\n" for k, w in enumerate(words))
    return "\n".join([*made, _kernel(f"out_: sad_.Out[F_]{given}", "0.0", uses)])


def fields_of_one_struct(words: list[str]) -> str:
    """Fields of an array's element."""
    fields = "".join(f"    {w}: F_\n" for w in words)
    uses = "".join(f"    x_ += a_[k_].{w}\n" for w in words)
    many = f"@sad_.struct\nclass Many_:\n{fields}    h_: sad_.half\n\n"
    return many + _kernel("a_: sad_.In[Many_], out_: sad_.Out[F_]", "0.0", uses)


def numbers(words: list[str]) -> str:
    """Parameters that are numbers."""
    given = "".join(f", {w}: F_" for w in words)
    uses = "".join(f"    x_ += {w} * a_[k_]\n" for w in words)
    return _kernel(f"a_: sad_.In[F_], out_: sad_.Out[F_]{given}", "0.0", uses)


def inputs(words: list[str]) -> str:
    """Arrays, each read by the threads that number them and by others."""
    given = "".join(f"{w}: sad_.In[F_], " for w in words)
    uses = "".join(f"    x_ += {w}[k_] + {w}[k_ // 2]\n" for w in words)
    return _kernel(f"{given}out_: sad_.Out[F_]", "0.0", uses)


def outputs(words: list[str]) -> str:
    """Arrays that are written, summed, and compared."""
    kinds = ("Out", "Add", "Max")
    lines = ("{w}[k_] = x_", "{w}[0] += x_", "{w}[0] = sad_.max({w}[0], x_)")
    given = "".join(f", {w}: sad_.{kinds[k % 3]}[F_]" for k, w in enumerate(words))
    uses = "".join(f"    {lines[k % 3].format(w=w)}\n" for k, w in enumerate(words))
    return _kernel(f"a_: sad_.In[F_], out_: sad_.Out[F_]{given}", "a_[k_]", uses)


def kernels_and_threads(words: list[str]) -> str:
    """Kernels, each with a thread of its own name."""
    return "\n".join(
        f"@sad_.kernel\ndef {w}({w}: sad_.Index, a_: sad_.In[F_], u_: F_, out_: sad_.Out[F_], "
        f"sum_: sad_.Add[F_]):\n    out_[{w}] = a_[{w}] * u_\n    sum_[0] += a_[{w}]\n"
        for w in words
    )


def _kernel(parameters: str, start: str, uses: str) -> str:
    head = f"@sad_.kernel\ndef probe_(k_: sad_.Index, {parameters}):\n"
    return f"{head}    x_ = {start}\n{uses}    out_[k_] = x_\n"


ROLES = (
    Role(functions_and_parameters, batch=160),
    Role(locals_of_loops),
    Role(structs_and_fields),
    Role(fields_of_one_struct),
    Role(numbers, is_parameter=True),
    Role(inputs, batch=20, is_parameter=True),
    Role(outputs, batch=20, is_parameter=True),
    Role(kernels_and_threads, batch=1, kernels=lambda words: words, is_parameter=True),
)
