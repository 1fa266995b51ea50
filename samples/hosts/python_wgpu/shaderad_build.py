"""Runs kernels of a folder that `shaderad build` wrote, by wgpu: all it knows is manifest.json.

A dispatch of the manifest lists storage buffers (`resources`), each with a role and the arrays in
it (`members`), and the words of one constant buffer (`parameters`). `Kernel` finds or makes the
array of each role and name, fills in the words, and dispatches. What threads report, such as an
index out of range, is raised by the next `Build.read`, with the Python line.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import wgpu

SCHEMA, SCHEMA_VERSION = "shaderad-manifest", 2
FEATURES = {
    "float-atomics": "shader-float32-atomic",
    "subgroups": "subgroup",
    "half": "shader-f16",
    "double": "shader-f64",
}
"""Features of the manifest, and what wgpu calls them."""
LIMITS = (
    "max-buffer-size",
    "max-storage-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
)
"""Asked for as high as the adapter goes: WebGPU promises 8 buffers of 128 MiB."""
GROUPS_A_ROW = 65535
REPORT_BYTES = 2080
ARENA_ALIGN = 16
USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
Shape = tuple[int, ...]
Key = tuple[str, str]
"""Role and name of an array."""


class HostError(Exception):
    """What is wrong with the folder, the device or an argument, in one sentence."""


@dataclass(frozen=True)
class Array:
    """Packed elements in a buffer."""

    buffer: wgpu.GPUBuffer
    offset: int
    byte_count: int
    shape: Shape
    """Of elements: a float3 is one."""


class Build:
    """The kernels of a folder, for one target (``spirv`` or ``wgsl``), on one device."""

    def __init__(self, folder: Path, target: str) -> None:
        self.folder, self.target = folder, target
        try:
            self.manifest = json.loads(self._content("manifest.json"))
        except ValueError:
            raise HostError(f"manifest.json in {folder} is no JSON") from None
        found = self.manifest.get("schema"), self.manifest.get("schema_version")
        if found != (SCHEMA, SCHEMA_VERSION):
            raise HostError(f"{folder} has manifest {found}, this host reads version 2")
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
        """A device with all features that the kernels of the target use."""
        try:
            adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
        except RuntimeError:
            raise HostError("wgpu finds no GPU and no software driver for one") from None
        wanted = {feature for kernel in self.manifest["kernels"]
                  for mode in ("primal", "backward")
                  for dispatch in self._programs(kernel)[mode]
                  for feature in dispatch["features"]}  # fmt: skip
        missing = sorted(f for f in wanted if FEATURES.get(f) not in adapter.features)
        if missing:
            raise HostError(f"{adapter.info['device']} has no {', '.join(missing)}")
        return adapter.request_device_sync(
            required_features=[FEATURES[feature] for feature in sorted(wanted)],
            required_limits={limit: adapter.limits[limit] for limit in LIMITS},
        )

    def _programs(self, kernel: dict[str, Any]) -> dict[str, Any]:
        if self.target not in kernel["targets"]:
            raise HostError(f"{self.folder} was not built for {self.target}")
        return kernel["targets"][self.target]

    def kernel(self, name: str) -> Kernel:
        for kernel in self.manifest["kernels"]:
            if kernel["name"] == name:
                return Kernel(self, kernel, self._programs(kernel))
        raise HostError(f"{self.folder} has no kernel {name}")

    def array(self, data: bytes, element: str, shape: Shape | None = None) -> Array:
        """A device array of packed elements of a type of the manifest; of one axis by default."""
        size = self.types[element]["byte_count"]
        if len(data) % size:
            raise HostError(f"{len(data)} bytes are no whole number of {element}")
        buffer = self.buffer(len(data))
        self.device.queue.write_buffer(buffer, 0, data.ljust(_up(len(data), 4), b"\0"))
        return Array(buffer, 0, len(data), (len(data) // size,) if shape is None else shape)

    def read(self, array: Array) -> bytes:
        """The bytes of an array; raises what threads reported since the last time."""
        queue = self.device.queue
        count, site, index, length = struct.unpack("<4I", queue.read_buffer(self._report, 0, 16))
        if count:
            queue.write_buffer(self._report, 0, bytes(16))
            at = self._sites[site - 1]
            where = f"{at['file']}:{at['line']}: {at['kind']} of {at['name']}"
            raise HostError(f"{where}: {index} of {length}")
        return bytes(queue.read_buffer(array.buffer, array.offset, array.byte_count))

    def buffer(self, byte_count: int, word: int = 0) -> wgpu.GPUBuffer:
        """A buffer that repeats one 32-bit word; at least 16 bytes, for none may be empty."""
        size = max(16, _up(byte_count, 4))
        buffer = self.device.create_buffer(size=size, usage=USAGE)
        if word:  # WebGPU's buffers are zero to begin with.
            self.device.queue.write_buffer(buffer, 0, struct.pack("<I", word) * (size // 4))
        return buffer

    def site_base(self, dispatch: dict[str, Any]) -> int:
        """Where the places that a program can report start in the table of all."""
        if dispatch["file"] not in self._site_bases:
            self._site_bases[dispatch["file"]] = len(self._sites)
            self._sites += dispatch["sites"]
        return self._site_bases[dispatch["file"]]

    def _pipeline(self, dispatch: dict[str, Any]) -> wgpu.GPUComputePipeline:
        key = dispatch["file"]
        if key not in self._pipelines:
            code = self._content(key)
            module = self.device.create_shader_module(
                code=code.decode() if self.target == "wgsl" else code
            )
            made = self.device.create_bind_group_layout
            # A build with `--space 2` leaves groups 0 and 1 to others: empty here.
            empty = [made(entries=[]) for _ in range(_group(dispatch))]
            layouts = [*empty, made(entries=_layout_entries(dispatch))]
            layout = self.device.create_pipeline_layout(bind_group_layouts=layouts)
            stage = {"module": module, "entry_point": dispatch["entry_point"]}
            self._pipelines[key] = self.device.create_compute_pipeline(layout=layout, compute=stage)
        return self._pipelines[key]

    def record(
        self,
        dispatch: dict[str, Any],
        bound: Mapping[str, wgpu.GPUBuffer],
        words: bytes,
        groups: tuple[int, int],
        encoder: wgpu.GPUCommandEncoder,
    ) -> None:
        """Records a dispatch with its constants and a buffer for each resource by name."""
        pipeline = self._pipeline(dispatch)
        padded = words.ljust(max(16, _up(len(words), 16)), b"\0")
        constants = self.device.create_buffer_with_data(data=padded, usage=wgpu.BufferUsage.UNIFORM)
        buffers = {**bound, dispatch["parameters"]["name"]: constants}
        entries = [
            {
                "binding": one["place"]["binding"],
                "resource": {"buffer": buffers.get(one["name"], self._report)},
            }
            for one in _used(dispatch)
        ]
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(pipeline)
        for k in range(_group(dispatch) + 1):
            layout = pipeline.get_bind_group_layout(k)
            given = entries if k == _group(dispatch) else []
            compute.set_bind_group(k, self.device.create_bind_group(layout=layout, entries=given))
        compute.dispatch_workgroups(*groups)
        compute.end()


def _used(dispatch: dict[str, Any]) -> list[dict[str, Any]]:
    """All that a dispatch binds; the place of what its code does not use is empty."""
    bound = [{**dispatch["parameters"], "access": "uniform"}, *dispatch["resources"]]
    return [one for one in bound if one["place"]]


def _group(dispatch: dict[str, Any]) -> int:
    return _used(dispatch)[0]["place"]["set"]


def _layout_entries(dispatch: dict[str, Any]) -> list[dict[str, Any]]:
    kinds = {"read": "read-only-storage", "write": "storage", "uniform": "uniform"}
    return [
        {
            "binding": one["place"]["binding"],
            "visibility": wgpu.ShaderStage.COMPUTE,
            "buffer": {"type": kinds[one["access"]]},
        }
        for one in _used(dispatch)
    ]


class Kernel:
    """One kernel and its derivative."""

    def __init__(self, build: Build, entry: dict[str, Any], programs: dict[str, Any]) -> None:
        self._build = build
        self._name = entry["name"]
        self._programs = programs
        self._types = {one["name"]: one["type"] for one in entry["arrays"] + entry["uniforms"]}
        self._arrays = {one["name"]: one for one in entry["arrays"]}
        self._uniforms = [one["name"] for one in entry["uniforms"]]
        self._inputs = [one["name"] for one in entry["arrays"] if one["access"] == "In"]
        self._outputs = [one["name"] for one in entry["arrays"] if one["access"] != "In"]

    def primal(self, inputs: Mapping[str, Array], dim: Shape, uniforms: Mapping[str, bytes] = {},
               shapes: Mapping[str, Shape] = {}) -> dict[str, Array]:  # fmt: skip
        """What the kernel writes, by name.

        Args:
            inputs: By name, as manifest.json spells it: `mesh_colors` for ``mesh.colors``.
            dim: How many threads along each axis.
            uniforms: By name: the 32-bit words of each.
            shapes: Of written arrays that do not have the shape `dim`.
        """
        call = self._call(inputs, dim, uniforms, shapes)
        call.run(self._programs["primal"])
        return {name: call.arrays["output", name] for name in self._outputs}

    def backward(self, inputs: Mapping[str, Array], cotangents: Mapping[str, Array], dim: Shape,
                 uniforms: Mapping[str, bytes] = {}, shapes: Mapping[str, Shape] = {},
                 results: Mapping[str, Array] = {}) -> dict[str, Array]:  # fmt: skip
        """The gradient by each input, given the gradient by each output (`cotangents`).

        Args:
            inputs: As for `primal`.
            cotangents: By name; zeros where one is missing.
            dim: As for `primal`.
            uniforms: As for `primal`.
            shapes: As for `primal`.
            results: What `primal` gave: read where a kernel keeps a minimum or maximum.
        """
        if not self._programs["backward"]:
            why = self._programs.get("no_backward") or {"reason": "nothing to differentiate by"}
            raise HostError(f"{self._name} was built without backward: {why['reason']}")
        call = self._call(inputs, dim, uniforms, shapes)
        call.arrays |= {("cotangent", name): one for name, one in cotangents.items()}
        call.arrays |= {("result", name): one for name, one in results.items()}
        call.run(self._programs["backward"])
        return {name: one for (role, name), one in call.arrays.items() if role == "gradient"}

    def _call(self, inputs: Mapping[str, Array], dim: Shape, uniforms: Mapping[str, bytes],
              shapes: Mapping[str, Shape]) -> _Call:  # fmt: skip
        missing = [name for name in self._inputs if name not in inputs]
        if missing:
            raise HostError(f"no array is given for {', '.join(missing)}")
        arrays = {("input", name): inputs[name] for name in self._inputs}
        self._check_uniforms(uniforms)
        known = {name: one.shape for (_, name), one in arrays.items()}
        known |= {name: shapes.get(name, dim) for name in self._outputs}
        self._check_shapes(known, dim)
        known |= dict.fromkeys(uniforms, ())
        return _Call(self._build, self._types, dim, known, dict(uniforms), arrays)

    def _check_uniforms(self, given: Mapping[str, bytes]) -> None:
        for name in self._uniforms:
            layout = self._build.types[self._types[name]]
            count = sum(2 if one["type"] == "double" else 1 for one in layout["scalars"])
            if name not in given:
                raise HostError(f"no value is given for {name}")
            if not layout.get("pointers") and len(given[name]) != 4 * count:
                raise HostError(f"{name} takes {4 * count} bytes, not {len(given[name])}")

    def _check_shapes(self, found: Mapping[str, Shape], dim: Shape) -> None:
        for name, shape in found.items():
            rank = self._arrays[name]["rank"]
            if len(shape) != rank:
                raise HostError(f"{name} has {rank} axes, not the shape {shape}")
            if self._arrays[name]["has_launch_shape"] and tuple(shape) != tuple(dim):
                raise HostError(f"{name} was built for the shape of dim, {dim}, not {shape}")


@dataclass
class _Call:
    """One call of one kernel: the arrays of every role, and the numbers that words ask for."""

    build: Build
    types: dict[str, str]
    dim: Shape
    shapes: dict[str, Shape]
    uniforms: dict[str, bytes]
    arrays: dict[Key, Array]

    def run(self, dispatches: list[dict[str, Any]]) -> None:
        """Runs them in order, as one submission."""
        encoder = self.build.device.create_command_encoder()
        for dispatch in dispatches:
            self._dispatch(dispatch, encoder)
        self.build.device.queue.submit([encoder.finish()])

    def _dispatch(self, dispatch: dict[str, Any], encoder: wgpu.GPUCommandEncoder) -> None:
        threads = self._threads(dispatch)
        group_size = prod(dispatch["workgroup"])
        groups = 1 if dispatch["is_single_group"] else _up(threads, group_size) // group_size
        groups = min(groups, dispatch["group_limit"] or groups)
        columns = min(groups, GROUPS_A_ROW)
        bound: dict[str, wgpu.GPUBuffer] = {}
        offsets: dict[Key, int] = {}
        for resource in dispatch["resources"]:
            if resource["role"] != "report":
                bound[resource["name"]] = self._bound(resource, encoder, offsets)
        if not groups:
            return
        known = {
            "thread count": threads,
            "group count x": columns,
            "tile": _up(-(-threads // groups), group_size),
            "site base": self.build.site_base(dispatch),
            "launch": 0,
        }
        words = [self._word(one, known, offsets) for one in dispatch["parameters"]["words"]]
        rows = -(-groups // columns)
        self.build.record(dispatch, bound, b"".join(words), (columns, rows), encoder)

    def _threads(self, dispatch: dict[str, Any]) -> int:
        """One for each index, or for each word of an array."""
        name = dispatch["thread_for_each"].removeprefix("word of ")
        return prod(self.dim) if name == "index" else self._word_count(name)

    def _word_count(self, name: str) -> int:
        layout = self.build.types[self.types[name]]
        return prod(self.shapes[name]) * layout["byte_count"] // layout["word_bytes"]

    def _bound(
        self, resource: dict[str, Any], encoder: wgpu.GPUCommandEncoder, offsets: dict[Key, int]
    ) -> wgpu.GPUBuffer:
        """The buffer of a resource: its arrays, of which several may lie behind each other."""
        keys = [(resource["role"], member["name"]) for member in resource["members"]]
        self._make_missing(resource)
        arrays = [self.arrays[key] for key in keys]
        for member, array in zip(resource["members"], arrays, strict=True):
            wanted = self._byte_count(resource["role"], member)
            if array.byte_count != wanted:
                found = f"{array.byte_count} bytes, not {wanted}"
                raise HostError(f"the {resource['role']} {member['name']} has {found}")
        if resource["access"] == "read" and (len(arrays) > 1 or arrays[0].offset):
            arrays = self._packed(arrays, encoder)
        for key, array, member in zip(keys, arrays, resource["members"], strict=True):
            offsets[key] = array.offset // self.build.types[member["type"]]["word_bytes"]
        return arrays[0].buffer

    def _make_missing(self, resource: dict[str, Any]) -> None:
        """Makes what a dispatch is about to write, and zeros for cotangents that nobody gave."""
        made: dict[Key, tuple[int, int]] = {}
        end = 0
        for member in resource["members"]:
            key = resource["role"], member["name"]
            if key in self.arrays:
                continue
            size = self._byte_count(resource["role"], member)
            start = _up(end, ARENA_ALIGN)
            made[key] = start, size
            end = start + size
        if made:
            buffer = self.build.buffer(end, resource["fill_word"] or 0)
            for key, (start, size) in made.items():
                self.arrays[key] = Array(buffer, start, size, self.shapes[key[1]])

    def _byte_count(self, role: str, member: dict[str, Any]) -> int:
        """Of an array in a resource of a role."""
        if role == "winner":  # Two words for each word of the array.
            return 8 * self._word_count(member["name"])
        size = self.build.types[member["type"]]["byte_count"]
        return prod(self.shapes[member["name"]]) * size

    def _packed(self, arrays: list[Array], encoder: wgpu.GPUCommandEncoder) -> list[Array]:
        """Copies of arrays, one behind the other in one buffer."""
        buffer = self.build.buffer(sum(_up(one.byte_count, ARENA_ALIGN) for one in arrays))
        start, packed = 0, []
        for one in arrays:
            size = _up(one.byte_count, 4)
            encoder.copy_buffer_to_buffer(one.buffer, one.offset, buffer, start, size)
            packed.append(Array(buffer, start, one.byte_count, one.shape))
            start += _up(size, ARENA_ALIGN)
        return packed

    def _word(self, word: dict[str, Any], known: dict[str, int], offsets: dict[Key, int]) -> bytes:
        """One word of the constant buffer."""
        kind, index, name = word["kind"], word["index"], word.get("of", "")
        if kind == "uniform":
            return self.uniforms[name][4 * index : 4 * index + 4]
        found = {
            "offset": lambda: offsets.get((word["role"], name), 0),
            "shape": lambda: self.shapes[name][index],
            "count": lambda: prod(self.shapes[name]),
            "dim": lambda: self.dim[index],
            "bits": lambda: index & 0xFFFFFFFF,
        }
        return struct.pack("<I", found[kind]() if kind in found else known[kind])


def _up(number: int, step: int) -> int:
    return -(-number // step) * step
