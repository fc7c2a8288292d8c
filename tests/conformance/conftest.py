"""Runs of the stage `grpo`, each done once."""

import functools
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import CASES
from compare import Case, Outcome, compare
from observe import Watch


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the model lies that all runs start from."""
    return tmp_path_factory.mktemp("objectives")


@pytest.fixture(scope="session")
def watch(folder: Path) -> Callable[[str, str], Watch]:
    """(case, layout) -> what the stage did."""
    return functools.cache(lambda case, layout: CASES[case].watch(folder, layout))


@pytest.fixture(scope="session")
def judge(folder: Path) -> Callable[[Case, Watch], list[Outcome]]:
    """What the stage did beside what a case says it should."""
    return lambda case, seen: compare(case, seen, folder)
