"""The README keeps its word: its commands run, its recipes and files are those that exist.

The two pip commands, the quickstart and pytest itself are run by .ci/run, each in an environment of its own.
"""

import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from encore.recipe.load import load_all

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
CODE = sorted({*re.findall(r"`(snakemake [^`<]+)`", README), *re.findall(r"&& (snakemake .+)", README)})


def plan(command: str) -> subprocess.CompletedProcess[str]:
    words = [str(Path(sys.executable).with_name("snakemake")), *shlex.split(command)[1:], "--dry-run"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def planned():
    """command -> its dry run, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(CODE, pool.map(plan, CODE), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("command", CODE)
def test_command_is_planned(planned, command):
    """Dry, for real it takes minutes; a target that does not exist, or a wrong flag, fails here as well."""
    done = planned[command]
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_recipe_is_in_the_gallery():
    linked = {ROOT / path for path in re.findall(r"\((recipes/[\w/]+\.yaml)\)", README)}
    assert linked == {recipe.files.file() for recipe in load_all(ROOT / "recipes").values()}


def test_the_file_tree_is_the_tree():
    """Each line names a file or folder, of the folder it is indented under; every package has a line."""
    tree = README.split("## Where things live")[1].split("```")[1]
    folders, named = [ROOT], set()
    for line in filter(None, tree.splitlines()):
        depth = (len(line) - len(line.lstrip())) // 2
        path = folders[depth] / line.split()[0]
        assert path.exists(), line
        named.add(path)
        folders[depth + 1 :] = [path]
    tops = ("encore", "evals", "analysis")
    packages = {file.parent for top in tops for file in (ROOT / top).rglob("*.py")}
    assert packages <= named


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target
