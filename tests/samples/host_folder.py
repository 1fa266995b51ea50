"""What samples/hosts/prepare.py writes, once for all tests of hosts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.samples.loading import SAMPLES

HOSTS = SAMPLES / "hosts"


def prepared(folder: Path) -> Path:
    """Runs the script as a user would, and returns the folder."""
    run([sys.executable, HOSTS / "prepare.py", folder])
    return folder


def run(command: list[str | Path], **variables: str) -> str:
    """What a command prints, which must succeed."""
    done = attempted(command, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def attempted(command: list[str | Path], **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
