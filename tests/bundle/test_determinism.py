"""Same input, same bytes: whatever the place, the hash seed, the cache and who is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.bundle.conftest import GRAPHS, SOURCE
from tests.bundle.test_manifest import contents

SCRIPT = """
import sys
{first}
import shaderad
shaderad.build({source!r}, {out!r}, targets="spirv,wgsl,hlsl", jvp=True{options})
"""


class Place:
    """A folder with the same two files in it, and what differs between machines."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        for path in (SOURCE, GRAPHS):
            (folder / path.name).write_bytes(path.read_bytes())

    def built(
        self,
        name: str,
        *,
        cwd: str = ".",
        source: str = "",
        first: str = "",
        options: str = "",
        **environment: str,
    ) -> dict[str, bytes]:
        """What a process of its own builds of `name`."""
        out = self.folder / "out"
        script = SCRIPT.format(first=first, source=source or name, out=str(out), options=options)
        variables = {**os.environ, **environment}
        command = [sys.executable, "-c", script]
        subprocess.run(command, cwd=self.folder / cwd, env=variables, check=True, timeout=300)
        return contents(out)


def test_bytes_depend_on_no_place_seed_order_cache_or_validator(tmp_path: Path) -> None:
    here = Place(tmp_path / "a")
    there = Place(tmp_path / "deep" / "er" / "other name")
    name = "graphs.py:calls_a_kernel"
    wanted = here.built(name, PYTHONHASHSEED="0")
    assert len(wanted) > 20
    above = there.built(
        name,
        cwd="..",
        source=f"{there.folder}/{name}",
        first="import shaderad.calls.graphs, shaderad.lower.kernels, numpy",
        SHADERAD_CACHE=str(tmp_path / "cache"),
        PYTHONHASHSEED="4711",
        LC_ALL="C",
        TZ="Asia/Tokyo",
    )
    assert above == wanted
    unasked = there.built(name, options=", validate=False", PYTHONHASHSEED="1")
    assert unasked == wanted
    nobody = "import sys; sys.executable = '/nowhere/python'"
    # The compiler's child needs a Python; validators beside it or on the path are not found.
    alone = there.built(name, first=nobody, PATH="/nowhere", SHADERAD_PYTHON=sys.executable)
    assert alone == wanted


def test_bytes_depend_on_no_other_entry_that_was_built_before(tmp_path: Path) -> None:
    here = Place(tmp_path / "a")
    wanted = here.built("kernels.py:splat")
    first = f"import shaderad; shaderad.build('kernels.py:shuffle', {str(tmp_path / 'b')!r})"
    assert here.built("kernels.py:splat", first=first) == wanted
