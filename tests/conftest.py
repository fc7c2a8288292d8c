"""What all tests share: a tiny checkpoint, a task to evaluate it on, and a browser.

Hypothesis has no clock: a busy machine is no reason to fail. One thread: tests have tiny models.
"""

import gc
import os
import shutil

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("slow", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fast", settings.get_profile("slow"), max_examples=25)
os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported
gc.disable()  # while pytest collects: what tests import is no garbage


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the slow tests too")


def pytest_configure(config):
    """Draw fewer examples without --slow, before the tests that draw them are imported."""
    settings.load_profile("slow" if config.getoption("--slow") else "fast")


def pytest_collection_modifyitems(config, items):
    """Leave out the slow tests unless --slow asks for them.

    Files with slow tests come first, so that at the end no process is left with a long one alone.
    """
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
    slow = [item for item in items if item.get_closest_marker("slow")]
    if not config.getoption("--slow"):
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
    files = {item.path for item in slow}
    items.sort(key=lambda item: item.path not in files)


def pytest_terminal_summary(terminalreporter, config):
    if not config.getoption("--slow"):
        terminalreporter.write_line(
            "The slow tests, which train or start processes, were left out: `pytest --slow` runs them too."
        )


def pytest_collection_finish():
    """From here on the collector runs again; it passes over the modules of torch and TRL."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """The metrics.json of a random 1-layer model."""
    from stage_runs import finished

    from encore.models import language_model
    from encore.recipe.shape import Shape
    from encore.worlds import make, tokenizer

    folder = tmp_path_factory.mktemp("checkpoint")
    words = tokenizer([make({"world": "chain"})])
    model = language_model.build(Shape(hidden_size=32, layers=1, max_position_embeddings=128), words, seed=0)
    model.save_pretrained(folder / "final")
    words.save_pretrained(folder / "final")
    return finished(folder)


@pytest.fixture
def heldout():
    """A world task as a recipe has it; copy and change it."""
    return {
        "task": {"world": "chain"},
        "template": "<user>{question}<assistant>",
        "items": 6,
        "samples": 8,
        "temperature": 1.0,
        "top_p": 1.0,
        "max_gen_toks": 40,
        "k": [1, 4, 8],
    }


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium: the system's, else playwright's own. A skip, but a failure where CI is set."""
    playwright = pytest.importorskip("playwright.sync_api")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with playwright.sync_playwright() as engine:
        try:
            chromium = engine.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except playwright.Error as error:
            reason = f"no Chromium to show pages in: {str(error).splitlines()[0]}"
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)
        yield chromium
        chromium.close()
