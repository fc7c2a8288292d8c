"""A Hub that refuses, breaks off or is away is one line, and never gives another revision."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from failing_hub import ABSENT, FIRST, SECOND

ROOT = Path(__file__).parents[3]
HELPERS = ROOT / "tests/helpers"
FILES = ["config.json", "model.safetensors"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("failing")
    env = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{HELPERS}"}
    command = [sys.executable, str(HELPERS / "failing_hub.py"), str(folder)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("model gated", ("model.hub: ", "org/model-gated", FIRST, "hf auth login")),
        ("model token", ("model.hub: ", "org/model-token", FIRST, "status 401", "hf auth login")),
        ("model busy", ("model.hub: ", "org/model-busy", FIRST, "status 503", "run the same command again")),
        ("model cut", ("model.hub: ", "org/model-cut", FIRST, "broke off", "run the same command again")),
        ("model missing", ("model.hub: ", "no model org/model-missing", "misspelt")),
        ("model revision", ("model.hub: ", f"no revision {ABSENT} of org/model-whole", "misspelt")),
        ("model down", ("cannot be reached", f"hf download org/model-unasked --revision {FIRST}")),
        ("model offline", ("HF_HUB_OFFLINE", f"hf download org/model-unasked --revision {FIRST}")),
        ("data gated", ("task.hub: ", "org/data-gated", FIRST, "hf auth login")),
        ("data cut", ("task.hub: ", "org/data-cut", FIRST, "broke off", "run the same command again")),
        ("data missing", ("task.hub: ", "no data set org/data-missing", "misspelt")),
        ("data revision", ("task.hub: ", f"no revision {ABSENT} of org/data-rows", "misspelt")),
        ("data busy", ("task.hub: ", SECOND, "status 503", "run the same command again")),
        ("data offline", ("HF_HUB_OFFLINE", f"load_dataset('org/data-rows', 'main', revision='{ABSENT}')")),
        ("data split, offline", ("task.hub: ", "tset")),
        ("benchmark cut", ("evals.tasks.heldout: ", "data set of gsm8k", "broke off")),
    ],
)
def test_a_failure_is_one_line_that_says_what_to_do(cases, case, says):
    message = cases[case]
    assert isinstance(message, str)
    assert not message.startswith("traceback")
    assert "\n" not in message
    assert [part for part in says if part not in message] == []


def test_a_split_that_is_not_there_is_not_blamed_on_the_network(cases):
    assert "HF_HUB_OFFLINE" not in cases["data split, offline"]


@pytest.mark.parametrize(
    ("case", "rows"),
    [("data rows", 2), ("data cached, busy", 2), ("data second", 4), ("data cached, offline", 2)],
)
def test_a_revision_that_was_read_is_read_again_from_the_cache(cases, case, rows):
    assert cases[case] == rows


def test_a_model_in_the_cache_needs_no_hub(cases):
    wanted = ("model whole", "model cached, down", "model cached, offline")
    assert [cases[case] for case in wanted] == [FILES] * 3


def test_after_a_cut_only_the_file_that_broke_off_is_fetched_again(cases):
    assert cases["model after the cut"] == FILES
    assert cases["asked after the cut"] == [f"GET /org/model-cut/resolve/{FIRST}/model.safetensors"]
