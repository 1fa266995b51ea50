"""A host that knows nothing of shaderad but docs/plans.md: runs plans of WGSL builds by wgpu."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import wgpu

GROUP_LIMIT = 65535
STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST


def size(text: int | str, known: dict[str, int]) -> int:
    """An expression of docs/plans.md, which is one of Python's but for `$` and `sqrt`."""
    if isinstance(text, int):
        return text
    named = re.sub(r"\$?\b[^\W\d]\w*(?!\w*\()", lambda m: f"known[{m[0]!r}]", text)
    return eval(named, {"known": known, "max": max, "min": min,
                        "sqrt": lambda n: max(1, math.isqrt(n))})  # fmt: skip


class Host:
    """One graph of a folder on a device."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        self.entry = next(one for one in manifest["entries"] if one["name"] == name)
        self.types = manifest["types"]
        self.plans = self.entry["targets"]["wgsl"]
        self.programs = {one["name"]: one for one in self.plans["programs"]}
        adapter = wgpu.gpu.request_adapter_sync()
        self.device = adapter.request_device_sync()
        self.buffers: list[Any] = []
        self.known: dict[str, int] = {}

    def run(self, mode: str, arrays: list[np.ndarray[Any, Any]], **sizes: int) -> list[Any]:
        """The outputs of a plan as flat arrays of 32-bit words."""
        plan = self.plans[mode]
        starts = {f"$start_{k}": 0 for k in range(len(arrays))}
        self.known = {**sizes, **starts, "$group_limit": GROUP_LIMIT, "$site_base": 0}
        self.buffers = [self._upload(one) for one in arrays]
        self.buffers += [None] * (len(plan["buffers"]) - len(arrays))
        self._sizes = [one["byte_count"] for one in plan["buffers"]]
        self._do(plan["commands"])
        return [self._read(one) for one in plan["outputs"]]

    def _upload(self, data: np.ndarray[Any, Any]) -> Any:
        raw = data.tobytes()
        return self.device.create_buffer_with_data(data=raw.ljust(16, b"\0"), usage=STORAGE)

    def _buffer(self, number: int) -> Any:
        """Allocated when it is first used: all of its sizes are known then."""
        if self.buffers[number] is None:
            wanted = max(16, size(self._sizes[number], self.known))
            # What a buffer holds before it is written must not matter.
            raw = b"\xcd" * (-(-wanted // 4) * 4)
            self.buffers[number] = self.device.create_buffer_with_data(data=raw, usage=STORAGE)
        return self.buffers[number]

    def _read(self, output: dict[str, Any]) -> Any:
        count = math.prod(size(one, self.known) for one in output["shape"])
        wanted = count * self.types[output["type"]]["byte_count"]
        found = self.device.queue.read_buffer(self._buffer(output["buffer"]))
        return np.frombuffer(found, np.uint32)[: wanted // 4]

    def _do(self, commands: list[dict[str, Any]]) -> None:
        for one in commands:
            getattr(self, f"_{one['do']}")(one)

    def _copy(self, one: dict[str, Any]) -> None:
        count = size(one["byte_count"], self.known)
        start, end = (size(one.get(f"{n}_offset", 0), self.known) for n in ("source", "target"))
        source, target = self._buffer(one["source"]), self._buffer(one["target"])
        if count:
            encoder = self.device.create_command_encoder()
            encoder.copy_buffer_to_buffer(source, start, target, end, count)
            self.device.queue.submit([encoder.finish()])

    def _fill(self, one: dict[str, Any]) -> None:
        target, count = self._buffer(one["target"]), size(one["byte_count"], self.known)
        if count:
            words = np.full(count // 4, one["word"], np.uint32)
            self.device.queue.write_buffer(target, 0, words.tobytes())

    def _repeat(self, one: dict[str, Any]) -> None:
        count = size(one["count"], self.known)
        if count % 2:
            self._trade(one)
        self._do([{"do": "copy", **each} for each in one["start"]])
        for k in range(count):
            self.known[one["symbol"]] = count - 1 - k if one["is_reversed"] else k
            self._do(one["body"])
            self._trade(one)

    def _while(self, one: dict[str, Any]) -> None:
        goes_on = True
        while goes_on:
            for _ in range(2):
                self._do(one["body"])
                self._trade(one)
            found = self.device.queue.read_buffer(self._buffer(one["goes_on"]))
            goes_on = bool(np.frombuffer(found, np.uint32)[0])

    def _trade(self, one: dict[str, Any]) -> None:
        for left, right in one["carries"]:
            self.buffers[left], self.buffers[right] = self._buffer(right), self._buffer(left)

    def _run(self, one: dict[str, Any]) -> None:
        groups = size(one["groups"], self.known)
        if groups <= 0 or size(one.get("if_positive", 1), self.known) <= 0:
            return
        program = self.programs[one["program"]]
        pipeline = self.device.create_compute_pipeline(
            layout="auto",
            compute={
                "module": self.device.create_shader_module(code=self._code(program)),
                "entry_point": program["entry_point"],
            },
        )
        words = np.array([size(w, self.known) & 0xFFFFFFFF for w in one["words"]], np.uint32)
        raw = words.tobytes().ljust(-(-max(4 * len(words), 16) // 16) * 16, b"\0")
        usage = wgpu.BufferUsage.UNIFORM
        bound = {"": self.device.create_buffer_with_data(data=raw, usage=usage)}
        bound |= {name: self._buffer(k) for name, k in one["bind"].items()}
        resources = [{**program["parameters"], "name": ""}, *program["resources"]]
        entries = []
        for resource in resources:
            if resource.get("role") == "report":
                bound[resource["name"]] = self._upload(np.zeros(1 << 14, np.uint32))
            if resource["place"]:
                binding = {"buffer": bound[resource["name"]]}
                entries.append({"binding": resource["place"]["binding"], "resource": binding})
        group = self.device.create_bind_group(
            layout=pipeline.get_bind_group_layout(0), entries=entries
        )
        rows = -(-groups // GROUP_LIMIT)
        encoder = self.device.create_command_encoder()
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(pipeline)
        compute.set_bind_group(0, group)
        compute.dispatch_workgroups(groups if rows == 1 else GROUP_LIMIT, rows)
        compute.end()
        self.device.queue.submit([encoder.finish()])

    def _code(self, program: dict[str, Any]) -> str:
        return (self.folder / program["file"]).read_text(encoding="utf-8")
