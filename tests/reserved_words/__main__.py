"""The long run: ``python -m tests.reserved_words`` throws every word at every role."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from shaderad.bundle.write.validators import Naga
from tests.reserved_words.roles import ROLES
from tests.reserved_words.trial import TARGETS, WORDS, faults


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reserved_words", description=__doc__)
    names = [role.name for role in ROLES]
    parser.add_argument("--role", choices=names, nargs="+", default=names)
    parser.add_argument("--target", choices=TARGETS, nargs="+", default=TARGETS)
    given = parser.parse_args()
    naga = Naga()
    count = 0
    for role in ROLES:
        if role.name not in given.role:
            continue
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found = faults(role, WORDS, Path(folder), naga, given.target)
        seconds = time.monotonic() - start
        print(*found, f"{len(WORDS)} words as {role.name}: {len(found)} at fault, {seconds:.0f} s",
              sep="\n", flush=True)  # fmt: skip
        count += len(found)
    naga.close()
    return 1 if count else 0


if __name__ == "__main__":
    raise SystemExit(main())
