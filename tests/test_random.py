"""Random numbers: the cipher's published blocks, distributions, the same words everywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import double, half, random, uint2
from tests.tracing import run

U32 = np.uint32
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
ROUNDED = 2e-6
"""Of `log` and `cos` in 32 bits."""
KOLMOGOROV = 1.95
"""The largest distance of distributions by the root of the count is rarer than 1 in 1000 above."""
CHI_SQUARE = 20.5
"""Likewise of the sum of squares with 5 degrees of freedom."""
COUNT = 200_000


def threefry(key: Any, counter: Any) -> np.ndarray[Any, Any]:
    """Threefry2x32 with 20 rounds by its paper; blocks along the first axis of counters."""
    with np.errstate(over="ignore"):
        k0, k1 = U32(key[0]), U32(key[1])
        keys = (k0, k1, k0 ^ k1 ^ U32(0x1BD11BDA))
        x, y = (np.asarray(counter, U32)[..., k] + keys[k] for k in (0, 1))
        for group in range(5):
            for count in ROTATIONS[group % 2]:
                x = x + y
                y = (y << U32(count) | y >> U32(32 - count)) ^ x
            x = x + keys[(group + 1) % 3]
            y = y + keys[(group + 2) % 3] + U32(group + 1)
    return np.stack([x, y], -1)


def blocks(key: Any, shape: Any, stream: int = 0) -> np.ndarray[Any, Any]:
    positions = np.arange(math.prod(shape), dtype=U32).reshape(shape)
    return threefry(key, np.stack([np.full_like(positions, stream), positions], -1))


def expected_uniform(key: Any, shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
    x, y = np.moveaxis(blocks(key, shape), -1, 0)
    if dtype is double:
        return (x.astype(np.uint64) << 20 | y.astype(np.uint64) >> 12) * 2.0**-52
    if dtype is half:
        return (((x ^ y) & 0xFFFF) >> 6) * 2.0**-10
    return ((x ^ y) >> 9) * 2.0**-23


def expected_normal(key: Any, shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
    first = blocks(key, shape).astype(np.float64)
    if dtype is double:
        second = blocks(key, shape, 1).astype(np.float64)
        u, v = ((z[..., 0] + (z[..., 1] + 0.5) * 2.0**-32) * 2.0**-32 for z in (first, second))
    else:
        u, v = ((first + 0.5) * 2.0**-32)[..., 0], ((first + 0.5) * 2.0**-32)[..., 1]
    return np.sqrt(-2.0 * np.log(u)) * np.cos(2.0 * np.pi * v)


# -- the cipher ---------------------------------------------------------------------------------

PUBLISHED = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((2**32 - 1, 2**32 - 1), (2**32 - 1, 2**32 - 1), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]
"""Key, counter and block: `kat_vectors` of Random123."""


@pytest.mark.parametrize(("key", "counter", "block"), PUBLISHED)
def test_the_reference_has_the_published_blocks(key: Any, counter: Any, block: Any) -> None:
    assert tuple(threefry(key, counter)) == block


@pytest.mark.gpu
@pytest.mark.parametrize(("key", "counter", "block"), PUBLISHED)
def test_the_cipher_has_the_published_blocks(
    key: Any, counter: Any, block: Any, device: sad.Device
) -> None:
    @sad.graph
    def encrypted(key: Any, counter: Any) -> Any:
        return random.elementwise(random._cipher, key, counter)

    words = (sad.array(np.array(x, U32), dtype=uint2) for x in (key, counter))
    assert tuple(encrypted(*words).numpy()) == block


@pytest.mark.gpu
def test_keys_and_numbers_are_those_of_jax(device: sad.Device) -> None:
    """What jax 0.5 and later prints, in its documentation of `jax.random` too."""
    found = random.split(random.key(42)).numpy()
    np.testing.assert_array_equal(found, [[1832780943, 270669613], [64467757, 2916123636]])
    wanted = np.array([0.947667, 0.9785799, 0.33229148, 0.46866846], np.float32)
    np.testing.assert_array_equal(random.uniform(random.key(0), 4).numpy(), wanted)


# -- keys ---------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_a_seed_has_64_bits_and_makes_a_key(device: sad.Device) -> None:
    for seed in (0, 7, 2**32 - 1, 2**32, 2**64 - 1):
        made = random.key(seed)
        assert (made.shape, made.dtype) == ((), uint2)
        np.testing.assert_array_equal(made.numpy(), [seed >> 32, seed & 0xFFFFFFFF])
    np.testing.assert_array_equal(random.key(np.int64(5)).numpy(), [0, 5])
    np.testing.assert_array_equal(random.key(sad.array([3, -1])).numpy(), [[0, 3], [0, 2**32 - 1]])


@pytest.mark.gpu
def test_split_and_fold_in_agree_and_take_numbers_arrays_and_sizes(device: sad.Device) -> None:
    key = random.key(11)
    wanted = threefry((0, 11), [[0, k] for k in range(6)])
    np.testing.assert_array_equal(random.split(key, 6).numpy(), wanted)
    np.testing.assert_array_equal(random.split(key, (2, 3)).numpy(), wanted.reshape(2, 3, 2))
    assert random.split(key, 0).shape == (0,)
    np.testing.assert_array_equal(random.fold_in(key, 4).numpy(), wanted[4])
    np.testing.assert_array_equal(random.fold_in(key, sad.iota(6)).numpy(), wanted)
    by_size = sad.graph(lambda x: random.split(random.key(11), x.shape[0]))
    np.testing.assert_array_equal(by_size(np.zeros(6, np.float32)).numpy(), wanted)
    last = random.fold_in(key, 2**32 - 1).numpy()
    np.testing.assert_array_equal(last, threefry((0, 11), [0, 2**32 - 1]))


@pytest.mark.gpu
def test_a_key_may_be_words_of_numpy(device: sad.Device) -> None:
    words = np.array([1, 2], U32)
    own = sad.array(words, dtype=uint2)
    np.testing.assert_array_equal(random.uniform(words, 5).numpy(), random.uniform(own, 5).numpy())


@pytest.mark.gpu
def test_draws_by_keys_of_one_split_are_not_correlated(device: sad.Device) -> None:
    keys = random.split(random.key(3), 4)
    draws = [random.uniform(keys[k], COUNT).numpy() for k in range(4)]
    draws.append(random.uniform(random.key(3), COUNT).numpy())
    correlation = np.corrcoef(draws) - np.eye(5)
    assert np.abs(correlation).max() < 4.0 / np.sqrt(COUNT)
    neighbours = np.corrcoef(draws[0][1:], draws[0][:-1])[0, 1]
    assert abs(neighbours) < 4.0 / np.sqrt(COUNT)


# -- numbers ------------------------------------------------------------------------------------

SHAPES = [(), (0,), (1,), (3, 0, 2), (7,), (5, 1, 3)]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [float, half, double])
def test_numbers_are_those_of_numpy(dtype: Any, device: sad.Device) -> None:
    for shape in (*SHAPES, (1037,)):
        uniform = random.uniform(random.key(2**40 + 9), shape, dtype)
        assert uniform.shape == shape
        wanted = expected_uniform((256, 9), shape, dtype)
        np.testing.assert_array_equal(uniform.numpy().astype(np.float64), wanted)
        normal = random.normal(random.key(9), shape, dtype)
        assert (normal.shape, normal.dtype) == (shape, uniform.dtype)
        tolerance = {half: 1e-3, double: 1e-13}.get(dtype, ROUNDED)
        wanted = expected_normal((0, 9), shape, dtype)
        np.testing.assert_allclose(normal.numpy(), wanted, rtol=tolerance, atol=4 * tolerance)


def test_the_oracle_draws_the_same_numbers() -> None:
    key = np.array([0, 9], U32)
    found = run(lambda key: random.uniform(key, (4, 3)), key)
    np.testing.assert_array_equal(found, expected_uniform((0, 9), (4, 3), float))
    found = run(lambda key: random.normal(key, (4, 3)), key)
    np.testing.assert_allclose(found, expected_normal((0, 9), (4, 3), float), rtol=1e-6, atol=1e-6)


def distance(positions: Any) -> float:
    """The largest distance to the distribution that is uniform from 0 to 1, by the root of n."""
    n = len(positions)
    ordered, steps = np.sort(positions), np.arange(n + 1) / n
    return max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max()) * math.sqrt(n)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [float, half, double])
def test_distributions_pass_the_test_of_kolmogorov_and_smirnov(
    dtype: Any, device: sad.Device
) -> None:
    uniform = random.uniform(random.key(5), COUNT, dtype, -2.0, 3.0).numpy().astype(np.float64)
    normal = random.normal(random.key(6), COUNT, dtype).numpy().astype(np.float64)
    # Halves are steps of 2**-10 of the interval, at their lower ends.
    step = 5.0 * 2.0**-11 if dtype is half else 0.0
    spread = np.random.default_rng(1).uniform(-1.0, 1.0, COUNT) * step
    assert distance((uniform + step + spread + 2.0) / 5.0) < KOLMOGOROV
    if dtype is not half:
        assert distance([0.5 * math.erfc(-x / math.sqrt(2.0)) for x in normal]) < KOLMOGOROV
    for x, mean, variance, kurtosis in ((uniform, 0.5, 25 / 12, 1.8), (normal, 0.0, 1.0, 3.0)):
        assert x.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / COUNT) + step)
        error = np.sqrt((kurtosis - 1) / COUNT)
        assert x.var() == pytest.approx(variance, rel=4 * error + step)


@pytest.mark.gpu
def test_uniform_numbers_never_reach_the_upper_limit(device: sad.Device) -> None:
    close = np.nextafter(np.float32(1), np.float32(2))
    for low, high in ((1.0, float(close)), (-3.0, -1.0), (1e7, 1e7 + 4), (0.0, 1e-45), (-1.0, 0.0)):
        numbers = random.uniform(random.key(1), 4096, low=low, high=high).numpy()
        assert np.float32(low) <= numbers.min()
        assert numbers.max() < np.float32(high)
    halves = random.uniform(random.key(1), 4096, half, low=1.0, high=1.5).numpy()
    assert 1.0 <= halves.min() < halves.max() < 1.5
    np.testing.assert_array_equal(random.uniform(random.key(1), 9, low=2.0, high=2.0).numpy(), 2.0)


def test_normal_numbers_of_extreme_words_are_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.array([[0, 0], [0, 2**32 - 1], [2**32 - 1, 0], [2**32 - 1] * 2], U32)
    for dtype in (float, double):

        def draw(words: Any, dtype: Any = dtype) -> Any:
            monkeypatch.setattr(random, "_blocks", lambda *_, **__: words)
            return random.normal(None, 4, dtype)

        found = run(draw, words, dtype=uint2)
        assert np.isfinite(found).all()
        assert np.abs(found).max() < (9.5 if dtype is double else 6.8)


@pytest.mark.gpu
def test_limits_may_be_arrays_and_have_derivatives(device: sad.Device) -> None:
    key = random.key(8)
    u = expected_uniform((0, 8), (3, 2), float)
    low, high = np.array([0.0, 10.0], np.float32), np.array([[1.0], [20.0], [30.0]], np.float32)

    def draw(low: Any, high: Any) -> Any:
        return random.uniform(key, (3, 2), low=low, high=high)

    drawn, pullback = sad.vjp(draw, low, high)
    inside = low < high
    wanted = np.where(inside, low + u * (high - low), low)
    np.testing.assert_allclose(drawn.numpy(), wanted, rtol=1e-6)
    by_low, by_high = pullback(np.ones((3, 2), np.float32))
    np.testing.assert_allclose(by_low.numpy(), np.where(inside, 1 - u, 1).sum(0), rtol=1e-6)
    wanted = np.where(inside, u, 0).sum(1, keepdims=True)
    np.testing.assert_allclose(by_high.numpy(), wanted, rtol=1e-6, atol=1e-7)
    sad.gradcheck(draw, low, high + 20.0)


# -- permutations -------------------------------------------------------------------------------


def order(key: Any, n: int) -> np.ndarray[Any, Any]:
    words = blocks(key, (n,))
    return np.argsort(words[..., 0] ^ words[..., 1], kind="stable")


@pytest.mark.gpu
def test_a_permutation_sorts_the_words_of_its_key(device: sad.Device) -> None:
    for n in (0, 1, 2, 5, 1037):
        np.testing.assert_array_equal(
            random.permutation(random.key(4), n).numpy(), order((0, 4), n)
        )
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    key = random.key(4)
    np.testing.assert_array_equal(random.permutation(key, x).numpy(), x[order((0, 4), 5)])
    by_column = random.permutation(key, x, axis=-1).numpy()
    np.testing.assert_array_equal(by_column, x[:, order((0, 4), 7)])
    triples = sad.array(x[:, :3], dtype=sad.float3)
    np.testing.assert_array_equal(random.permutation(key, triples).numpy(), x[order((0, 4), 5), :3])


@pytest.mark.gpu
def test_each_permutation_of_three_is_as_frequent(device: sad.Device) -> None:
    keys = random.split(random.key(12), 6000)
    found = sad.map(lambda key: random.permutation(key, 3), keys).numpy()
    counts = np.unique(found @ [9, 3, 1], return_counts=True)[1]
    assert len(counts) == 6
    assert ((counts - 1000.0) ** 2 / 1000.0).sum() < CHI_SQUARE


@pytest.mark.gpu
def test_the_cotangent_of_a_permuted_array_goes_back(device: sad.Device) -> None:
    x, bar = np.zeros(6, np.float32), np.arange(6, dtype=np.float32)
    _, pullback = sad.vjp(lambda x: random.permutation(random.key(4), x), x)
    (by_x,) = pullback(bar)
    np.testing.assert_array_equal(by_x.numpy()[order((0, 4), 6)], bar)


# -- graphs and loops ---------------------------------------------------------------------------


@pytest.mark.gpu
def test_numbers_are_the_same_in_graphs_loops_and_mapped_functions(device: sad.Device) -> None:
    key = random.key(21)
    wanted = [random.uniform(random.fold_in(key, k), (2, 3)).numpy() for k in range(4)]

    @sad.graph
    def looped(key: Any) -> Any:
        def step(key: Any, k: Any) -> Any:
            return key, random.uniform(random.fold_in(key, k), (2, 3))

        return sad.loop(step, key, sad.iota(4))[1]

    np.testing.assert_array_equal(looped(key).numpy(), wanted)
    mapped = sad.map(lambda key: random.uniform(key, (2, 3)), random.split(key, 4))
    np.testing.assert_array_equal(mapped.numpy(), wanted)


@pytest.mark.gpu
def test_a_key_may_be_the_carry_of_a_loop(device: sad.Device) -> None:
    def step(_: Any, carry: Any) -> Any:
        key, total = carry
        keys = random.split(key)
        return keys[0], total + random.normal(keys[1], 5)

    start = (random.key(1), sad.zeros(5))
    (_, found), carry = sad.fori_loop(6, step, start), start
    for k in range(6):
        carry = step(k, carry)
    np.testing.assert_allclose(found.numpy(), carry[1].numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.gpu
def test_the_gradient_of_a_mean_is_taken_through_its_draws(device: sad.Device) -> None:
    def loss(scale: Any, key: Any) -> Any:
        return sad.mean((scale * random.normal(key, 4096)) ** 2)

    normal = random.normal(random.key(2), 4096).numpy().astype(np.float64)
    by_scale = sad.grad(loss)(1.5, random.key(2))
    assert float(by_scale) == pytest.approx(3.0 * (normal**2).mean(), rel=1e-5)


# -- refusals -----------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("SR0801", lambda: random.key(-1)),
        ("SR0801", lambda: random.key(2**64)),
        ("SR0801", lambda: random.key(0.5)),
        ("SR0801", lambda: random.fold_in(random.key(0), 2**32)),
        ("SR0801", lambda: random.fold_in(random.key(0), -1)),
        ("SR0330", lambda: random.fold_in(random.key(0), sad.zeros(3))),
        ("SR0330", lambda: random.key(sad.zeros(3))),
        ("SR0330", lambda: random.uniform(3, 5)),
        ("SR0802", lambda: random.uniform(random.split(random.key(0)), 5)),
        ("SR0802", lambda: random.split(random.split(random.key(0)))),
        ("SR0326", lambda: random.uniform(random.key(0), 5, int)),
        ("SR0312", lambda: random.normal(random.key(0), 5, sad.float3)),
        ("SR0379", lambda: random.uniform(random.key(0), 5, low=np.zeros(4, np.float32))),
        ("SR0371", lambda: random.normal(random.key(0), -5)),
        ("SR0370", lambda: random.split(random.key(0), 2.5)),
        ("SR0371", lambda: random.permutation(random.key(0), -1)),
        ("SR0323", lambda: random.permutation(random.key(0), sad.zeros((2, 2)), axis=2)),
    ],
)  # fmt: skip
def test_what_has_no_numbers_is_refused(
    code: str, call: Callable[[], Any], device: sad.Device
) -> None:
    with pytest.raises(sad.Error) as caught:
        call()
    assert caught.value.code == code
