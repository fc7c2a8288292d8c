"""A synthetic run of preference learning whose laws are known."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
import toy_preferences as toy
from toy_run import load_all

from analysis.numbers.run import Run
from analysis.numbers.table import collect
from analysis.page import style
from analysis.preferences import section
from recipes.spec.graph import Graph


@pytest.fixture(scope="package")
def run(tmp_path_factory) -> Run:
    root = tmp_path_factory.mktemp("preferences")
    shutil.copytree(Path(__file__).parents[1] / "recipes", root / "recipes")
    return toy.make(root, Run(Graph(load_all(root)), "toy_rlhf", "cpu", toy.ARMS, (0, 1), root))


@pytest.fixture(scope="package")
def table(run) -> pd.DataFrame:
    return collect(run)


@pytest.fixture(scope="package")
def found(run, table) -> section.Found:
    return section.gather(run, table)


@pytest.fixture(scope="package")
def palette(run) -> dict[str, str]:
    return style.colours(run.recipe.arms("cpu"))
