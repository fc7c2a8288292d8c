"""Here the run is the synthetic one of a ladder of stages."""

import pandas as pd
import pytest

from analysis.numbers.run import Run
from analysis.numbers.table import collect, final
from analysis.stage_ladder.steps import Climb, Step, climb, steps


@pytest.fixture(scope="session")
def run(staged: Run) -> Run:
    return staged


@pytest.fixture(scope="session")
def table(run: Run) -> pd.DataFrame:
    return collect(run)


@pytest.fixture(scope="session")
def numbers(table: pd.DataFrame) -> pd.DataFrame:
    return final(table)


@pytest.fixture(scope="session")
def ladder(run: Run) -> list[Step]:
    return steps(run)


@pytest.fixture(scope="session")
def path(run: Run, table: pd.DataFrame, ladder: list[Step]) -> Climb:
    return climb(run, table, ladder)
