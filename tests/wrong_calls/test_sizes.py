"""`dim`, `shapes` and the other call keywords."""

from __future__ import annotations

import pytest

import shaderad as sad
from tests.wrong_calls.kernels import check, evaluate

SQUARE = "^def square(i: sad.Index, x: sad.In[float], y: sad.Out[float]):"
NUMBERED = "^def numbered(i: sad.Index, start: int, y: sad.Out[float]):"
SCALED = "^def scaled(i: sad.Index, x: sad.In[float], w: sad.In[float], y: sad.Out[float]):"
GRID = "^def grid(i: sad.Index, j: sad.Index, x: sad.In[float, 2], y: sad.Out[float, 2]):"
ALONE = "^def alone(x: sad.In[float], t: sad.Add[float]):"
WRONG = [
    ("square(X, dim=float('nan'))", "SR0370", "`dim` takes whole numbers", "found nan"),
    ("square(X, dim=float('inf'))", "SR0370", "found inf"),
    ("square(X, dim=1.5)", "SR0370", "found 1.5"),
    ("square(X, dim=4.0)", "SR0370", "found 4.0"),
    ("square(X, dim='4')", "SR0370", "found '4'"),
    ("square(X, dim=True)", "SR0370", "found True"),
    ("square(X, dim=np.float32(4))", "SR0370", "4.0"),
    ("square(X, dim=np.array([4]))", "SR0370", "array([4])"),
    ("square(X, dim={4})", "SR0370", "found {4}"),
    ("grid(np.zeros((2, 3)), dim=(2, None))", "SR0370", "found None"),
    ("square(X, dim=-1)", "SR0371", "between 0 and 2147483647", "found -1", "0 is allowed"),
    ("square(X, dim=2**31)", "SR0371", "found 2147483648", "split the launch"),
    ("square(X, dim=10**30)", "SR0371", "found 1000000000000000000000000000000"),
    ("grid(np.zeros((2, 3)), dim=(65536, 65536))", "SR0371", "found (65536, 65536)"),
    ("grid(np.zeros((2, 3)), dim=(-1, -1))", "SR0371", "found (-1, -1)"),
    ("numbered(3)", "SR0372", "a call of `numbered` needs `dim`", "1 Index parameter", NUMBERED),
    ("numbered(3, dim=None)", "SR0372", "needs `dim`", "can leave it out if", NUMBERED),
    ("scaled(X, X[:3])", "SR0385", "`x` has 4 on axis 0, `w` has 3 on axis 0", SCALED),
    ("square(X, dim=(4, 4))", "SR0373", "takes 1 extent", "dim=(4, 4)", SQUARE),
    ("square(X, dim=())", "SR0373", "found dim=()", SQUARE),
    ("alone(X, dim=4)", "SR0373", "found dim=(4,)", "add `i: sad.Index`", ALONE),
    ("grid(np.zeros((2, 3)), dim=6)", "SR0373", "takes 2 extents", "found dim=(6,)", GRID),
    ("square(X, dim=4, bounds=None)", "SR0374", "'raise', 'ignore' or 'unchecked'", "found None"),
    ("square(X, dim=4, bounds=['raise'])", "SR0374", "found ['raise']"),
    ("square(X, dim=4, checks='everything')", "SR0375", "everything"),
    ("square(X, dim=4, shapes={'z': 4})", "SR0376", "writes no array `z`", "takes y", SQUARE),
    ("square(X, dim=4, shapes={'x': 4})", "SR0376", "writes no array `x`", SQUARE),
    ("square(X, dim=4, shapes={4: 4})", "SR0376", "writes no array `4`", SQUARE),
    ("square(X, dim=4, shapes=5)", "SR0383", "a dict of shapes", "found 5", SQUARE),
    ("square(X, dim=4, shapes='y')", "SR0383", "found 'y'", SQUARE),
    ("square(X, dim=4, shapes=[('y', 4)])", "SR0383", "found [('y', 4)]", SQUARE),
    ("square(X, dim=4, shapes={'y': float('nan')})", "SR0370", "`shapes['y']`", "found nan"),
    ("square(X, dim=4, shapes={'y': None})", "SR0370", "`shapes['y']`", "found None"),
    ("square(X, dim=4, shapes={'y': -4})", "SR0371", "`shapes['y']`", "found -4"),
    ("square(X, dim=4, shapes={'y': 2**40})", "SR0371", "found 1099511627776"),
    ("square(X, dim=4, shapes={'y': (2, 2)})", "SR0377", "`y` is `Out[float]`", "(2, 2)",
     "^y: sad.Out[float]"),
    ("square(X, dim=4, device='wgpu')", "SR0651", "found a `str`"),
]  # fmt: skip
ACCEPTED = [
    "square(X)",
    "square(X, dim=None)",
    "square(X, dim=[4])",
    "square(X, dim=np.int64(4))",
    "square(X, dim=np.array(4))",
    "square(X, dim=4, shapes=None)",
    "square(X, dim=4, shapes={})",
    "square(X, dim=4, shapes={'y': [4]})",
    "square(X, dim=4, device=None)",
    "square(x=X, dim=4)",
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda w: w[0])
def test_sizes_and_options_that_make_no_sense_are_named(
    wrong: tuple[str, ...], device: sad.Device
) -> None:
    check(*wrong)


@pytest.mark.parametrize("text", ACCEPTED)
def test_sizes_are_whole_numbers_however_they_are_written(text: str, device: sad.Device) -> None:
    assert evaluate(text, {}).numpy().tolist() == [1.0, 4.0, 9.0, 16.0]


def test_a_result_larger_than_the_device_can_bind_is_refused(device: sad.Device) -> None:
    limit = device.capabilities.buffer_bytes_limit
    if limit > 2**33:
        pytest.skip("this device binds whatever kernels can index")
    check("square(X, dim=2**31 - 1)", "SR0606", "8589934588 bytes", f"limit is {limit} bytes")
