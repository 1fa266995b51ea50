"""Runs kernels and graphs that `shaderad build` wrote, by wgpu and nothing but manifest.json.

An entry of the manifest has a plan for each mode, with numbered buffers and commands over them.
`Kernel` and `Graph` compute the sizes of a call; `Run` creates the buffers and runs the commands.
The next `Build.read` raises the reports of threads, such as an index out of range, with the Python
line.
"""

from __future__ import annotations

import ast
import json
import math
import operator
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import wgpu

SCHEMA, SCHEMA_VERSION = "shaderad-manifest", 3
FEATURES = {
    "float-atomics": "shader-float32-atomic",
    "subgroups": "subgroup",
    "half": "shader-f16",
    "double": "shader-f64",
}
"""Features of the manifest, with their names in wgpu."""
LIMITS = (
    "max-buffer-size",
    "max-storage-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
)
"""Limits that are raised to those of the adapter: WebGPU guarantees only 8 buffers of 128 MiB."""
FILTERABLE = "float32-filterable"
"""Requested if programs filter textures: without it, formats have at most 16 bits per channel."""
LAYERED = ("2d-array", "cube")
"""The dimensions of textures whose levels have equally many layers."""
WRAPS = {"repeat": "repeat", "clamp": "clamp-to-edge", "mirror": "mirror-repeat"}
LINEAR, MIXES_LEVELS = 1 << 6, 1 << 7
"""Bits of a sampler's settings that follow those of its wrap modes."""
GROUPS_PER_ROW = 65535
REPORT_BYTES = 2080
USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
Shape = tuple[int, ...]


class HostError(Exception):
    """An error in the folder, the device or an argument, described in one sentence."""


@dataclass(frozen=True)
class Array:
    """Packed elements in a buffer."""

    buffer: wgpu.GPUBuffer
    byte_count: int
    shape: Shape
    """The shape in elements, of which a float3 is one."""


@dataclass(frozen=True)
class Texture:
    """A texture that kernels read; as an array it has one axis, the texels of all levels."""

    texture: wgpu.GPUTexture
    dimension: str
    """``"1d"``, ``"2d"``, ``"2d-array"``, ``"3d"``, or ``"cube"``, which has six layers."""
    byte_count = 0

    def extents(self, level: int) -> tuple[int, int, int]:
        """Texels along x, y and z on a level; z counts layers and the faces of a cube."""
        width, height, depth = (max(1, n >> level) for n in self.texture.size)
        return width, height, self.texture.size[2] if self.dimension in LAYERED else depth

    @property
    def shape(self) -> Shape:
        return (sum(prod(self.extents(k)) for k in range(self.texture.mip_level_count)),)

    @property
    def word(self) -> bytes:
        """The uniform of its size: texels along x, y and z, and levels."""
        return struct.pack("<4i", *self.extents(0), self.texture.mip_level_count)


@dataclass(frozen=True)
class Sampler:
    """A sampler for kernels."""

    sampler: wgpu.GPUSampler
    word: bytes
    """The uniform of its settings: see docs/manifest.md."""
    byte_count = 0
    shape: Shape = ()


Input = Array | Texture | Sampler


class Build:
    """The entries of a folder, for one target (``spirv`` or ``wgsl``), on one device."""

    def __init__(self, folder: Path, target: str) -> None:
        self.folder, self.target = folder, target
        try:
            self.manifest = json.loads(self._content("manifest.json"))
        except ValueError:
            raise HostError(f"manifest.json in {folder} is no JSON") from None
        found = self.manifest.get("schema"), self.manifest.get("schema_version")
        if found != (SCHEMA, SCHEMA_VERSION):
            raise HostError(f"{folder} has manifest {found}, this host reads version 3")
        self.types: dict[str, dict[str, Any]] = self.manifest["types"]
        self.device = self._opened()
        self._pipelines: dict[str, wgpu.GPUComputePipeline] = {}
        self._report = self.buffer(REPORT_BYTES)
        self._sites: list[dict[str, Any]] = []
        self._site_bases: dict[str, int] = {}

    def _content(self, name: str) -> bytes:
        try:
            return (self.folder / name).read_bytes()
        except OSError as failure:
            raise HostError(f"no build in {self.folder}: {name}: {failure.strerror}") from None

    def _opened(self) -> wgpu.GPUDevice:
        """The first device with all features that the kernels of the target use."""
        try:
            best = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
        except RuntimeError:
            raise HostError("wgpu finds no GPU and no software driver for one") from None
        programs = [p for e in self.manifest["entries"] for p in self._plans(e)["programs"]]
        wanted = {feature for program in programs for feature in program["features"]}
        missing = sorted(f for f in wanted if FEATURES.get(f) not in best.features)
        others = wgpu.gpu.enumerate_adapters_sync() if missing else []
        features = {FEATURES.get(f) for f in wanted}
        adapter = next((a for a in [best, *others] if a.features >= features), None)
        if adapter is None:
            raise HostError(f"{best.info['device']} has no {', '.join(missing)}")
        filters = any(one.get("is_filtered") for p in programs for one in p["resources"])
        filterable = [FILTERABLE] if filters and FILTERABLE in adapter.features else []
        return adapter.request_device_sync(
            required_features=[*(FEATURES[feature] for feature in sorted(wanted)), *filterable],
            required_limits={limit: adapter.limits[limit] for limit in LIMITS},
        )

    def _plans(self, entry: dict[str, Any]) -> dict[str, Any]:
        if self.target not in entry["targets"]:
            raise HostError(f"{self.folder} was not built for {self.target}")
        return entry["targets"][self.target]

    def kernel(self, name: str) -> Kernel:
        entry = self._entry("kernel", name)
        return Kernel(self, entry, self._plans(entry))

    def graph(self, name: str) -> Graph:
        entry = self._entry("graph", name)
        return Graph(self, entry, self._plans(entry))

    def _entry(self, kind: str, name: str) -> dict[str, Any]:
        for entry in self.manifest["entries"]:
            if (entry["kind"], entry["name"]) == (kind, name):
                return entry
        raise HostError(f"{self.folder} has no {kind} {name}")

    def array(self, data: bytes, element: str, shape: Shape | None = None) -> Array:
        """A device array of packed elements of a type of the manifest; of one axis by default."""
        size = self.types[element]["byte_count"]
        if len(data) % size:
            raise HostError(f"{len(data)} bytes are no whole number of {element}")
        buffer = self.buffer(len(data))
        self.device.queue.write_buffer(buffer, 0, data.ljust(_up(len(data), 4), b"\0"))
        return Array(buffer, len(data), (len(data) // size,) if shape is None else shape)

    def texture(
        self,
        levels: Sequence[bytes],
        size: tuple[int, int, int],
        format: str = "rgba32float",  # noqa: A002 - WebGPU's word
        dimension: str = "2d",
    ) -> Texture:
        """A texture from the bytes of its levels, row after row; `size` is along x, y and z."""
        native = self.device.create_texture(
            size=size,
            format=format,
            dimension="2d" if dimension in LAYERED else dimension,
            mip_level_count=len(levels),
            usage=wgpu.TextureUsage.TEXTURE_BINDING | wgpu.TextureUsage.COPY_DST,
        )
        made = Texture(native, dimension)
        for level, data in enumerate(levels):
            columns, rows, layers = made.extents(level)
            layout = {"bytes_per_row": len(data) // (rows * layers), "rows_per_image": rows}
            place = {"texture": native, "mip_level": level}
            self.device.queue.write_texture(place, data, layout, (columns, rows, layers))
        return made

    def sampler(
        self,
        filter: str = "linear",  # noqa: A002
        wrap: str = "repeat",
        mip_filter: str = "linear",
    ) -> Sampler:
        """A sampler; `wrap` is ``"repeat"``, ``"clamp"`` or ``"mirror"``."""
        if wrap not in WRAPS:
            raise HostError(f"wrap is one of {', '.join(WRAPS)}, not {wrap}")
        native = self.device.create_sampler(
            mag_filter=filter, min_filter=filter, mipmap_filter=mip_filter,
            **{f"address_mode_{axis}": WRAPS[wrap] for axis in "uvw"},
        )  # fmt: skip
        settings = [*WRAPS].index(wrap) * 0b010101
        settings += LINEAR * (filter == "linear") + MIXES_LEVELS * (mip_filter == "linear")
        return Sampler(native, struct.pack("<I", settings))

    def read(self, array: Array) -> bytes:
        """The bytes of an array; raises the first report of threads since the last read."""
        queue = self.device.queue
        count, site, index, length = struct.unpack("<4I", queue.read_buffer(self._report, 0, 16))
        if count:
            queue.write_buffer(self._report, 0, bytes(16))
            at = self._sites[site - 1]
            where = f"{at['file']}:{at['line']}: {at['kind']} of {at['name']}"
            raise HostError(f"{where}: {index} of {length}")
        return bytes(queue.read_buffer(array.buffer, 0, array.byte_count))

    def buffer(self, byte_count: int, word: int = 0) -> wgpu.GPUBuffer:
        """A buffer that repeats one 32-bit word; at least 16 bytes, because none may be empty."""
        size = max(16, _up(byte_count, 4))
        buffer = self.device.create_buffer(size=size, usage=USAGE)
        if word:  # new buffers of WebGPU are zero
            self.device.queue.write_buffer(buffer, 0, struct.pack("<I", word) * (size // 4))
        return buffer

    def site_base(self, program: dict[str, Any]) -> int:
        """The index of a program's first report site in the table of all sites."""
        if program["file"] not in self._site_bases:
            self._site_bases[program["file"]] = len(self._sites)
            self._sites += program["sites"]
        return self._site_bases[program["file"]]

    def _pipeline(self, program: dict[str, Any]) -> wgpu.GPUComputePipeline:
        key = program["file"]
        if key not in self._pipelines:
            code = self._content(key)
            module = self.device.create_shader_module(
                code=code.decode() if self.target == "wgsl" else code
            )
            made = self.device.create_bind_group_layout
            # A build with `--space 2` leaves groups 0 and 1 to others; they are empty here.
            empty = [made(entries=[]) for _ in range(_group(program))]
            layouts = [*empty, made(entries=_layout_entries(program))]
            layout = self.device.create_pipeline_layout(bind_group_layouts=layouts)
            stage = {"module": module, "entry_point": program["entry_point"]}
            self._pipelines[key] = self.device.create_compute_pipeline(layout=layout, compute=stage)
        return self._pipelines[key]

    def record(
        self,
        program: dict[str, Any],
        bound: Mapping[str, Any],
        words: bytes,
        groups: tuple[int, int],
        encoder: wgpu.GPUCommandEncoder,
    ) -> None:
        """Records a dispatch with its constants and the resources in `bound`, by name."""
        pipeline = self._pipeline(program)
        padded = words.ljust(max(16, _up(len(words), 16)), b"\0")
        constants = self.device.create_buffer_with_data(data=padded, usage=wgpu.BufferUsage.UNIFORM)
        given = {**bound, program["parameters"]["name"]: constants}
        entries = [
            {
                "binding": one["place"]["binding"],
                "resource": _bound_as(one, given.get(one["name"], self._report)),
            }
            for one in _used(program)
        ]
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(pipeline)
        for k in range(_group(program) + 1):
            layout = pipeline.get_bind_group_layout(k)
            own = entries if k == _group(program) else []
            compute.set_bind_group(k, self.device.create_bind_group(layout=layout, entries=own))
        compute.dispatch_workgroups(*groups)
        compute.end()


def _used(program: dict[str, Any]) -> list[dict[str, Any]]:
    """The resources that a program binds; those that its code does not use have an empty place."""
    bound = [{**program["parameters"], "access": "uniform"}, *program["resources"]]
    return [one for one in bound if one["place"]]


def _group(program: dict[str, Any]) -> int:
    return _used(program)[0]["place"]["set"]


def _layout_entries(program: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "binding": one["place"]["binding"],
            "visibility": wgpu.ShaderStage.COMPUTE,
            **_layout(one),
        }
        for one in _used(program)
    ]


def _layout(one: dict[str, Any]) -> dict[str, Any]:
    kinds = {"read": "read-only-storage", "write": "storage", "uniform": "uniform"}
    if one["access"] == "sampler":
        return {"sampler": {"type": "filtering"}}
    if one["access"] != "texture":
        return {"buffer": {"type": kinds[one["access"]]}}
    sample_type = "float" if one.get("is_filtered") else "unfilterable-float"
    return {"texture": {"sample_type": sample_type, "view_dimension": one["view"]}}


def _bound_as(one: dict[str, Any], given: Any) -> Any:
    """The entry of a bind group for a buffer, texture or sampler."""
    match one["access"], given:
        case "sampler", Sampler():
            return given.sampler
        case "texture", Texture():
            return given.texture.create_view(dimension=one["view"])
        case _, wgpu.GPUBuffer():
            return {"buffer": given}
    raise HostError(f"{one['name']} is a {one['access']}, and is given something else")


def _plan_of(
    entry: dict[str, Any], plans: dict[str, Any], mode: str, otherwise: str
) -> dict[str, Any]:
    """The plan of a mode; `otherwise` is the reason if it is missing and the build gives none."""
    plan = plans.get(mode)
    if plan is None:
        why = plans.get(f"no_{mode}") or {"reason": otherwise}
        raise HostError(f"{entry['name']} was built without {mode}: {why['reason']}")
    return plan


class Kernel:
    """One kernel and its derivative."""

    def __init__(self, build: Build, entry: dict[str, Any], plans: dict[str, Any]) -> None:
        self._build = build
        self._entry = entry
        self._plans = plans

    def primal(self, inputs: Mapping[str, Input], dim: Shape, uniforms: Mapping[str, bytes] = {},
               shapes: Mapping[str, Shape] = {}) -> dict[str, Array]:  # fmt: skip
        """The arrays that the kernel writes, by name.

        Args:
            inputs: The inputs by their names in manifest.json: `mesh_colors` for ``mesh.colors``.
            dim: The number of threads along each axis.
            uniforms: The 32-bit words of each uniform, by name.
            shapes: The shapes of written arrays that differ from `dim`.
        """
        return self._run("primal", inputs, dim, uniforms, shapes)

    def backward(self, inputs: Mapping[str, Input], cotangents: Mapping[str, Array], dim: Shape,
                 uniforms: Mapping[str, bytes] = {}, shapes: Mapping[str, Shape] = {},
                 results: Mapping[str, Array] = {}) -> dict[str, Array]:  # fmt: skip
        """The gradient by each input, given the gradient by each output (`cotangents`).

        Args:
            inputs: As for `primal`.
            cotangents: Cotangents by name; zeros if one is missing.
            dim: As for `primal`.
            uniforms: As for `primal`.
            shapes: As for `primal`.
            results: The results of `primal`, which kernels with a minimum or maximum read.
        """
        bars = {f"{name} cotangent": bar for name, bar in cotangents.items()}
        found = self._run("backward", {**inputs, **results, **bars}, dim, uniforms, shapes)
        return {name.removesuffix(" gradient"): array for name, array in found.items()}

    def _run(
        self,
        mode: str,
        given: Mapping[str, Input],
        dim: Shape,
        uniforms: Mapping[str, bytes],
        shapes: Mapping[str, Shape],
    ) -> dict[str, Array]:
        plan = _plan_of(self._entry, self._plans, mode, "nothing to differentiate by")
        uniforms = {**self._of_resources(given), **uniforms}
        self._check_uniforms(uniforms)
        known = self._sizes(given, dim, shapes)
        sizes = (evaluated(buffer["byte_count"], known) for buffer in plan["buffers"])
        arrays = [self._array(name, given, size)
                  for name, size in zip(plan["inputs"], sizes, strict=False)]  # fmt: skip
        found = Run(self._build, self._plans["programs"], plan, arrays, known, uniforms).outputs()
        return {one["name"]: array for one, array in zip(plan["outputs"], found, strict=True)}

    def _array(self, name: str, given: Mapping[str, Input], byte_count: int) -> Input:
        if name not in given and name.endswith(" cotangent"):
            return Array(self._build.buffer(byte_count), byte_count, ())
        if name not in given:
            raise HostError(f"no array is given for {name}")
        found = given[name].byte_count
        if _up(found, 4) != byte_count:
            raise HostError(f"{name} has {found} bytes, not {byte_count}")
        return given[name]

    def _of_resources(self, given: Mapping[str, Input]) -> dict[str, bytes]:
        """The sizes of textures and the settings of samplers, which are uniforms."""
        words = {tuple(one["path"]): found.word for one in self._entry["inputs"]
                 if isinstance(found := given.get(one["name"]), Texture | Sampler)}  # fmt: skip
        parts = ((one["name"], tuple(one["path"][:-1])) for one in self._entry["uniforms"])
        return {name: words[path] for name, path in parts if path in words}

    def _check_uniforms(self, given: Mapping[str, bytes]) -> None:
        for one in self._entry["uniforms"]:
            name, layout = one["name"], self._build.types[one["type"]]
            count = sum(2 if one["type"] == "double" else 1 for one in layout["scalars"])
            if name not in given:
                raise HostError(f"no value is given for {name}")
            if not layout.get("pointers") and len(given[name]) != 4 * count:
                raise HostError(f"{name} takes {4 * count} bytes, not {len(given[name])}")

    def _sizes(
        self, given: Mapping[str, Input], dim: Shape, shapes: Mapping[str, Shape]
    ) -> dict[str, int]:
        """All extents by name: `dim.0` of the launch, `x.0` of array x."""
        inputs = {one["name"]: one for one in self._entry["inputs"]}
        found = {name: given[name].shape for name in inputs if name in given}
        found |= {one["name"]: shapes.get(one["name"], dim) for one in self._entry["outputs"]}
        missing = [name for name in inputs if name not in given]
        if missing:
            raise HostError(f"no array is given for {', '.join(missing)}")
        known = {f"dim.{axis}": extent for axis, extent in enumerate(dim)}
        for one in [*self._entry["inputs"], *self._entry["outputs"]]:
            name, wanted, shape = one["name"], one["shape"], found[one["name"]]
            if len(shape) != len(wanted):
                raise HostError(f"{name} has {len(wanted)} axes, not the shape {shape}")
            for size, extent in zip(wanted, shape, strict=True):
                if known.setdefault(size, extent) != extent:
                    raise HostError(f"{name} was built for the shape of dim, {dim}, not {shape}")
        return known


class Graph:
    """One graph and its derivative."""

    def __init__(self, build: Build, entry: dict[str, Any], plans: dict[str, Any]) -> None:
        self._build = build
        self._entry = entry
        self._plans = plans

    def run(self, mode: str, arrays: Sequence[Input]) -> list[Array]:
        """Runs the plan of a mode; arrays are in the order of its `inputs` and `outputs`."""
        plan = _plan_of(self._entry, self._plans, mode, "build with --jvp")
        if len(arrays) != len(plan["inputs"]):
            raise HostError(
                f"{self._entry['name']} takes {plan['inputs']}, not {len(arrays)} arrays"
            )
        known = self._sizes(arrays)
        return Run(self._build, self._plans["programs"], plan, arrays, known, {}).outputs()

    def _sizes(self, arrays: Sequence[Input]) -> dict[str, int]:
        """The sizes that the arguments determine; all arrays must agree on them."""
        known: dict[str, int] = {}
        inputs, assumes = self._entry["inputs"], self._entry["assumes"]
        pairs = [*zip(inputs, arrays, strict=False)]
        for one, array in pairs:
            for size, extent in zip(one["shape"], array.shape, strict=False):
                if size in self._entry["sizes"]:
                    known.setdefault(size, extent)
        is_right = (
            all(tuple(evaluated(n, known) for n in one["shape"]) == array.shape
                for one, array in pairs)
            and all(evaluated(a, known) == evaluated(b, known) for a, b in assumes["equal"])
            and all(evaluated(size, known) > 0 for size in assumes["positive"])
        )  # fmt: skip
        if not is_right:
            wanted = ", ".join(f"{one['name']}{one['shape']}" for one in inputs)
            raise HostError(f"{self._entry['name']} takes {wanted}; shapes of the arguments differ")
        return known


class Run:
    """One run of one plan, with its buffers by number and its sizes by name."""

    def __init__(self, build: Build, programs: list[dict[str, Any]], plan: dict[str, Any],
                 arrays: Sequence[Input], sizes: Mapping[str, int],
                 uniforms: Mapping[str, bytes]) -> None:  # fmt: skip
        self._build = build
        self._plan = plan
        self._programs = {one["name"]: one for one in programs}
        self._known = {**sizes, "$group_limit": GROUPS_PER_ROW}
        self._known |= {f"$start_{k}": 0 for k in range(len(arrays))}
        self._uniforms = uniforms
        # Textures and samplers are bound directly.
        self._buffers = dict(enumerate(getattr(one, "buffer", one) for one in arrays))
        self._encoder = build.device.create_command_encoder()
        self._do(plan["commands"])
        self._submit()

    def outputs(self) -> list[Array]:
        found: list[Array] = []
        for one in self._plan["outputs"]:
            shape = tuple(map(self._size, one["shape"]))
            size = prod(shape) * self._build.types[one["type"]]["byte_count"]
            found.append(Array(self._buffer(one["buffer"]), size, shape))
        return found

    def _size(self, text: int | str) -> int:
        return evaluated(text, self._known)

    def _buffer(self, number: int) -> Any:
        """Creates a buffer at its first use, when its size is known."""
        if number not in self._buffers:
            size = self._size(self._plan["buffers"][number]["byte_count"])
            self._buffers[number] = self._build.buffer(size)
        return self._buffers[number]

    def _submit(self) -> None:
        self._build.device.queue.submit([self._encoder.finish()])
        self._encoder = self._build.device.create_command_encoder()

    def _do(self, commands: list[dict[str, Any]]) -> None:
        for command in commands:
            getattr(self, f"_do_{command['do']}")(command)

    def _do_run(self, command: dict[str, Any]) -> None:
        groups = self._size(command["groups"])
        if groups <= 0 or self._size(command.get("if_positive", 1)) <= 0:
            return
        program = self._programs[command["program"]]
        self._known["$site_base"] = self._build.site_base(program)
        words = b"".join(map(self._word, command["words"]))
        bound = {name: self._buffer(k) for name, k in command["bind"].items()}
        columns = min(groups, GROUPS_PER_ROW)
        grid = (columns, -(-groups // columns))
        self._build.record(program, bound, words, grid, self._encoder)

    def _word(self, word: int | str | dict[str, Any]) -> bytes:
        """One word of the constant buffer."""
        if isinstance(word, dict):
            start = 4 * word["index"]
            return self._uniforms[word["uniform"]][start : start + 4]
        return struct.pack("<I", self._size(word) & 0xFFFFFFFF)

    def _do_copy(self, command: dict[str, Any]) -> None:
        size = self._size(command["byte_count"])
        start, end = (self._size(command.get(f"{n}_offset", 0)) for n in ("source", "target"))
        if size:
            source, target = self._buffer(command["source"]), self._buffer(command["target"])
            self._encoder.copy_buffer_to_buffer(source, start, target, end, size)

    def _do_fill(self, command: dict[str, Any]) -> None:
        size = self._size(command["byte_count"])
        if size:
            repeated = self._build.buffer(size, command["word"])
            target = self._buffer(command["target"])
            self._encoder.copy_buffer_to_buffer(repeated, 0, target, 0, size)

    def _do_repeat(self, command: dict[str, Any]) -> None:
        count = self._size(command["count"])
        if count % 2:
            self._trade(command["carries"])
        for copy in command["start"]:
            self._do_copy(copy)
        for k in range(count):
            self._known[command["symbol"]] = count - 1 - k if command["is_reversed"] else k
            self._do(command["body"])
            self._trade(command["carries"])

    def _do_while(self, command: dict[str, Any]) -> None:
        goes_on = True
        while goes_on:
            for _ in range(2):
                self._do(command["body"])
                self._trade(command["carries"])
            self._submit()
            word = Array(self._buffer(command["goes_on"]), 4, ())
            goes_on = any(self._build.read(word))

    def _trade(self, carries: list[tuple[int, int]]) -> None:
        for left, right in carries:
            traded = self._buffer(right), self._buffer(left)
            self._buffers[left], self._buffers[right] = traded


def evaluated(text: int | str, known: Mapping[str, int]) -> int:
    """The value of an expression of docs/plans.md, whose operators are those of Python."""
    if isinstance(text, int):
        return text
    numbers: dict[str, int] = {}

    def plain(name: re.Match[str]) -> str:
        """A name that Python reads, for a size such as `$start_0` or `x.1`."""
        if name[0] in FUNCTIONS:
            return name[0]
        numbers[f"n{len(numbers)}"] = known[name[0]]
        return f"n{len(numbers) - 1}"

    try:
        return _value(ast.parse(NAME.sub(plain, text), mode="eval").body, numbers)
    except (SyntaxError, KeyError) as failure:
        raise HostError(f"{text} is no size: {failure}") from None


def _value(node: ast.expr, numbers: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return numbers[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, numbers)
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATORS[type(op)](_value(left, numbers), _value(right, numbers))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return FUNCTIONS[name](*(_value(argument, numbers) for argument in arguments))
        case _:
            raise HostError(f"{ast.unparse(node)} is no size")


def _root(number: int) -> int:
    return max(1, math.isqrt(number))


NAME = re.compile(r"\$?\b[^\W\d]\w*(?:\.\d+)?")
OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
FUNCTIONS: dict[str, Callable[..., int]] = {"max": max, "min": min, "sqrt": _root}


def _up(number: int, step: int) -> int:
    return -(-number // step) * step
