"""A preflight of overlays for one GPU, on a CPU, with tiny models of the same kind: nothing fails.

What it tries beside two steps of every stage (test_gpu_stand_ins.py): the probes of a true tokenizer and
verifier, each stage on the longest rows of its own data, and what it makes of hours and memory. One arm, as a
preflight has, of recipes that have every kind of stage between them, at `gpu` and at `gpu-offline`.
"""

from pathlib import Path

import pytest
import stand_in_recipes
from forked_jobs import apart
from papers import OFFLINE, RECIPES
from stand_in_recipes import half_are_right
from stocked_hub import stocked

from encore.forecast.preflight import preflight
from encore.recipe.graph import Node

# have every kind at scale gpu; and smoke, which a newcomer runs first
ONLINE = ("r1", "tldr", "overoptimization", "process_supervision", "code", "smoke")


@pytest.fixture(scope="module", autouse=True)
def hub(tmp_path_factory):
    with stocked(tmp_path_factory.mktemp("hub")) as served:
        yield served


def tried(run, name, scale):
    """What a preflight of the first arm of a recipe finds; `run` runs its jobs."""
    needed = [name] if scale == "gpu" else [name, "tiny_lm"]
    graph = stand_in_recipes.graph(stand_in_recipes.only(RECIPES[one], scale) for one in needed)
    arm = RECIPES[name].arms(scale)[0]
    folder = Path("work")
    folder.mkdir()
    return preflight(graph, Node(name, scale, arm, 0, "", "stage"), 1, folder, run)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scale"),
    [*((name, "gpu") for name in ONLINE), *((name, "gpu-offline") for name in OFFLINE)],
)
def test_nothing_of_it_fails(name, scale, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = apart(tried, name, scale, trap=half_are_right)
    failed = [
        "{stage}: {check}: {message}".format(**one) for one in result["checks"] if one["status"] == "FAIL"
    ]
    assert not failed
    assert result["ok"]
    costed = {one["stage"] for one in result["costs"]}
    stages = RECIPES[name].stages(scale, RECIPES[name].arms(scale)[0])
    assert {*stages} <= {stage.rpartition("/")[2] for stage in costed}
    assert all(one["hours"] > 0 for one in result["costs"] if one["steps"])
