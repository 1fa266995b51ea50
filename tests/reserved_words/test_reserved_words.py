"""Words that a language or our library keeps for itself are names like any other.

Each is tried in one role; ``python -m tests.reserved_words`` tries them all in all.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from shaderad.bundle.write.header import Identifiers
from shaderad.bundle.write.validators import Naga
from tests.bundle.test_header import COMPILERS
from tests.reserved_words.roles import ROLES, Role
from tests.reserved_words.trial import WORDS, faults


@pytest.fixture(scope="module")
def naga() -> Iterator[Naga]:
    judge = Naga()
    yield judge
    judge.close()


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_compilers_take_words_in_a_role(role: Role, tmp_path: Path, naga: Naga) -> None:
    # Where a module has one word, seven words in eight wait for the long run.
    share = WORDS[ROLES.index(role) :: len(ROLES) * (8 if role.batch == 1 else 1)]
    assert faults(role, share, tmp_path, naga, ("spirv", "wgsl")) == []


@pytest.mark.parametrize("compiler", COMPILERS)
def test_c_takes_every_word(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is missing")
    names = Identifiers()
    claimed = [names.claim(word) for word in WORDS]
    lines = [
        "#include <assert.h>", "#include <stddef.h>", "#include <stdint.h>",
        *(f"struct in_{k} {{ int {name}; }};" for k, name in enumerate(claimed)),
        *(f"struct {name} {{ int {name}; }};" for name in claimed),
        *(f"static inline int of_{k}(int {name}) {{ return {name}; }}"
          for k, name in enumerate(claimed)),
    ]  # fmt: skip
    source = tmp_path / "words.h"
    source.write_text("\n".join([*lines, ""]))
    command = [compiler, *COMPILERS[compiler], "-Wall", "-Werror", "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
