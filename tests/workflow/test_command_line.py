"""The command line of snakemake as users type it: targets, choices, and a line for each mistake."""

import sys
from types import SimpleNamespace

import pytest

from encore.errors import UserError
from encore.recipe.graph import Graph, Node
from encore.recipe.layers import Layers
from encore.recipe.recipe import Recipe
from encore.runtime import extras
from encore.workflow import commands, targets
from encore.workflow.choice import choice
from encore.workflow.jobs import Jobs
from snakemake_logger_plugin_encore import (
    is_snakemake,
    with_cores,
    with_targets_first,
)

SEEDS = "--config seeds: expected a number of seeds (8), a list (0,2 or, for one, 2,) or auto"


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("--cores", "--cores all"),
        ("--cores r1_zero", "--cores all r1_zero"),
        ("r1_zero -c --config seeds=5", "r1_zero -c all --config seeds=5"),
        ("--cores 2 r1_zero", "--cores 2 r1_zero"),
        ("--cores all", "--cores all"),
        ("-n", "-n"),
    ],
)
def test_cores_without_a_number(typed, read):
    assert with_cores(typed.split()) == read.split()


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("--config seeds=5 r1_zero", "r1_zero --config seeds=5"),
        ("-c 2 -C scale=cpu seeds=5 a b -n", "a b -c 2 -C scale=cpu seeds=5 -n"),
        ("r1_zero --config seeds=5 -n", "r1_zero --config seeds=5 -n"),
        ("-n r1_zero", "-n r1_zero"),
    ],
)
def test_target_after_config(typed, read):
    assert with_targets_first(typed.split()) == read.split()


def test_ways_to_start_snakemake(monkeypatch):
    assert is_snakemake("/usr/bin/snakemake")
    assert is_snakemake("/usr/lib/python3/site-packages/snakemake/__main__.py")
    assert not is_snakemake("/usr/bin/pytest")
    assert targets.arguments() is None
    monkeypatch.setattr(sys, "argv", ["/x/snakemake/__main__.py", "-n", "demo"])
    assert targets.arguments().targets == ["demo"]
    assert not targets.runs_jobs(targets.arguments())
    assert targets.runs_jobs(None)  # as a library: jobs may run, so the folder is held


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"scael": "cpu"}, '--config scael: unknown key; did you mean "scale"?'),
        ({"scale": "cqu"}, '--config scale: unknown scale "cqu"; did you mean "cpu"?'),
        (
            {"seeds": "automatic"},
            f"{SEEDS}, got automatic",
        ),
        ({"seeds": 0}, f"{SEEDS}, got 0"),
        (
            {"track": "tensorbord"},
            '--config track: unknown tracker "tensorbord"; did you mean "tensorboard"?',
        ),
        ({"part": "5/4"}, "--config part: expected a part such as 2/4, the second of four, got 5/4"),
        ({"part": "half"}, "--config part: expected a part such as 2/4, the second of four, got half"),
        (
            {"part": "1/2", "seeds": "auto"},
            "--config part: 1/2, but seeds=auto looks at the whole grid; set a number of seeds",
        ),
        ({"track": True}, '--config track: unknown tracker "True"; valid: tensorboard, trackio, wandb'),
    ],
)
def test_choices_are_checked(demo, config, message):
    with pytest.raises(UserError) as error:
        choice(demo.recipes, config)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("dmo", 'no target or recipe "dmo"; did you mean "demo"?'),
        ("results/dmo/cpu/report.html", 'unknown recipe "dmo"; did you mean "demo"?'),
        ("results/demo/cqu/report.html", 'recipe demo has no scale "cqu"; did you mean "cpu"?'),
        (
            "results/demo/cpu/hott/seed0/rl/metrics.json",
            'unknown arm "hott" at scale cpu; did you mean "hot"?',
        ),
        (
            "results/demo/cpu/hot/seed7/rl/metrics.json",
            "seeds are 0 to 1; ask for more with --config seeds=N",
        ),
        ("results/demo/cpu/hot/seed0/rll/metrics.json", 'unknown stage "rll"; did you mean "rl"?'),
        ("results/demo/cpu/hot/seed0/evals/aftr.json", 'unknown checkpoint "aftr"; did you mean "after"?'),
        ("results/demo/cpu/hot/seedX/rl/metrics.json",
         "no such file; expected results/recipe/scale/arm/seedN/stage/metrics.json"),
        ("results/demo/cpu/hot/seed0/rl/nothing.json",
         'no rule makes "nothing.json"; did you mean "metrics.json"?'),
        ("results/demo/cpu/hot/seed0/evals/after.csv",
         'no rule makes "after.csv"; did you mean "after.json"?'),
        ("results/demo/cpu/report/tables.csv", 'no rule makes "tables.csv"; did you mean "table.csv"?'),
        ("train", "train: a rule of single jobs; ask for a recipe (base, demo) or a file"),
        ("results/demo/cpu/hot/seed0/sft/metrics.json", "seed0/sft/metrics.json; ask for this file"),
    ],
)  # fmt: skip
def test_targets_are_checked(demo, target, message):
    with pytest.raises(UserError) as error:
        targets.target_of(demo, targets.Choice("cpu", None), target, "demo")
    assert str(error.value).endswith(message)


@pytest.mark.parametrize(
    ("target", "asked"),
    [
        ("all", [("demo", "cpu", "quickstart")]),
        ("demo", [("demo", "cpu", "report")]),
        ("everything", [("demo", "cpu", "report")]),
        ("./results/demo/cpu/quickstart.html", [("demo", "cpu", "quickstart")]),
        ("results//demo/cpu/report/table.csv", [("demo", "cpu", "report")]),
        ("results/demo/cpu/hot/seed1/rl/metrics.json", [Node("demo", "cpu", "hot", 1, "rl", "stage")]),
        ("results/demo/cpu/hot/seed1/evals/after.samples.jsonl",
         [Node("demo", "cpu", "hot", 1, "after", "eval")]),
        ("results/benchmarks/grpo_speed.csv", []),
        ("results/benchmarks/grid_speed.csv", []),
        ("results/benchmarks/plan_speed.csv", []),
        ("clean_checkpoints", []),
        ("gallery", []),
        ("faults", []),
    ],
)  # fmt: skip
def test_what_a_target_asks_for(demo, target, asked):
    assert targets.target_of(demo, targets.Choice("cpu", None), target, "demo") == asked


def test_seeds_from_the_first_on_and_pinned_ones_are_targets(demo):
    changed = Recipe("demo", Layers(demo.recipes["demo"].layers.content | {"first_seed": 5}))
    graph = Graph({**demo.recipes, "demo": changed})

    def seed_of(target: str) -> int:
        return targets.target_of(graph, targets.Choice("cpu", None), target, "demo")[0].seed

    assert seed_of("results/demo/cpu/hot/seed6/rl/metrics.json") == 6
    assert seed_of("results/demo/cpu/base-recipe/seed0/evals/before.json") == 0  # of a pinned stage
    with pytest.raises(UserError, match="seeds are 5 to 6; ask for more"):
        seed_of("results/demo/cpu/hot/seed0/rl/metrics.json")


@pytest.mark.parametrize("of", [1, 2, 3, 4, 7, 20])
def test_parts_are_the_whole_grid_and_share_only_what_they_need(demo, of):
    whole = Jobs(demo, targets.Choice("cpu", 3))
    report = targets.target_of(demo, whole.choice, "demo", "demo")
    parts = []
    for which in range(1, of + 1):
        jobs = Jobs(demo, choice(demo.recipes, {"seeds": 3, "part": f"{which}/{of}"}))
        parts.append(jobs.nodes(report))
        assert bool(jobs.judgements(report)) == (of == 1)
    assert {node for part in parts for node in part} == {*whole.nodes(report)}
    last = [node for part in parts for node in part if (node.name, node.kind) == ("after", "eval")]
    assert len(last) == len({*last}) == 9  # of each arm and seed in one part alone


def test_a_part_goes_with_a_recipe_alone(demo):
    chosen = choice(demo.recipes, {"part": "1/2"})
    for target in ("all", "results/demo/cpu/report.html"):
        with pytest.raises(
            UserError, match=f"--config part: goes with a recipe or everything, not with {target}"
        ):
            targets.requested(demo, chosen, SimpleNamespace(targets=[target]), "demo")
    assert targets.requested(demo, chosen, SimpleNamespace(targets=["demo"]), "demo")


def test_quickstart_without_its_recipe(demo):
    with pytest.raises(UserError, match=r"recipes/r1_zero: missing; the quickstart runs it"):
        targets.target_of(demo, targets.Choice("cpu", None), "all", "r1_zero")


def test_a_tracker_is_no_part_of_a_job_and_is_told_to_its_command(demo, monkeypatch):
    """Of a job's params, by which Snakemake decides what to redo, it is none."""
    monkeypatch.setattr(extras, "find_spec", lambda name: SimpleNamespace(origin="here"))
    chosen = choice(demo.recipes, {"track": "wandb", "seeds": 2})
    assert (chosen.track, chosen.seeds) == ("wandb", 2)
    assert choice(demo.recipes, {"track": "wandb", "seeds": "auto"}).track == "wandb"
    names = {"recipe": "demo", "scale": "cpu", "arm": "base-recipe", "seed": "0", "stage": "rl"}
    job = SimpleNamespace(**names, keys=names.keys)
    told = {}
    for track in ({}, {"track": "wandb"}):
        jobs = Jobs(demo, choice(demo.recipes, track))
        told[jobs.resources()["track"](job)] = {name: of(job) for name, of in jobs.of_training().items()}
    assert told.keys() == {"none", "wandb"}
    assert told["none"] == told["wandb"]
    assert "--track {resources.track}" in commands.TRAIN
