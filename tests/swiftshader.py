"""Tests run again under SwiftShader, a Vulkan driver without float atomics.

The driver is chosen when wgpu is first loaded, so such a run is a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

VARIABLE = "SHADERAD_TEST_SWIFTSHADER"
DRIVER = Path(os.environ.get(VARIABLE, "/usr/lib/chromium/vk_swiftshader_icd.json"))

needed = pytest.mark.skipif(
    not DRIVER.is_file(),
    reason=f"no SwiftShader: install Debian's chromium or name its json in {VARIABLE}",
)


def check_passes(tests: tuple[Path, ...], which: str = "") -> None:
    """Runs `tests` on wgpu over SwiftShader, and requires that they pass.

    `which` is more of pytest's ``-k``.
    """
    ask = "import shaderad; print(shaderad.open_device('wgpu').capabilities)"
    capabilities = _python("-c", ask)
    assert "SwiftShader" in capabilities
    assert "atomics='exchange'" in capabilities
    chosen = ("-k", f"wgpu {which}", "-m", "not swiftshader", "-p", "no:cacheprovider")
    assert " passed" in _python("-m", "pytest", "-q", *chosen, *tests)


def _python(*arguments: str | Path) -> str:
    finished = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "VK_DRIVER_FILES": str(DRIVER)},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout
