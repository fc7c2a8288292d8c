"""One uninterrupted run of each stage, shared by all tests of this folder."""

import shutil
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest
import stage_runs


def pytest_collection_finish(session: pytest.Session) -> None:
    """Where stages are to run, the server they are forked from begins to load torch and TRL."""
    if any(test.path.parent.name in ("stages", "preflight") for test in session.items):
        forkserver.ensure_running()


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished `pretrain` stage."""
    folder = tmp_path_factory.mktemp("base")
    assert stage_runs.run("pretrain", stage_runs.command("pretrain", stage_runs.PRETRAIN), folder) == 0, (
        folder / "err.txt"
    ).read_text()
    return folder


@pytest.fixture(scope="session", autouse=True)
def reruns(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Any]:
    """(kind, trap) of each chosen test of test_resume -> the folder of its two runs, and their process.

    They begin with the first test of this folder and end while others run: ten seconds of the second core.
    """
    tests: Any = [t for t in request.session.items if "test_resume.py::test_killed_and_rerun" in t.nodeid]
    if not tests:
        return {}
    base, stages = request.getfixturevalue("base"), []
    for kind, trap in ((test.callspec.params["kind"], test.callspec.params["trap"]) for test in tests):
        folder = stage_runs.fresh(kind, base, tmp_path_factory.mktemp("killed") / "run")
        stages.append((kind, stage_runs.arguments_of(kind), folder, trap))
    halves = [stages[i :: stage_runs.AT_ONCE] for i in range(stage_runs.AT_ONCE)]
    return {
        (kind, trap): (folder, process)
        for half, process in [(half, stage_runs.rerun(half)) for half in halves]
        for kind, _, folder, trap in half
    }


@pytest.fixture(scope="session")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`base` with a finished `grpo` stage."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    shutil.copytree(base, folder)
    arguments = stage_runs.command("grpo", stage_runs.GRPO, policy="results/pretrain/metrics.json")
    assert stage_runs.run("grpo", arguments, folder) == 0, (folder / "err.txt").read_text()
    return folder
