"""`gradcheck` passes right derivatives and points at wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3, half, half3, render


@sad.struct
class Lens:
    center: float3
    power: float
    kind: int


@sad.kernel
def bent(i: sad.Index, lens: Lens, x: sad.In[float3], gain: float, y: sad.Out[float]):
    offset = x[i] - lens.center
    y[i] = gain * sad.sin(lens.power * sad.dot(offset, offset))


@sad.function
def cube(x: float) -> float:
    return x * x * x


@cube.backward_derivative
def cube_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += 2.0 * x.p * d_out


@sad.function
def rounded(x: float) -> float:
    return sad.round(x)


@rounded.backward_derivative(check=False)
def rounded_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += d_out


@sad.function
def doubled(x: float) -> float:
    return 2.0 * x


@doubled.backward_derivative
def doubled_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += 2.0 * d_out


@doubled.forward_derivative
def doubled_fwd(x: sad.DifferentialPair[float]) -> sad.DifferentialPair[float]:
    return sad.diff_pair(2.0 * x.p, 3.0 * x.d)


@sad.kernel
def cubes(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = cube(x[i])


@sad.kernel
def quantised(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = rounded(x[i])


@sad.kernel
def doubles(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = doubled(x[i])


@sad.kernel
def kinked(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.max(x[i], 0.0) + abs(x[i] - 0.25)


@sad.kernel
def faded(i: sad.Index, x: sad.In[half], tint: half3, gain: half, y: sad.Out[float]):
    y[i] = float(gain * gain * x[i]) * float(tint.x * tint.y + tint.z)


@sad.kernel
def steep(i: sad.Index, gain: half, y: sad.Out[float]):
    y[i] = cube(float(gain))


@sad.kernel
def nearest(i: sad.Index, x: sad.In[float], low: sad.Min[float], high: sad.Max[float]):
    low[2 * i] = sad.min(low[2 * i], x[i] * x[i])
    high[1] = sad.max(high[1], x[i])


LENS = Lens((0.1, 0.2, 0.3), 0.7, 4)


def test_right_derivatives_pass_with_a_report_that_can_be_read(device: sad.Device) -> None:
    x = np.linspace(-1, 1, 12).reshape(4, 3)
    report = sad.gradcheck(bent, LENS, x, 1.5, dim=4)
    assert [one.name for one in report.arguments] == ["lens.center", "lens.power", "x", "gain"]
    assert [one.size for one in report.arguments] == [3, 1, 12, 1]
    assert "vjp agrees with jvp" in repr(report)
    assert "x: 12 comparisons over 12 floats" in repr(report)
    assert "<td>x</td><td>12</td><td>12</td>" in report._repr_html_()


def test_device_arrays_of_structs_and_large_arguments_are_sampled(device: sad.Device) -> None:
    x = sad.array(np.linspace(-1, 1, 1500).reshape(500, 3), dtype=float3)
    report = sad.gradcheck(bent, sad.array(LENS, dtype=Lens), x, sad.array(1.5), dim=500)
    assert report.arguments[1].comparisons == 10


def test_functions_of_kernels_are_checked(device: sad.Device) -> None:
    def f(x: Any, parameters: dict[str, Any]) -> Any:
        y = bent(LENS, x, parameters["gain"], dim=2)
        return {"y": y * y, "count": 2}

    report = sad.gradcheck(f, np.float32([[1, 0, 0], [0, 1, 0]]), {"gain": 1.5, "name": "n"})
    assert [one.name for one in report.arguments] == ["x", "parameters['gain']"]


def test_kinks_between_the_steps_are_no_errors(device: sad.Device) -> None:
    sad.gradcheck(kinked, np.random.default_rng(1).normal(size=400), dim=400)


def test_a_wrong_backward_is_named_with_argument_element_and_numbers(device: sad.Device) -> None:
    with pytest.raises(sad.GradientError) as raised:
        sad.gradcheck(cubes, [0.0, 0.5], dim=2)
    assert raised.value.code == "SR0462"
    for part in ("`x`", "float 1", "the vjp says", "finite differences say"):
        assert part in str(raised.value)


def test_a_wrong_element_is_found_in_a_large_argument(device: sad.Device) -> None:
    with pytest.raises(sad.GradientError) as raised:
        sad.gradcheck(cubes, np.linspace(0.5, 1.5, 100), dim=100)
    assert raised.value.code == "SR0462"


def test_forward_and_backward_that_disagree_are_told_apart(device: sad.Device) -> None:
    with pytest.raises(sad.GradientError) as raised:
        sad.gradcheck(doubles, [1.0, 2.0], dim=2)
    assert raised.value.code == "SR0463"


def test_straight_through_estimators_are_exempt(device: sad.Device) -> None:
    report = sad.gradcheck(quantised, [0.4, 1.2], dim=2)
    assert report.is_exempt
    assert "exempt" in repr(report)
    assert report._repr_html_() == f"<pre>{report!r}</pre>"


def test_a_missing_forward_derivative_leaves_finite_differences(device: sad.Device) -> None:
    @sad.function
    def tripled(x: float) -> float:
        return 3.0 * x

    @tripled.backward_derivative
    def tripled_bwd(x: sad.DifferentialPair[float], d_out: float):
        x.d += 3.0 * d_out

    @sad.kernel
    def triples(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = tripled(x[i])

    report = sad.gradcheck(triples, [1.0, 2.0], dim=2)
    assert "no jvp to compare with" in repr(report)


def test_halves_are_moved_as_far_as_they_can_be(device: sad.Device) -> None:
    x, tint = np.float32([0.3, 7.3, -2.1]), (0.7, 1.3, 2.1)
    sad.gradcheck(faded, x, tint, 1.37, dim=3)
    sad.gradcheck(
        lambda x, gain: faded(x, tint, gain, dim=3), x.astype(np.float16), np.float16(1.37)
    )


def test_a_wrong_gradient_by_a_half_is_found_where_small_steps_round_away(
    device: sad.Device,
) -> None:
    with pytest.raises(sad.GradientError, match="SR0462"):
        sad.gradcheck(steep, 1.9, dim=2)


def test_a_wrong_gradient_of_half_arrays_is_found(device: sad.Device) -> None:
    @sad.custom_vjp
    def doubled(x):
        return x * 2.0

    doubled.defvjp(lambda x: (x * 2.0, ()), lambda _, y_bar: (y_bar * 1.75,))
    x = sad.array([0.3, 1.3, -2.1], dtype=half)
    sad.gradcheck(lambda x: sad.sin(x * 2.0), x)
    with pytest.raises(sad.GradientError, match="SR0462"):
        sad.gradcheck(doubled, x)


def test_extremes_that_nobody_writes_stay_infinite_and_pass(device: sad.Device) -> None:
    report = sad.gradcheck(nearest, [0.3, 0.8, 1.9], dim=3, shapes={"low": (6,), "high": (2,)})
    assert report.arguments[0].worst < 1.0


def test_a_step_that_moves_nothing_proves_nothing(device: sad.Device) -> None:
    with pytest.raises(sad.GradientError, match=r"SR0464.*1e-09 does not change `x`"):
        sad.gradcheck(kinked, [1.0], dim=1, eps=1e-9)


def test_tolerances_and_the_step_can_be_set(device: sad.Device) -> None:
    sad.gradcheck(cubes, [0.5], dim=1, rtol=1.0)
    with pytest.raises(sad.GradientError):
        sad.gradcheck(bent, LENS, np.ones((1, 3)), 1.5, dim=1, eps=1.0)


def test_columns_and_lists_are_checked_as_the_structs_they_stand_for(device: sad.Device) -> None:
    @sad.struct
    class Sample:
        weight: float
        place: int

    @sad.kernel
    def weighted(i: sad.Index, samples: sad.In[Sample], x: sad.In[float], y: sad.Out[float]):
        sample = samples[i]
        y[i] = sample.weight * sample.weight * x[sample.place]

    columns = {"weight": [0.5, 1.5, 2.0], "place": [1, 1, 0]}
    report = sad.gradcheck(weighted, columns, [2.0, 3.0], dim=3)
    assert "samples['weight']" in repr(report)
    items = [Sample(0.5, 1), Sample(1.5, 1), Sample(2.0, 0)]
    assert repr(sad.gradcheck(weighted, items, [2.0, 3.0], dim=3)) == repr(report)


# -- jumps -----------------------------------------------------------------------------------------


@sad.function
def slope_of_two(x: float) -> float:
    return 2.0 * x


@slope_of_two.backward_derivative
def slope_of_two_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += d_out if abs(x.p - 0.6) < 0.02 else 2.0 * d_out


@sad.kernel
def stairs(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = 2.0 * x[i] + (1.0 if x[i] > 0.25 else 0.0)


@sad.kernel
def wrong_stairs(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = slope_of_two(x[i]) + (1.0 if x[i] > 0.25 else 0.0)


@sad.kernel
def flat_stairs(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.floor(x[i])


ON_A_JUMP = np.float32([0.1, 0.25, 0.4, 0.9])


def test_a_jump_is_reported_as_one_with_all_numbers(device: sad.Device) -> None:
    with pytest.raises(sad.GradientError, match="SR0480") as caught:
        sad.gradcheck(stairs, ON_A_JUMP, dim=4)
    assert (
        caught.value.message == "the function seems to have a jump or a kink here: `x` at float 1"
    )
    for step in ("0.01", "0.002", "0.0005", "0.00025"):
        assert f"by a step of {step}" in caught.value.label
    assert "the vjp says" in caught.value.label
    with pytest.raises(sad.GradientError, match="SR0480"):
        sad.gradcheck(stairs, ON_A_JUMP, dim=4, eps=1e-3)
    with pytest.raises(sad.GradientError, match="SR0480"):
        sad.gradcheck(flat_stairs, [0.5, 2.0], dim=2)


def test_elements_at_jumps_are_skipped_up_to_the_share_that_is_stated(device: sad.Device) -> None:
    report = sad.gradcheck(stairs, ON_A_JUMP, dim=4, jump_share=0.25)
    assert report.arguments[0].skipped == 1
    assert "1 float skipped at jumps" in repr(report)
    with pytest.raises(sad.GradientError, match="SR0480"):
        sad.gradcheck(stairs, ON_A_JUMP, dim=4, jump_share=0.2)
    sad.gradcheck(flat_stairs, [0.5, 1.7, 2.0], dim=3, jump_share=0.4)
    for share in (-0.1, 1.5):
        with pytest.raises(sad.DerivativeError, match="SR0465"):
            sad.gradcheck(stairs, ON_A_JUMP, dim=4, jump_share=share)


@pytest.mark.parametrize("beside", [0.6, 0.61])
def test_a_wrong_gradient_beside_jumps_is_found(beside: float, device: sad.Device) -> None:
    few = np.append(ON_A_JUMP, np.float32(beside))
    many = np.float32(np.random.default_rng(4).uniform(0.3, 0.5, 2000))
    many[[5, 800, 1700]] = 0.25
    sad.gradcheck(wrong_stairs, many, dim=2000, jump_share=0.01)
    many[1234] = beside
    for x in (few, many):
        with pytest.raises(sad.GradientError, match="SR0462") as caught:
            sad.gradcheck(wrong_stairs, x, dim=x.size, jump_share=0.3)
        assert f"float {x.tolist().index(np.float32(beside))}" in caught.value.message


def test_a_wrong_gradient_is_found_where_a_jump_lies_between_the_steps(device: sad.Device) -> None:
    @sad.kernel
    def split(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = slope_of_two(x[i]) + (1.0 if x[i] > 0.601 else 0.0)

    with pytest.raises(sad.GradientError, match="SR0462"):
        sad.gradcheck(split, [0.6], dim=1, jump_share=1.0)
    with pytest.raises(sad.GradientError, match="SR0462"):
        sad.gradcheck(split, [0.6], dim=1, eps=5e-4, jump_share=1.0)


@sad.kernel
def clamped(i: sad.Index, x: sad.In[sad.float2], y: sad.Out[float]):
    y[i] = 9.0 * sad.clamp(x[i].x, 0.0, 1.0) + x[i].y


def test_a_kink_that_only_the_smallest_step_avoids_is_no_jump(device: sad.Device) -> None:
    report = sad.gradcheck(clamped, [[1.0004, 0.5]], dim=1)
    assert "skipped" not in repr(report)


def test_an_element_is_named_by_its_position(device: sad.Device) -> None:
    with pytest.raises(sad.GradientError, match="SR0480") as caught:
        sad.gradcheck(clamped, [[0.5, 0.5], [1.0001, 0.5]], dim=2)
    assert caught.value.message.endswith("here: `x` at float 2, which is [1, 0]")


def test_the_silhouette_of_a_picture_is_a_jump_and_its_inside_is_not(device: sad.Device) -> None:
    triangle = sad.array(np.int32([[0, 1, 2]]), dtype=sad.int3)
    # The left edge of the triangle runs through the centres of a column of pixels.
    clip = np.float32([[-0.875, -0.95, 0.5, 1], [0.9, -0.93, 0.4, 1], [-0.875, 0.93, 0.3, 1]])

    def depths(clip: Any, scale: float = 1.0) -> Any:
        found = render.rasterize(clip, triangle, (8, 8))
        return sad.where(found.face >= 0, scaled(found.depth, scale), 0.0)

    @sad.custom_vjp
    def scaled(x: Any, scale: Any) -> Any:
        return 1.0 * x

    scaled.defvjp(lambda x, scale: (1.0 * x, scale), lambda scale, bar: (scale * bar, None))
    clip_ = sad.array(clip, dtype=sad.float4)
    with pytest.raises(sad.GradientError, match="SR0480"):
        sad.gradcheck(depths, clip_)
    report = sad.gradcheck(depths, clip_, jump_share=0.7)
    assert 0 < report.arguments[0].skipped < 9
    with pytest.raises(sad.GradientError, match="SR0462"):
        sad.gradcheck(lambda c: depths(c, 1.5), clip_, jump_share=0.7)
