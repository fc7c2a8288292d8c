"""A folder with the real Snakefile, profile and `recipes` package, and recipes whose stages take no time.

And the same Snakefile over the real recipes, only to be planned.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from papers import GRAPH, RECIPES
from snakemake.api import SnakemakeApi
from snakemake.settings.types import (
    ConfigSettings,
    OutputSettings,
    Quietness,
    ResourceSettings,
    StorageSettings,
)

from encore.recipe.args import TrainingArgs
from encore.recipe.graph import Graph
from encore.recipe.kinds import KINDS
from encore.recipe.kinds.stage import Stage
from encore.recipe.load import load_all

ROOT = Path(__file__).parents[2]
FIXTURES = Path(__file__).with_name("fixtures")
# a kind of stage that takes no time
TOY = """

class ToyStage(Stage):
    run: Literal["toy"]
    needs: dict[Literal["policy"], str] = {}
    args: TrainingArgs = TrainingArgs()
    dial: int
    evaluate_every: int | None = None

    @property
    def marks(self) -> range:
        every = self.evaluate_every
        return range(every, self.args.max_steps, every) if every else range(0)


KINDS["toy"] = ToyStage
"""


@dataclass(frozen=True)
class Project:
    folder: Path

    def command(self, *arguments: str) -> list[str]:
        return [str(Path(sys.executable).with_name("snakemake")), "--cores", "2", *arguments]

    def snakemake(
        self, *arguments: str, timeout: float = 120, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"} | environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def error(self, done: subprocess.CompletedProcess[str]) -> str:
        """The only line on stderr beside Snakemake's word on the profile."""
        lines = [
            line
            for line in done.stderr.splitlines()
            if not line.startswith("Using workflow specific profile")
        ]
        assert len(lines) == 1, done.stderr
        return lines[0]

    def run(self, *arguments: str, **environment: str) -> list[str]:
        """Names of the stages and evaluations that a successful run has done, in order of name."""
        (self.folder / "jobs.txt").write_text("")
        done = self.snakemake(*arguments, **environment)
        assert done.returncode == 0, done.stderr
        return sorted(line.split()[0] for line in (self.folder / "jobs.txt").read_text().splitlines())

    def edit(self, recipe: str, old: str, new: str) -> None:
        self.edit_file(f"recipes/{recipe}.yaml", old, new)

    def edit_file(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    shutil.copy(ROOT / "Snakefile", tmp_path)
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    for path in sorted([*ROOT.glob("encore/**/*.py"), *ROOT.glob("encore/**/*.smk")]):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    shutil.copytree(FIXTURES, tmp_path, dirs_exist_ok=True)  # also a command `encore.stages`
    with (tmp_path / "encore/recipe/kinds/__init__.py").open("a") as kinds:
        kinds.write("\nfrom typing import Literal\n\nfrom encore.recipe.args import TrainingArgs\n" + TOY)
    snakefile = tmp_path / "Snakefile"
    snakefile.write_text(snakefile.read_text().replace('QUICKSTART = "r1_zero"', 'QUICKSTART = "demo"'))
    return Project(tmp_path)


@pytest.fixture
def demo(project, monkeypatch):
    """The fixture's recipes, without the repository's world checks in the way."""
    toys: dict[str, Any] = {}
    exec(TOY, {"KINDS": toys, "Literal": Literal, "Stage": Stage, "TrainingArgs": TrainingArgs})
    monkeypatch.setitem(KINDS, "toy", toys["toy"])
    return Graph(load_all(project.folder / "recipes"))


@pytest.fixture
def open_workflow(tmp_path, monkeypatch):
    """Config -> the Snakefile's workflow, in a folder of its own so that no result here plays a part.

    The recipes and their graph are given to it, for reading them takes a second.
    """
    monkeypatch.setattr("encore.workflow.start.load_sound", lambda user_file=None: (RECIPES, {}))
    monkeypatch.setattr("encore.workflow.start.Graph", lambda recipes: GRAPH)
    for name in ("encore", "recipes"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "Snakefile", tmp_path)
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL}, dryrun=True)) as api:
        yield lambda **config: api.workflow(
            resource_settings=ResourceSettings(cores=1),
            config_settings=ConfigSettings(config=config),
            storage_settings=StorageSettings(),
            workdir=tmp_path,
            snakefile=tmp_path / "Snakefile",
        )
