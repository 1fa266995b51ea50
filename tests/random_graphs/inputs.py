"""Numbers of a random function -> its inputs on a device and in PyTorch, and back."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch

import shaderad as sad
from tests.random_graphs.kernels import (
    Cloud,
    Inputs,
    Lens,
    Mesh,
    Particle,
    Scene,
    Spins,
    Tensors,
)

Data = dict[str, Any]
NAMES = tuple(f.name for f in fields(Inputs))
PARTS: dict[str, tuple[str, ...]] = {
    "x": ("x",), "table": ("table",), "particles": ("at", "rate", "mass", "side"),
    "cloud": ("weights", "rates", "sides"), "picture": ("texels",), "mask": ("bytes",),
    "scene": ("factor0", "factor1", "points0", "points1", "scene_gain"),
    "lens": ("lens_gain", "centre", "steps"), "gain": ("gain",), "turn": ("turn",),
}  # fmt: skip
"""Numbers of each input."""
NUMBERS = ("factor0", "factor1", "steps", "turn")
INTS = ("side", "sides", *NUMBERS)
LENGTHS = (0, 1, 2, 3, 5, 8, 65)


@dataclass(frozen=True)
class Layout:
    """The forms of the inputs; between calls, only the length of `x` changes."""

    shapes: dict[str, tuple[int, ...]]
    has_mips: bool
    texel: Any
    """The element type of the picture in NumPy."""
    is_numpy: bool
    """True if arrays are passed as NumPy's."""

    def data(self, rng: np.random.Generator) -> Data:
        """Numbers that float32, and the formats of the pictures, hold exactly."""
        return {name: self._numbers(rng, name, shape) for name, shape in self.shapes.items()}

    def _numbers(self, rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> Any:
        if name in INTS:
            low = 0 if name == "steps" else -2
            return rng.integers(low, 4, shape).astype(np.int32)
        if name == "bytes":
            return rng.integers(0, 256, shape).astype(np.uint8)
        return rng.uniform(-1, 1, shape).astype(self.texel if name == "texels" else np.float32)

    def with_other_length(self, rng: np.random.Generator) -> Layout:
        """This layout, or in one of three cases one with another length of `x`."""
        length = LENGTHS[rng.integers(len(LENGTHS))] if rng.random() < 1 / 3 else None
        return self if length is None else replace(self, shapes=self.shapes | {"x": (length,)})

    def directions(self, rng: np.random.Generator) -> Data:
        """A tangent of each number, in float32."""
        return {
            name: np.float32(rng.uniform(-1, 1, shape))
            for name, shape in self.shapes.items() if name not in INTS
        }  # fmt: skip


def drawn_layout(rng: np.random.Generator) -> Layout:
    def one_of(options: Any) -> Any:
        return options[rng.integers(len(options))]

    has_mips = bool(rng.integers(2))
    n, p, c = one_of(LENGTHS), one_of(LENGTHS[1:5]), one_of(LENGTHS[:5])
    extents = one_of(((4, 8), (2, 2), (1, 4))) if has_mips else one_of(((3, 5), (1, 1), (4, 4)))
    shapes: dict[str, tuple[int, ...]] = {
        "x": (n,), "table": (one_of(LENGTHS[1:]),), "at": (p, 2), "rate": (p,), "mass": (p,),
        "side": (p,), "weights": (c,), "rates": (c,), "sides": (c,), "texels": (*extents, 4),
        "bytes": (2, 3, 4), "factor0": (), "factor1": (), "points0": (one_of(LENGTHS[:4]),),
        "points1": (one_of(LENGTHS[:4]),), "scene_gain": (), "lens_gain": (), "centre": (2,),
        "steps": (), "gain": (), "turn": (),
    }  # fmt: skip
    texel = np.float32 if has_mips else one_of((np.float32, np.float16))
    return Layout(shapes, has_mips, texel, bool(rng.integers(2)))


def on_device(data: Data, layout: Layout) -> Inputs:
    """Arguments that hold `data`."""
    return _in_structs(
        data,
        lambda x: x if layout.is_numpy else sad.array(x),
        picture=sad.texture(data["texels"], mips=layout.has_mips),
        mask=sad.texture(data["bytes"]),
        turn=int(data["turn"]),
    )


def as_tangents(dots: Data, layout: Layout) -> Inputs:
    """Tangents in the form of the arguments."""
    whole = {name: np.zeros(layout.shapes[name], np.int32) for name in INTS}
    return _in_structs(
        whole | dots, sad.array, picture=dots["texels"], mask=dots["bytes"], turn=None
    )


def _in_structs(data: Data, array: Any, **others: Any) -> Inputs:
    d = data
    spin = {"rate": d["rate"], "side": d["side"]}
    particles = {"at": d["at"], "spin": spin, "mass": d["mass"]}
    meshes = [Mesh(int(d[f"factor{k}"]), sad.pointer(sad.array(d[f"points{k}"]))) for k in range(2)]
    return Inputs(
        x=array(d["x"]),
        table=array(d["table"]),
        particles=sad.array(particles, dtype=Particle),
        cloud=Cloud(array(d["weights"]), Spins(array(d["rates"]), array(d["sides"]))),
        scene=Scene(meshes=sad.pointer(meshes), gain=float(d["scene_gain"])),
        lens=Lens(float(d["lens_gain"]), int(d["steps"]), tuple(map(float, d["centre"]))),
        gain=float(d["gain"]),
        **others,
    )


def in_torch(data: Data, layout: Layout) -> Tensors:
    """Numbers as kernels read them: bytes are read as 0 to 1."""
    scale = {"bytes": 255.0}
    floats = {
        name: torch.tensor(np.float64(x) / scale.get(name, 1.0))
        for name, x in data.items() if name not in INTS
    }  # fmt: skip
    ints = {name: torch.tensor(np.int64(data[name])) for name in ("side", "sides")}
    numbers = {name: int(data[name]) for name in NUMBERS}
    return {**floats, **ints, **numbers, "has_mips": layout.has_mips}


def parts_of(name: str, gradient: Any) -> Data:
    """The numbers of a gradient, or of a result in the form of an input."""
    if name == "particles":
        rows = gradient.numpy()
        return {"at": rows["at"], "rate": rows["spin"]["rate"], "mass": rows["mass"]}
    if name == "cloud":
        parts = {"weights": gradient.weights, "rates": gradient.spins.rates}
    elif name == "scene":
        meshes = [gradient.meshes[k] for k in range(2)]
        parts = {f"points{k}": mesh.points for k, mesh in enumerate(meshes)}
        parts["scene_gain"] = gradient.gain
    elif name == "lens":
        parts = {"lens_gain": gradient.gain, "centre": gradient.centre}
    else:
        parts = {PARTS[name][0]: gradient}
    return {part: plain(x) for part, x in parts.items()}


def plain(x: Any) -> np.ndarray:
    """NumPy for arrays of a device, numbers, and vectors."""
    return np.asarray(x.numpy() if hasattr(x, "numpy") else x)
