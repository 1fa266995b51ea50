"""`einsum` and `tensordot` are NumPy's, with their derivatives; what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3
from tests.tracing import check_derivatives, run

SPECS = [
    ("ik,kj->ij", (5, 6), (6, 7)),
    ("ik,kj->ji", (5, 6), (6, 7)),
    ("ij,jk", (3, 4), (4, 5)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("...ij,...jk->...ik", (2, 3, 4), (4, 5)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (6, 4, 5)),
    ("...i->...", (2, 3, 4)),
    ("i...,i...", (3, 2), (3, 2)),
    ("i,j->ij", (3,), (4,)),
    ("ij,ij->", (3, 4), (3, 4)),
    ("ij,kl->", (3, 4), (2, 5)),
    ("ij,i->j", (3, 4), (3,)),
    ("ij,ij->ij", (3, 1), (1, 4)),
    ("ij,jk,kl->il", (3, 4), (4, 5), (5, 6)),
    ("abc,cd,b->ad", (2, 3, 4), (4, 5), (3,)),
    ("abcd,cdef->abef", (2, 3, 4, 5), (4, 5, 3, 2)),
    (",ij->ij", (), (2, 3)),
    ("ij->ji", (3, 4)),
    ("ijk->", (2, 3, 4)),
    ("ii->", (4, 4)),
    ("ii->i", (4, 4)),
    ("iij,jk->ik", (3, 3, 4), (4, 2)),
    ("iii->i", (3, 3, 3)),
    ("ik,kj->ij", (3, 0), (0, 4)),
    ("ik,kj->ij", (0, 3), (3, 4)),
    (" a b , b c -> a c ", (2, 3), (3, 2)),
]


def drawn(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    return [rng.uniform(-1, 1, shape) for shape in shapes]


@pytest.mark.parametrize(("spec", *["shape"]), [(s, shapes) for s, *shapes in SPECS])
def test_einsum_is_numpys_and_so_are_its_derivatives(
    spec: str, shape: list[tuple[int, ...]]
) -> None:
    arrays = drawn(*shape)
    found = run(lambda *x: sad.einsum(spec, *x), *arrays)
    np.testing.assert_allclose(found, np.einsum(spec, *arrays), rtol=1e-12, atol=1e-12)
    check_derivatives(lambda *x: sad.einsum(spec, *x), *arrays)


DOTS = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((0,), (0,))]


@pytest.mark.parametrize(("left", "right"), DOTS)
def test_dot_of_numbers_is_numpys(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, y = drawn(left, right)
    np.testing.assert_allclose(run(sad.dot, x, y), np.dot(x, y), rtol=1e-12)
    check_derivatives(sad.dot, x, y)


@pytest.mark.gpu
def test_dot_of_vectors_is_by_element_in_every_spelling(device: sad.Device) -> None:
    points, along = np.float32(np.arange(12).reshape(4, 3)), np.float32([1.0, -2.0, 0.5])
    wanted = points @ along
    vectors = sad.array(points, dtype=float3)
    for direction in (float3(*along), sad.array(along), sad.array(along, dtype=float3)):
        np.testing.assert_allclose(sad.dot(vectors, direction).numpy(), wanted)
        np.testing.assert_allclose(sad.dot(direction, vectors).numpy(), wanted)
        np.testing.assert_allclose(sad.dot(sad.array(points), direction).numpy(), wanted)
    np.testing.assert_allclose(sad.dot(vectors, vectors).numpy(), np.sum(points * points, -1))
    for wrong in (
        lambda: sad.dot(vectors, sad.array(points[:, :2])),
        lambda: sad.dot(sad.array(points.reshape(1, 4, 3)), sad.array(along)),
        lambda: sad.dot(2.0, sad.array(along)),
    ):
        with pytest.raises(sad.LanguageError, match="SR0312"):
            wrong()
    with pytest.raises(sad.ShapeError, match="SR0344"):
        sad.dot(sad.array(along), sad.array(along[:2]))


@pytest.mark.parametrize("axes", [2, 1, 0, ([1, 2], [0, 1]), (2, 1), ([-1], [1]), ([], [])])
def test_tensordot_is_numpys(axes: Any) -> None:
    x, y = drawn((2, 4, 4), (4, 4, 5))
    found = run(lambda x, y: sad.tensordot(x, y, axes=axes), x, y)
    np.testing.assert_allclose(found, np.tensordot(x, y, axes=axes), rtol=1e-12)
    check_derivatives(lambda x, y: sad.tensordot(x, y, axes=axes), x, y)


@pytest.mark.gpu
@pytest.mark.parametrize("spec", ["bij,bjk->bik", "abcd,cdef->abef", "ij,jk,kl->il", "ii->i"])
def test_einsum_on_a_device(spec: str, device: sad.Device) -> None:
    arrays = [x.astype(np.float32) for x in drawn(*next(s[1:] for s in SPECS if s[0] == spec))]
    np.testing.assert_allclose(
        sad.einsum(spec, *arrays).numpy(), np.einsum(spec, *arrays), rtol=1e-4, atol=1e-5
    )
    sad.gradcheck(lambda *x: sad.einsum(spec, *x), *arrays)


@pytest.mark.parametrize(
    ("spec", "shapes", "code"),
    [
        (3, [(2, 2)], "SR0386"),
        ("ij,jk->ik", [(2, 2)], "SR0386"),
        ("ij->ij", [(2, 2, 2)], "SR0386"),
        ("ijk->ij", [(2, 2)], "SR0386"),
        ("i1->i", [(2, 2)], "SR0386"),
        ("ij->iq", [(2, 2)], "SR0386"),
        ("ij->ii", [(2, 2)], "SR0386"),
        ("...i->i", [(2, 2)], "SR0386"),
        ("ij->i->j", [(2, 2)], "SR0386"),
        ("ij,jk->ik", [(2, 3), (4, 2)], "SR0387"),
        ("...i,...i->...", [(2, 3), (4, 3)], "SR0387"),
        ("ii->i", [(2, 3)], "SR0387"),
        ("ii->i", [(1, 3)], "SR0387"),
    ],
)
def test_a_spec_that_does_not_fit_is_refused(spec: Any, shapes: Any, code: str) -> None:
    with pytest.raises(sad.ShapeError) as caught:
        run(lambda *x: sad.einsum(spec, *x), *drawn(*shapes))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("axes", "code"),
    [(4, "SR0386"), (-1, "SR0386"), ("ij", "SR0386"), ((0, 1, 2), "SR0386"),
     (([0], [0, 1]), "SR0386"), (([0, 0], [0, 1]), "SR0386"), ((5, 0), "SR0323"),
     ((0, 2), "SR0387")],
)  # fmt: skip
def test_axes_that_do_not_fit_are_refused(axes: Any, code: str) -> None:
    with pytest.raises(sad.ShapeError) as caught:
        run(lambda x, y: sad.tensordot(x, y, axes=axes), *drawn((2, 4, 4), (4, 4, 5)))
    assert caught.value.code == code
