"""The extras of pyproject.toml install together, two at a time, but for those that it says do not.

uv's resolver looks at a package registry. It is installed by .ci/run; elsewhere these tests are skipped.
"""

import os
import re
import subprocess
import tomllib
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONFLICTS = [{member["extra"] for member in group} for group in PYPROJECT["tool"]["uv"]["conflicts"]]
OLDEST = PYPROJECT["project"]["requires-python"].removeprefix(">=")
TOGETHER = "3.13"  # from here on all extras install together, as the manual says
UNREACHABLE = ("Could not connect", "error sending request", "Failed to fetch", "timed out", "dns error")


def named() -> list[str]:
    """The extras that the README, the manual and CONTRIBUTING.md name in an installation."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    found = [match.split(",") for text in texts for match in re.findall(r"'\.\[([\w,]+)\]'", text)]
    return sorted({extra for extras in found for extra in extras})


PAIRS = [*combinations(named(), 2)]


def test_what_is_named_is_there_and_what_conflicts_is_named():
    extras = {*PYPROJECT["project"]["optional-dependencies"]}
    assert {*named()} <= extras
    assert all(conflict <= {*named()} for conflict in CONFLICTS)
    manual = " ".join((ROOT / "docs/gpu.md").read_text(encoding="utf-8").split())
    assert f"installs on Python {TOGETHER} and newer only" in manual


def uv(*words: str) -> subprocess.CompletedProcess[str]:
    """A command of uv on the project. Skips the test without uv or a registry."""
    if not find_spec("uv"):
        pytest.skip("uv, which .ci/run installs, is not installed here")
    from uv import find_uv_bin  # only here: what most have not installed

    done = subprocess.run([find_uv_bin(), *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if any(text in done.stderr for text in UNREACHABLE):
        pytest.skip(f"no registry of packages: {done.stderr.strip().splitlines()[-1]}")
    return done


def resolved(extras: Sequence[str], python: str) -> bool:
    """Whether there are versions that all of `extras` take."""
    wanted = [word for extra in extras for word in ("--extra", extra)]
    machine = ["--python-version", python, "--python-platform", "x86_64-manylinux_2_28"]
    done = uv("pip", "compile", "pyproject.toml", *wanted, *machine, "-q", "-o", os.devnull)
    assert not done.returncode or "No solution found" in done.stderr, done.stderr
    return not done.returncode


def test_the_lock_names_public_registries_alone():
    """A lock that was made behind a mirror would send everybody there."""
    hosts = re.findall(r'"\w+://([^/"]+)', (ROOT / "uv.lock").read_text(encoding="utf-8"))
    assert {*hosts} == {"pypi.org", "files.pythonhosted.org"}


@pytest.mark.slow
def test_the_lock_is_that_of_the_project():
    done = uv("lock", "--check")
    assert done.returncode == 0, f"{done.stderr}\nrun `uv lock`"


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_a_pair_of_extras_installs_or_is_said_to_conflict(pair: tuple[str, str]):
    assert resolved(pair, OLDEST) is ({*pair} not in CONFLICTS)


@pytest.mark.slow
def test_all_extras_install_together_on_a_newer_python():
    assert resolved(named(), TOGETHER)
