"""Here the run is the synthetic one of preference learning."""

import pandas as pd
import pytest

from analysis.numbers.run import Run
from analysis.numbers.table import final
from analysis.page.palette import colours


@pytest.fixture(scope="session")
def run(rlhf: Run) -> Run:
    return rlhf


@pytest.fixture(scope="session")
def table(rlhf_table: pd.DataFrame) -> pd.DataFrame:
    return rlhf_table


@pytest.fixture(scope="session")
def numbers(rlhf_table: pd.DataFrame) -> pd.DataFrame:
    return final(rlhf_table)


@pytest.fixture(scope="session")
def palette(rlhf: Run) -> dict[str, str]:
    return colours(rlhf.recipe.arms("cpu"))
