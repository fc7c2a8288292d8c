"""One uninterrupted run of each stage, shared by all tests of this folder."""

import shutil
from pathlib import Path

import pytest
import stage_runs


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What begins with a stage that was run is slow."""
    for item in items:
        if "base" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished `pretrain` stage."""
    folder = tmp_path_factory.mktemp("base")
    assert stage_runs.run("pretrain", stage_runs.command("pretrain", stage_runs.PRETRAIN), folder) == 0, (
        folder / "err.txt"
    ).read_text()
    return folder


@pytest.fixture(scope="session")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`base` with a finished `grpo` stage."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    shutil.copytree(base, folder)
    arguments = stage_runs.command("grpo", stage_runs.GRPO, policy="results/pretrain/metrics.json")
    assert stage_runs.run("grpo", arguments, folder) == 0, (folder / "err.txt").read_text()
    return folder
