"""A wheel works in an empty folder: it has recipes, Snakefile and profile, and says what code it is."""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALONE = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # without this clone
UNREACHABLE = ("Could not find a version", "No matching distribution", "Connection", "timed out")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel as `python -m build` makes it: first the archive of the source, then the wheel from that."""
    pytest.importorskip("build", reason="build is of the extra test")
    folder = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    if done.returncode and any(words in text for words in UNREACHABLE):
        pytest.skip(f"no registry of packages for the build: {text.strip().splitlines()[-1]}")
    assert done.returncode == 0, text
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The programs of a fresh environment with the wheel, inside a checkout of something else.

    All that Encore needs is taken from the environment of the tests, but not Encore.
    """
    project = tmp_path_factory.mktemp("project")
    author = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], [*author, "commit", "-qm", "other", "--allow-empty"]):
        subprocess.run(["git", *words], cwd=project, check=True)
    venv.create(project / "venv", with_pip=False)
    python = project / "venv/bin/python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], env=ALONE, check=True)
    (packages,) = (project / "venv/lib").glob("python*/site-packages")
    rest = [path for path in sys.path if Path(path).name == "site-packages"]
    (packages / "rest.pth").write_text("\n".join(rest), encoding="utf-8")
    return python.parent


@pytest.fixture
def encore(installed, tmp_path):
    """A call of `encore` in an empty folder, without activating its environment; it returns the output."""

    def call(*words: str, status: int = 0) -> str:
        done = subprocess.run(
            [str(installed / "encore"), *words],
            cwd=tmp_path,
            env=ALONE,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        output = done.stdout + done.stderr
        assert done.returncode == status, output
        return output

    return call


@pytest.mark.slow
def test_the_quickstart_and_a_recipe_of_ones_own_are_planned_in_an_empty_folder(encore, tmp_path):
    planned = encore("run", "r1_zero", "--quickstart", "-n")
    assert "profiles/default for setting default command line arguments" in planned
    assert "train r1_zero/cpu/base-recipe/seed1/grpo" in planned
    assert re.search(r"^planned: \d+ jobs", planned, re.MULTILINE)
    encore("new", "mine")
    schema = re.search(r"\$schema=(\S+)", (tmp_path / "mine.yaml").read_text())
    assert schema
    assert Path(schema[1]).is_file()
    assert re.search(r"train mine/cpu/base-recipe/seed\d+/grpo", encore("run", "mine.yaml", "-n"))
    assert {path.name for path in tmp_path.iterdir()} <= {"mine.yaml", ".snakemake", "results", "checkpoints"}


@pytest.mark.slow
def test_commands_that_look_find_recipes_and_records(encore):
    rows = encore("list").splitlines()
    assert any(line.startswith("r1_zero ") and "(record)" in line for line in rows)
    assert "encore/suite" in next(line for line in encore("doctor").splitlines() if "Snakefile" in line)
    assert 'no target or recipe "r1_zeo"; did you mean "r1_zero"?' in encore("run", "r1_zeo", "-n", status=2)


@pytest.mark.slow
def test_a_package_has_a_digest_and_no_commit_and_registers_nothing(encore, installed, tmp_path):
    code = "from encore.runtime import provenance as p; print(p.commit(), p.versions()['encore-rl'])"
    words = [str(installed / "python"), "-I", "-c", code]

    def known() -> str:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

    before = known()
    assert re.fullmatch(r"\(None, None\) [\d.]+ \(files [0-9a-f]{12}\)", before)
    (recipe,) = installed.parent.rglob("suite/recipes/r1_zero/recipe.yaml")
    text = recipe.read_text()
    recipe.write_text(f"{text}# edited\n")
    assert known() != before
    recipe.write_text(text)
    assert known() == before
    assert "r1_zero: belongs to the installed package" in encore("register", "r1_zero", status=2)
    encore("new", "mine")
    assert "pages will call it not registered" in encore("register", "mine.yaml")
