"""Runs entry point `fault` of Slang files on slangpy's Vulkan device, one JSON line each.

A process of its own, because a fault may also be a crash: ``python run_faults.py INPUTS FILE...``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import slangpy as spy

RESULT_COUNT = 8


def main() -> None:
    inputs_by_name = json.loads(sys.argv[1])
    device = spy.create_device(type=spy.DeviceType.vulkan)
    for path in map(Path, sys.argv[2:]):
        inputs = np.array(inputs_by_name[path.stem], np.float32)
        x = device.create_buffer(
            element_count=len(inputs), struct_size=4, usage=spy.BufferUsage.shader_resource
        )
        x.copy_from_numpy(inputs)
        result = device.create_buffer(
            element_count=RESULT_COUNT, struct_size=4, usage=spy.BufferUsage.unordered_access
        )
        result.copy_from_numpy(np.zeros(RESULT_COUNT, np.float32))
        module = device.load_module_from_source(path.stem, path.read_text(encoding="utf-8"))
        program = device.link_program([module], [module.entry_point("fault")])
        kernel = device.create_compute_kernel(program)
        kernel.dispatch([1, 1, 1], vars={"x": x, "result": result})
        values = result.to_numpy().view(np.float32)[:RESULT_COUNT]
        sys.stdout.write(json.dumps([path.stem, [float(v) for v in values]]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
