"""Which files Encore uses: those of the clone it is called in, else those that were installed."""

import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from encore.commands import command_line
from encore.recipe.load import load_all, load_named
from encore.runtime import suite

ROOT = Path(__file__).parents[3]


@pytest.fixture
def empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_clone_has_a_snakefile_and_recipes(empty):
    """A folder of recipes alone is a user's, and so is a Snakefile alone."""
    for make in (Path("recipes").mkdir, Path("Snakefile").touch):
        assert suite.folder() == ROOT
        make()
    assert suite.folder() == Path()
    assert suite.folder(empty) == empty


def test_recipes_are_found_from_an_empty_folder(empty):
    assert load_named("r1_zero", "cpu")[1].files.path == ROOT / "recipes/r1_zero"
    assert "r1_zero" in load_all()


def test_run_outside_a_clone_names_the_snakefile_and_its_own_python(empty, monkeypatch):
    called = []
    monkeypatch.setattr(os, "execve", lambda program, *rest: called.append(rest))
    monkeypatch.setenv("PATH", "/elsewhere")
    CliRunner().invoke(command_line.app, ["run", "r1", "--quickstart"])
    (((_, _, program, option, snakefile, *_), environment),) = called
    assert [program, option, Path(snakefile)] == ["snakemake", "--snakefile", ROOT / "Snakefile"]
    assert environment["PATH"] == f"{Path(sys.executable).parent}:/elsewhere"


def test_a_wheel_is_known_by_the_files_it_has_now(empty, monkeypatch):
    """Its copies of the Snakefile and the recipes tell a wheel from a clone. Compiled files do not count."""
    monkeypatch.setattr(suite, "CODE", empty)
    monkeypatch.setattr(suite, "PACKAGED", empty / "encore/suite")
    read = suite.package.__wrapped__
    assert read() is None
    Path("encore/suite").mkdir(parents=True)
    Path("encore/suite/Snakefile").write_text("rule all:\n")
    before = read()
    Path("encore/__pycache__").mkdir()
    Path("encore/__pycache__/errors.pyc").write_text("compiled")
    assert read() == before
    Path("encore/suite/Snakefile").write_text("rule any:\n")
    assert read().digest != before.digest
    monkeypatch.setattr(suite, "package", read)
    assert suite.install("vllm") == "pip install 'encore-rl[vllm]'"
    assert suite.folder() == empty / "encore/suite"
