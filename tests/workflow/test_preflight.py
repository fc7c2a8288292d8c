"""`snakemake preflight` by the real Snakefile and the real stages; and what it asks of the command line."""

import json
import os
import subprocess
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import code_copy
import pytest
import yaml
from papers import GRAPH
from stage_runs import PRETRAIN

from encore.errors import UserError
from encore.forecast.survey import Survey
from encore.recipe.chosen import first_node
from encore.workflow import targets
from encore.workflow.choice import choice
from encore.workflow.jobs import Jobs

RECIPE = {
    "schema": 2,
    "title": "A toy",
    "url": "https://example.org",
    "stages": {"pretrain": {"run": "pretrain", **PRETRAIN}},
    "scales": {"cpu": {"about": "small"}},
    "arms": {
        "base-recipe": {"about": "the one"},
        "strange": {"about": "no token", "stages": {"pretrain": {"template": "Question № {question}: "}}},
    },
    "evals": {},
}


def snakemake(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = [Path(sys.executable).with_name("snakemake"), "--cores", "preflight", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.slow
def test_a_run_that_may_start_and_one_that_may_not(tmp_path):
    code_copy.lay(tmp_path)
    (tmp_path / "recipes/toy.yaml").write_text(yaml.safe_dump(RECIPE, sort_keys=False))

    good = snakemake(tmp_path, "--config", "recipe=toy")
    assert good.returncode == 0, good.stdout + good.stderr
    assert "pretrain  known_tokens  ok" in good.stdout
    assert "The run takes about" in good.stdout
    result = json.loads((tmp_path / "results/toy/cpu/preflight.json").read_text())
    assert (result["ok"], result["arm"], result["seeds"]) == (True, "base-recipe", 3)
    assert not [*(tmp_path / "checkpoints").rglob("metrics.json")]
    assert [path.name for path in (tmp_path / "results/toy/cpu").iterdir()] == ["preflight.json"]

    bad = snakemake(tmp_path, "--config", "recipe=toy", "arm=strange")
    assert bad.returncode != 0
    said = bad.stdout + bad.stderr
    assert "FAIL" in said
    assert "the tokenizer does not know a part of the document" in " ".join(said.split())
    assert not json.loads((tmp_path / "results/toy/cpu/preflight.json").read_text())["ok"]


@pytest.mark.parametrize(
    ("config", "target", "message"),
    [
        ({}, "preflight", "preflight: --config recipe=… is missing"),
        ({"recipe": "r1_zeroo"}, "preflight", 'unknown recipe "r1_zeroo"; did you mean "r1_zero"?'),
        ({"recipe": "tiny_lm", "scale": "paper"}, "preflight", 'recipe tiny_lm has no scale "paper"'),
        ({"recipe": "r1_zero", "arm": "base"}, "preflight", 'unknown arm "base" at scale cpu'),
        (
            {"recipe": "r1_zero"},
            "r1_zero",
            "--config recipe: is only for target all or preflight or plan",
        ),
        ({}, "plan", "plan: --config recipe=… is missing"),
        ({"gpus": "8xH100"}, "r1_zero", "--config gpus: is only for target plan"),
        ({"arm": "base", "recipe": "r1_zero"}, "plan", "--config arm: is only for target preflight"),
        ({"arm": "chat"}, "tiny_lm", "--config arm: is only for target preflight"),
    ],
)
def test_mistakes_are_told_before_any_job(config, target, message):
    chosen = choice(GRAPH.recipes, config)
    with pytest.raises(UserError) as error:
        targets.requested(GRAPH, chosen, Namespace(targets=[target]), "r1_zero")
    assert message in str(error.value)


def test_it_asks_for_what_the_largest_job_of_the_arm_does():
    chosen = choice(GRAPH.recipes, {"recipe": "r1_zero", "scale": "paper", "seeds": 2})
    jobs = Jobs(GRAPH, chosen)
    assert jobs.choice.preflight == "--recipe r1_zero --scale paper --seeds 2"
    asked = {name: of(None) for name, of in jobs.resources_of_preflight().items()}
    assert asked["gpu"] == 520
    assert asked["mem_mb"] > 8 * 60_000  # of each of 65 nodes
    assert (asked["nodes"], asked["mpi"], asked["tasks"]) == (65, "srun", 65)

    jobs = Jobs(GRAPH, choice(GRAPH.recipes, {"recipe": "dapo", "scale": "paper"}))
    asked = {name: of(None) for name, of in jobs.resources_of_preflight().items()}
    assert (asked["gpu"], asked["nodes"], asked["mpi"], asked["tasks"]) == (128, 16, "srun", 16)
    first = first_node(GRAPH, "dapo", "paper")
    machine = Survey(GRAPH, first, [], {}, Path(), print).machine(replace(first, name="grpo"))
    assert machine == ["--gpus", "128", "--vllm-gpus", "0", "--nodes", "16", "--shard", "fsdp"]


def test_a_plan_is_asked_for_with_all_of_its_keys():
    chosen = choice(GRAPH.recipes, {"recipe": "dapo", "scale": "paper", "gpus": "8xH100", "mfu": 0.4})
    assert not targets.requested(GRAPH, chosen, Namespace(targets=["plan"]), "r1_zero")
    assert chosen.plan == "recipe=dapo scale=paper gpus=8xH100 mfu=0.4"
