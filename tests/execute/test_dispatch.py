"""How launches become dispatches: words, arenas, offsets, fills, reports. No device."""

from __future__ import annotations

import numpy as np
import pytest

from shaderad.arrays.arrays import Array, array
from shaderad.compiler import artifact
from shaderad.device.devices import Device
from shaderad.device.words import uniform_words
from shaderad.diagnostics import BoundsError, LimitError, ShapeError, Span
from shaderad.ir import nodes, types
from shaderad.ir.types import FLOAT, INT, UINT, Access, BufferType, Vector
from shaderad.lower import kernels
from shaderad.lower.bindings import Lowered, Mode, Resource, Role, Site, SiteKind, Word, WordKind
from shaderad.runtime.buffers import check_element_count
from tests.execute.launches import Launch
from tests.fake_runtime import FakeRuntime

SITES = (
    Site(SiteKind.BOUNDS, Span("model.py", 7), "x"),
    Site(SiteKind.LIMIT, Span("model.py", 8), ""),
    Site(SiteKind.ASSERT, Span("model.py", 9), "x is positive"),
    Site(SiteKind.DIVISION, Span("model.py", 10), ""),
    Site(SiteKind.SHAPE, Span("model.py", 11), "x"),
)
FACTOR = nodes.Uniform(name="factor", path=("factor",), type=FLOAT)


def buffer(name: str, access: Access, element: types.Type = FLOAT) -> nodes.Buffer:
    return nodes.Buffer(name=name, path=(name,), type=BufferType(access, element))


def kernel(*buffers: nodes.Buffer) -> nodes.Kernel:
    return nodes.Kernel(
        name="scale",
        index_names=("i",),
        parameters=tuple(nodes.KernelParameter(name=b.name, type=b.type) for b in buffers),
        buffers=buffers,
        uniforms=(FACTOR,),
        body=(),
        local_types={},
        span=Span("model.py", 1),
    )


SCALE = kernel(buffer("x", Access.IN), buffer("y", Access.OUT))


def lowered(
    name: str, mode: Mode, resources: tuple[Resource, ...], words: tuple[Word, ...], **more: object
) -> Lowered:
    bindings = tuple(
        artifact.Binding(
            r.slot, r.members[0] if r.members else "report", artifact.BindingAccess.READ
        )
        for r in resources
    )
    program = artifact.Program(
        name=name,
        slang="",
        workgroup=(64, 1, 1),
        bindings=bindings,
        parameter_words=tuple(str(k) for k in range(len(words))),
    )
    return Lowered(program, mode, resources, words, **more)  # type: ignore[arg-type]


class Scene:
    """A device whose kernels are what `programs` says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.programs: dict[Mode, tuple[Lowered, ...]] = {}
        self.runtime = FakeRuntime({})
        self.device = Device(self.runtime)  # type: ignore[arg-type]
        monkeypatch.setattr(kernels, "lower_kernel", lambda k, mode, variant: self.programs[mode])

    def add(self, one: Lowered, shader: object) -> None:
        self.programs[one.mode] = (*self.programs.get(one.mode, ()), one)
        self.runtime.shaders[one.program.name] = shader  # type: ignore[index]

    def array(self, data: object, dtype: object = None) -> Array:
        return array(data, dtype=dtype, device=self.device)

    def launch(self, x: Array, factor: float = 2.0, used: nodes.Kernel = SCALE) -> Launch:
        dim = x.shape
        results = {b.name: dim for b in used.buffers if b.access is not Access.IN}
        inputs = {b.name: x for b in used.buffers if b.access is Access.IN}
        words = uniform_words(factor, FLOAT, "factor")
        return Launch(used, self.device, dim, inputs, results, {"factor": words})


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


X, Y = Resource(0, Role.INPUT, ("x",)), Resource(1, Role.OUTPUT, ("y",))
THREADS, FACTOR_WORD = Word(WordKind.THREAD_COUNT), Word(WordKind.UNIFORM, "factor")


def scaled(memory: dict[int, np.ndarray], words: np.ndarray, groups: object) -> None:
    count, factor = int(words[0]), words[1:2].view(np.float32)[0]
    memory[1][:count] = (memory[0][:count].view(np.float32) * factor).view(np.uint32)


def test_a_launch_runs_once_and_only_when_looked_at(scene: Scene) -> None:
    scene.add(lowered("scale_primal", Mode.PRIMAL, (X, Y), (THREADS, FACTOR_WORD)), scaled)
    launch = scene.launch(scene.array([1.0, 2.0, 3.0]), 0.5)
    assert not scene.runtime.dispatched
    y = launch.outputs["y"]
    np.testing.assert_array_equal(y.numpy(), [0.5, 1.0, 1.5])
    np.testing.assert_array_equal(y[1:].numpy(), [1.0, 1.5])
    assert [one.name for one in scene.runtime.dispatched] == ["scale_primal"]
    assert scene.runtime.dispatched[0].groups == (1, 1, 1)


def test_views_of_pending_results_see_the_content(scene: Scene) -> None:
    scene.add(lowered("scale_primal", Mode.PRIMAL, (X, Y), (THREADS, FACTOR_WORD)), scaled)
    tail = scene.launch(scene.array([1.0, 2.0, 3.0])).outputs["y"][1:][1:]
    np.testing.assert_array_equal(tail.numpy(), [6.0])


def test_words_say_what_they_are_asked_for(scene: Scene) -> None:
    words = (
        THREADS,
        Word(WordKind.TILE),
        Word(WordKind.GROUP_COUNT_X),
        Word(WordKind.DIM, index=0),
        Word(WordKind.COUNT, "x"),
        Word(WordKind.SHAPE, "y", 0),
        Word(WordKind.BITS, index=0x7F800000),
        Word(WordKind.SITE_BASE),
        FACTOR_WORD,
    )
    scene.add(lowered("scale_primal", Mode.PRIMAL, (X, Y), words), lambda *_: None)
    launch = scene.launch(scene.array(np.zeros(100)), 1.0)
    launch.run()
    found = scene.runtime.dispatched[0].words
    assert found.tolist() == [100, 64, 2, 100, 100, 100, 0x7F800000, 0, 0x3F800000]


def test_a_slice_is_copied_where_the_program_takes_no_offset(scene: Scene) -> None:
    scene.add(lowered("scale_primal", Mode.PRIMAL, (X, Y), (THREADS, FACTOR_WORD)), scaled)
    launch = scene.launch(scene.array([1.0, 2.0, 3.0])[1:])
    np.testing.assert_array_equal(launch.outputs["y"].numpy(), [4.0, 6.0])


def test_a_slice_is_bound_with_its_offset_where_the_program_takes_one(scene: Scene) -> None:
    words = (THREADS, FACTOR_WORD, Word(WordKind.OFFSET, "x", role=Role.INPUT))

    def shifted(memory: dict[int, np.ndarray], found: np.ndarray, groups: object) -> None:
        assert found[2] == 3
        scaled({0: memory[0][3:], 1: memory[1]}, found, groups)

    scene.add(lowered("scale_primal", Mode.PRIMAL, (X, Y), words), shifted)
    launch = scene.launch(scene.array([9.0, 9.0, 9.0, 1.0, 2.0])[3:])
    np.testing.assert_array_equal(launch.outputs["y"].numpy(), [2.0, 4.0])


def test_arenas_hold_their_members_one_after_the_other(scene: Scene) -> None:
    both = kernel(
        buffer("a", Access.IN),
        buffer("b", Access.IN),
        buffer("y", Access.OUT),
        buffer("z", Access.OUT),
    )
    inputs, outputs = Resource(0, Role.INPUT, ("a", "b")), Resource(1, Role.OUTPUT, ("y", "z"))
    words = tuple(
        Word(WordKind.OFFSET, name, role=role)
        for role, name in (
            (Role.INPUT, "a"),
            (Role.INPUT, "b"),
            (Role.OUTPUT, "y"),
            (Role.OUTPUT, "z"),
        )
    )

    def swapped(memory: dict[int, np.ndarray], found: np.ndarray, groups: object) -> None:
        a, b, y, z = (int(w) for w in found)
        memory[1][y : y + 3] = memory[0][b : b + 3]
        memory[1][z : z + 3] = memory[0][a : a + 3]

    scene.add(lowered("scale_primal", Mode.PRIMAL, (inputs, outputs), words), swapped)
    a, b = scene.array([1.0, 2.0, 3.0]), scene.array([4.0, 5.0, 6.0])
    shapes = {"y": (3,), "z": (3,)}
    launch = Launch(both, scene.device, (3,), {"a": a, "b": b}, shapes)
    np.testing.assert_array_equal(launch.outputs["y"].numpy(), [4.0, 5.0, 6.0])
    np.testing.assert_array_equal(launch.outputs["z"].numpy(), [1.0, 2.0, 3.0])


def test_outputs_are_filled_before_the_dispatch_also_without_threads(scene: Scene) -> None:
    filled = Resource(1, Role.OUTPUT, ("y",), fill_word=0x3F800000)
    scene.add(lowered("scale_primal", Mode.PRIMAL, (X, filled), (THREADS,)), lambda *_: None)
    np.testing.assert_array_equal(
        scene.launch(scene.array([1.0, 2.0])).outputs["y"].numpy(), [1, 1]
    )
    launch = Launch(SCALE, scene.device, (0,), {}, {"y": (3,)})
    np.testing.assert_array_equal(launch.outputs["y"].numpy(), [1, 1, 1])
    assert [one.name for one in scene.runtime.dispatched].count("scale_primal") == 1


GRADIENT = Resource(0, Role.GRADIENT, ("x",), fill_word=0)
COTANGENT = Resource(1, Role.COTANGENT, ("y",))


def doubled(memory: dict[int, np.ndarray], words: np.ndarray, groups: object) -> None:
    count = int(words[0])
    gradient = memory[0].view(np.float32)
    gradient[:count] += 2 * memory[1][:count].view(np.float32)


def test_backward_reads_cotangents_and_makes_gradients(scene: Scene) -> None:
    scene.add(lowered("scale_bwd", Mode.BACKWARD, (GRADIENT, COTANGENT), (THREADS,)), doubled)
    launch = scene.launch(scene.array([1.0, 2.0]))
    found = launch.backward(frozenset({"x"}), {"y": scene.array([3.0, 4.0])})
    np.testing.assert_array_equal(found["x"].numpy(), [6.0, 8.0])
    assert [one.name for one in scene.runtime.dispatched] == ["scale_bwd"]


def test_a_missing_cotangent_is_zero(scene: Scene) -> None:
    scene.add(lowered("scale_bwd", Mode.BACKWARD, (GRADIENT, COTANGENT), (THREADS,)), doubled)
    found = scene.launch(scene.array([1.0, 2.0])).backward(frozenset({"x"}), {})
    np.testing.assert_array_equal(found["x"].numpy(), [0.0, 0.0])


def test_accumulating_adds_to_the_array_that_is_given(scene: Scene) -> None:
    total = Resource(0, Role.GRADIENT, ("x",))
    scene.add(lowered("scale_bwd", Mode.BACKWARD, (total, COTANGENT), (THREADS,)), doubled)
    into, cotangent = scene.array([10.0, 20.0]), scene.array([3.0, 4.0])
    launch = scene.launch(scene.array([1.0, 2.0]))
    found = launch.backward(frozenset({"x"}), {"y": cotangent}, {"x": into})
    assert found["x"].buffer is into.buffer
    np.testing.assert_array_equal(into.numpy(), [16.0, 28.0])


def test_accumulating_goes_through_an_arena_that_holds_the_sums(scene: Scene) -> None:
    both = kernel(buffer("a", Access.IN), buffer("b", Access.IN), buffer("y", Access.OUT))
    sums = Resource(0, Role.GRADIENT, ("a", "b"))
    words = tuple(Word(WordKind.OFFSET, name, role=Role.GRADIENT) for name in "ab")

    def adds(memory: dict[int, np.ndarray], found: np.ndarray, groups: object) -> None:
        for start, step in zip(found, (1.0, 10.0), strict=True):
            memory[0][start : start + 3].view(np.float32)[:] += step

    scene.add(lowered("both_bwd", Mode.BACKWARD, (sums,), words), adds)
    a, b = scene.array([1.0, 2.0, 3.0]), scene.array([4.0, 5.0, 6.0])
    inputs = {"a": scene.array([0.0] * 3), "b": scene.array([0.0] * 3)}
    launch = Launch(both, scene.device, (3,), inputs, {"y": (3,)})
    launch.backward(frozenset({"a", "b"}), {}, {"a": a, "b": b})
    np.testing.assert_array_equal(a.numpy(), [2.0, 3.0, 4.0])
    np.testing.assert_array_equal(b.numpy(), [14.0, 15.0, 16.0])


def test_a_schedule_serves_every_number_and_every_slice(scene: Scene) -> None:
    words = (THREADS, FACTOR_WORD, Word(WordKind.OFFSET, "x", role=Role.INPUT))

    def shifted(memory: dict[int, np.ndarray], found: np.ndarray, groups: object) -> None:
        scaled({0: memory[0][found[2] :], 1: memory[1]}, found, groups)

    scene.add(lowered("scale_primal", Mode.PRIMAL, (X, Y), words), shifted)
    x = scene.array([1.0, 2.0, 3.0, 4.0])
    for start, factor in ((0, 2.0), (1, 3.0), (2, 3.0)):
        y = scene.launch(x[start : start + 2], factor).outputs["y"]
        np.testing.assert_array_equal(y.numpy(), factor * np.float32([start + 1, start + 2]))


def reporting(site: int, index: int, length: int) -> object:
    def shader(memory: dict[int, np.ndarray], words: np.ndarray, groups: object) -> None:
        memory[2][:4] = [2, words[0] + site + 1, np.uint32(index & 0xFFFFFFFF), length]

    return shader


@pytest.mark.parametrize(
    ("site", "kind", "code", "says"),
    [
        (
            0,
            BoundsError,
            "SR0660",
            "index -1 is out of range for `x` of length 5",
        ),
        (1, LimitError, "SR0661", "kernel `scale` ran past its limit of 5"),
        (2, BoundsError, "SR0662", "x is positive"),
        (3, BoundsError, "SR0663", "division by zero in kernel `scale`"),
        (4, BoundsError, "SR0664", "`x` has the length 5 in kernel `scale`"),
    ],
)
def test_reports_become_errors_at_the_next_look_and_are_then_cleared(
    scene: Scene, site: int, kind: type[Exception], code: str, says: str
) -> None:
    resources = (X, Y, Resource(2, Role.REPORT, ()))
    one = lowered("scale_primal", Mode.PRIMAL, resources, (Word(WordKind.SITE_BASE),), sites=SITES)
    scene.add(one, reporting(site, -1, 5))
    launch = scene.launch(scene.array([1.0]))
    launch.run()
    with pytest.raises(kind, match=says) as raised:
        launch.outputs["y"].numpy()
    assert raised.value.code == code  # type: ignore[attr-defined]
    assert raised.value.span == SITES[site].span  # type: ignore[attr-defined]
    launch.outputs["y"].numpy()


def test_a_report_survives_a_read_by_another_thread_just_before_it(scene: Scene) -> None:
    resources = (X, Y, Resource(2, Role.REPORT, ()))

    def read_then_report(memory: dict[int, np.ndarray], words: np.ndarray, groups: object) -> None:
        scene.device.synchronize()
        reporting(0, -1, 5)(memory, words, groups)

    one = lowered("scale_primal", Mode.PRIMAL, resources, (Word(WordKind.SITE_BASE),), sites=SITES)
    scene.add(one, read_then_report)
    scene.launch(scene.array([1.0])).run()
    with pytest.raises(BoundsError):
        scene.device.synchronize()


def test_sites_of_several_programs_do_not_mix(scene: Scene) -> None:
    resources = (X, Y, Resource(2, Role.REPORT, ()))
    words = (Word(WordKind.SITE_BASE),)
    scene.add(lowered("first", Mode.PRIMAL, resources, words, sites=SITES[:1]), lambda *_: None)
    scene.add(
        lowered("second", Mode.PRIMAL, resources, words, sites=SITES[1:2]), reporting(0, 0, 9)
    )
    scene.launch(scene.array([1.0])).run()
    with pytest.raises(LimitError):
        scene.device.synchronize()


def test_reports_cost_no_round_trip_of_their_own(scene: Scene) -> None:
    resources = (X, Y, Resource(2, Role.REPORT, ()))
    scene.add(lowered("scale_primal", Mode.PRIMAL, resources, (), sites=SITES), lambda *_: None)
    launch = scene.launch(scene.array([1.0]))
    launch.outputs["y"].numpy()
    assert scene.runtime.read_count == 1


def test_decoding_runs_one_thread_a_word_of_its_array(scene: Scene) -> None:
    best = kernel(buffer("x", Access.IN), buffer("low", Access.MIN, Vector(FLOAT, 3)))
    low = Resource(1, Role.OUTPUT, ("low",), fill_word=7)
    scene.add(lowered("min_primal", Mode.PRIMAL, (X, low), (THREADS,)), lambda *_: None)
    in_place = Resource(1, Role.OUTPUT, ("low",))

    def decode(memory: dict[int, np.ndarray], words: np.ndarray, groups: object) -> None:
        memory[1][: words[0]] += 1

    scene.add(lowered("min_decode", Mode.PRIMAL, (in_place,), (THREADS,), threads_of="low"), decode)
    launch = Launch(best, scene.device, (0,), {}, {"low": (2,)})
    np.testing.assert_array_equal(launch.outputs["low"].numpy().view(np.uint32), np.full((2, 3), 8))


def test_long_launches_fold_into_rows_of_workgroups(scene: Scene) -> None:
    scene.add(lowered("scale_primal", Mode.PRIMAL, (Y,), (THREADS,)), lambda *_: None)
    launch = Launch(SCALE, scene.device, (65535 * 64 + 1,), {}, {"y": (1,)})
    launch.run()
    assert scene.runtime.dispatched[0].groups == (65535, 2, 1)


@pytest.mark.parametrize(
    ("value", "t", "expected"),
    [
        (1.0, FLOAT, np.float32([1.0])),
        (-1, INT, np.int32([-1])),
        (2**32 - 1, UINT, np.uint32([2**32 - 1])),
        (True, types.BOOL, np.uint32([1])),
        (0.5, types.HALF, np.float32([0.5])),
        (0.1, types.DOUBLE, np.float64([0.1])),
        ((1.0, 2.0, 3.0), Vector(FLOAT, 3), np.float32([1.0, 2.0, 3.0])),
        (np.float64(2.5), FLOAT, np.float32([2.5])),
        (3, FLOAT, np.float32([3.0])),
    ],
)
def test_uniforms_become_words(value: object, t: types.Type, expected: np.ndarray) -> None:
    assert uniform_words(value, t, "u") == expected.tobytes()


@pytest.mark.parametrize(
    ("value", "t", "code"),
    [
        (1e39, FLOAT, "SR0354"),
        (2**31, INT, "SR0354"),
        (-1, UINT, "SR0354"),
        (1.5, INT, "SR0353"),
        ([1.0, 2.0], FLOAT, "SR0357"),
        (True, FLOAT, "SR0353"),
    ],
)
def test_uniforms_that_do_not_fit_are_refused(value: object, t: types.Type, code: str) -> None:
    with pytest.raises(ShapeError) as raised:
        uniform_words(value, t, "u")
    assert raised.value.code == code


@pytest.mark.parametrize("x", [[1.0, 2.0], [1.0, 2.0, 3.0]])
def test_what_the_launch_covers_is_not_filled(scene: Scene, x: list[float]) -> None:
    covered = Resource(0, Role.GRADIENT, ("x",), fill_word=5, is_covered_by_launch=True)
    scene.add(lowered("scale_bwd", Mode.BACKWARD, (covered,), (THREADS,)), lambda *_: None)
    launch = Launch(SCALE, scene.device, (2,), {"x": scene.array(x)}, {"y": (2,)})
    launch.backward(frozenset({"x"}), {})
    is_filled = "fill_words" in [one.name for one in scene.runtime.dispatched]
    assert is_filled == (len(x) != 2)


def test_arrays_beyond_the_reach_of_an_int_are_refused() -> None:
    check_element_count((2**31 - 1,))
    with pytest.raises(ShapeError) as raised:
        check_element_count((2**16, 2**15))
    assert raised.value.code == "SR0362"
