import shutil
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest
import toy_ladder
import toy_preferences
from toy_run import ARMS, draw_only, load_all, make

from analysis import report
from analysis.numbers.run import Run
from analysis.numbers.table import collect, final
from analysis.page.palette import colours
from analysis.page.style import STYLE
from analysis.preferences import build as preferences
from analysis.results import Results, build, views
from encore.recipe.graph import Graph


@pytest.fixture(scope="module", autouse=True)
def style():
    with mpl.rc_context(STYLE):
        yield


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("encore"))


@pytest.fixture(scope="session")
def run(root: Path) -> Run:
    return Run(Graph(load_all(root)), "toy_zero", "cpu", ARMS, (0, 1, 2), root)


@pytest.fixture(scope="session")
def table(run: Run) -> pd.DataFrame:
    return collect(run)


@pytest.fixture(scope="session")
def numbers(table: pd.DataFrame) -> pd.DataFrame:
    return final(table)


@pytest.fixture(scope="session")
def palette(run: Run) -> dict[str, str]:
    return colours(run.recipe.arms("cpu"))


@pytest.fixture(scope="session")
def rlhf(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A synthetic run of preference learning whose laws are known."""
    root = tmp_path_factory.mktemp("preferences")
    shutil.copytree(Path(__file__).parent / "recipes", root / "recipes")
    run = Run(Graph(load_all(root)), "toy_rlhf", "cpu", toy_preferences.ARMS, (0, 1), root)
    return toy_preferences.make(root, run)


@pytest.fixture(scope="session")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A synthetic run of a ladder of stages."""
    root = tmp_path_factory.mktemp("stages")
    shutil.copytree(Path(__file__).parent / "recipes", root / "recipes")
    return toy_ladder.make(root)


@pytest.fixture(scope="session")
def rlhf_table(rlhf: Run) -> pd.DataFrame:
    return collect(rlhf)


@pytest.fixture(scope="session")
def preferred(rlhf: Run, rlhf_table: pd.DataFrame) -> preferences.Preferences:
    return preferences.build(rlhf, rlhf_table)


@pytest.fixture(scope="session")
def quick(run: Run) -> Run:
    return Run(run.graph, "toy_zero", "cpu", ARMS[:1], (0, 1), run.root)


@pytest.fixture(scope="session")
def quick_out(quick: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder beside the page of `quick`; figures take seconds, so they are drawn once."""
    page = tmp_path_factory.mktemp("quick") / "quickstart.html"
    report.command(quick, page, "quickstart")
    return page.with_suffix("")


@pytest.fixture(scope="session")
def quick_results(quick: Run) -> Results:
    return build(quick, collect(quick))


@pytest.fixture(scope="session")
def plain_page() -> Callable[[Results], str]:
    """The page without figures."""

    def page(results: Results) -> str:
        shown = views(results)
        return report.render(results, shown, dict.fromkeys(shown, ()))

    return page


@pytest.fixture(scope="session")
def page(run, tmp_path_factory) -> Path:
    """The report of three arms, one of them with failed health checks, and a few of the figures."""
    some = Run(run.graph, run.name, run.scale, (*ARMS[:2], "no-cot-base"), run.seeds, run.root)
    path = tmp_path_factory.mktemp("page") / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        draw_only({"forest", "accuracy", "before-after", "ladder", "length", "kl", "pass-at-k"}, patch)
        report.command(some, path, "report")
    return path


@pytest.fixture
def visit(browser, page):
    """Open the report at a width; on leaving, fail on console errors and on requests to elsewhere."""
    troubles: list[str] = []
    tabs = []

    def open_at(width: int):
        tab = browser.new_page(viewport={"width": width, "height": 800})
        tab.on("console", lambda message: troubles.append(f"console: {message.text}"))
        tab.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        tab.on("request", lambda request: troubles.extend(outside(request.url)))
        tab.goto(page.as_uri())
        tabs.append(tab)
        return tab

    def outside(url: str) -> list[str]:
        return [] if url.startswith("data:") or url == page.as_uri() else [url]

    yield open_at
    for tab in tabs:
        tab.close()
    assert troubles == []
