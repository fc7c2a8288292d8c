import os
import shutil
from pathlib import Path

import pytest
from toy_run import ARMS, load_all, make

from analysis import analyse
from analysis.numbers.run import Run
from recipes.spec.graph import Graph


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("encore"))


@pytest.fixture(scope="session")
def run(root: Path) -> Run:
    return Run(Graph(load_all(root)), "toy_zero", "cpu", ARMS, (0, 1, 2), root)


@pytest.fixture(scope="session")
def quick(run: Run) -> Run:
    return Run(run.graph, "toy_zero", "cpu", ARMS[:1], (0, 1), run.root)


@pytest.fixture(scope="session")
def quick_out(quick: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that analyse wrote for `quick`; figures take seconds, so they are drawn once."""
    out = tmp_path_factory.mktemp("quick") / "quickstart"
    analyse.analyse(quick, out)
    return out


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium: the system's, else playwright's own. A skip, but a failure where CI is set."""
    playwright = pytest.importorskip("playwright.sync_api")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with playwright.sync_playwright() as engine:
        try:
            chromium = engine.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except playwright.Error as error:
            reason = f"no Chromium to show the report in: {str(error).splitlines()[0]}"
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)
        yield chromium
        chromium.close()
