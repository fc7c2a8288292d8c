"""The Snakefile itself: planned over the real recipes, linted, formatted; its command line and console."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from snakemake.api import SnakemakeApi
from snakemake.exceptions import MissingRuleException
from snakemake.settings.types import (
    ConfigSettings,
    DAGSettings,
    OutputSettings,
    Quietness,
    ResourceSettings,
    StorageSettings,
)
from snakemake_interface_logger_plugins.common import LogEvent

from recipes import clean, command, graph, redo
from recipes.errors import UserError
from recipes.jobs import Jobs
from recipes.recipe import Recipe, load_all
from recipes.stages import sentinel
from snakemake_logger_plugin_encore import (
    LogHandler,
    is_snakemake,
    shortened,
    with_cores,
    with_targets_first,
)

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
RECIPES = load_all(ROOT / "recipes")


@pytest.mark.parametrize(("recipe", "scale"), [(n, s) for n, r in RECIPES.items() for s in r.spec["scales"]])
def test_every_recipe_is_planned_at_every_scale(recipe, scale, tmp_path, monkeypatch):
    monkeypatch.setattr("recipes.recipe.load_all", lambda: RECIPES)  # reading them is half of the time
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL}, dryrun=True)) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=1),
            config_settings=ConfigSettings(config={"scale": scale}),
            storage_settings=StorageSettings(),
            workdir=tmp_path,
            snakefile=_with_recipes(tmp_path),
        )
        dag = workflow.dag(dag_settings=DAGSettings(targets={recipe}, forceall=True))
        dag.execute_workflow(executor="dryrun")
        planned = {
            str(job.output[0])
            for job in workflow._workflow.dag.jobs
            if job.rule.name in ("train", "evaluate")
        }
    arms, seeds = graph.selection(RECIPES[recipe], scale, "report", None)
    assert planned == {graph.sentinel(n) for n in graph.grid(RECIPES, recipe, scale, arms, seeds)}


def test_wildcards_are_constrained(tmp_path):
    """A seed that is no number is no output of `train`, also where no command line was checked."""
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL}, dryrun=True)) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=1),
            config_settings=ConfigSettings(),
            storage_settings=StorageSettings(),
            workdir=tmp_path,
            snakefile=_with_recipes(tmp_path),
        )
        target = "results/r1_zero/cpu/base-recipe/seedX/grpo/metrics.json"
        dag = workflow.dag(dag_settings=DAGSettings(targets={target}))
        with pytest.raises(MissingRuleException):
            dag.execute_workflow(executor="dryrun")


def _with_recipes(folder: Path) -> Path:
    """The Snakefile in a folder of its own, so that no result of this repository plays a part."""
    (folder / "recipes").symlink_to(ROOT / "recipes")
    (folder / "Snakefile").write_text((ROOT / "Snakefile").read_text())
    return folder / "Snakefile"


def test_lint_finds_what_is_known():
    """Software is pinned in pyproject.toml, once for all rules, not in a conda environment for each."""
    done = subprocess.run(
        [BIN / "snakemake", "--lint"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    found = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.startswith("    * ")]
    assert set(found) == {"* Specify a conda environment or container for each rule.:"}


def test_snakefmt_is_content():
    subprocess.run([BIN / "snakefmt", "--check", "Snakefile"], cwd=ROOT, capture_output=True, check=True)


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
    assert command.arguments() is None
    monkeypatch.setattr(sys, "argv", ["/x/snakemake/__main__.py", "-n", "demo"])
    assert command.arguments().targets == ["demo"]
    assert not command.runs_jobs(command.arguments())
    assert command.runs_jobs(None)  # as a library: jobs may run, so the folder is held


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"scael": "cpu"}, '--config scael: unknown key; did you mean "scale"?'),
        ({"scale": "cqu"}, '--config scale: unknown scale "cqu"; did you mean "cpu"?'),
        ({"seeds": "none"}, "--config seeds: expected a whole number of at least 1, got none"),
        ({"seeds": 0}, "--config seeds: expected a whole number of at least 1, got 0"),
    ],
)
def test_choices_are_checked(demo, config, message):
    with pytest.raises(UserError) as error:
        command.choice(demo, config)
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
        ("train", "train: the rule of one job; ask for a recipe (base, demo) or a file"),
        ("results/demo/cpu/hot/seed0/sft/metrics.json", "base-recipe/seed0/sft/metrics.json; ask for that"),
    ],
)  # fmt: skip
def test_targets_are_checked(demo, target, message):
    with pytest.raises(UserError) as error:
        command.target_of(demo, command.Choice("cpu", None), target, "demo")
    assert str(error.value).endswith(message)


@pytest.mark.parametrize(
    ("target", "asked"),
    [
        ("all", [("demo", "cpu", "quickstart")]),
        ("demo", [("demo", "cpu", "report")]),
        ("everything", [("base", "cpu", "report"), ("demo", "cpu", "report")]),
        ("./results/demo/cpu/quickstart.html", [("demo", "cpu", "quickstart")]),
        ("results//demo/cpu/report/table.csv", [("demo", "cpu", "report")]),
        ("results/demo/cpu/hot/seed1/rl/metrics.json", [graph.Node("demo", "cpu", "hot", 1, "rl", "stage")]),
        ("results/demo/cpu/hot/seed1/evals/after.samples.jsonl",
         [graph.Node("demo", "cpu", "hot", 1, "after", "eval")]),
        ("results/benchmarks/grpo_speed.csv", []),
        ("results/benchmarks/grid_speed.csv", []),
        ("clean_checkpoints", []),
    ],
)  # fmt: skip
def test_what_a_target_asks_for(demo, target, asked):
    assert command.target_of(demo, command.Choice("cpu", None), target, "demo") == asked


def test_seeds_from_the_first_on_and_pinned_ones_are_targets(demo):
    recipes = demo | {"demo": Recipe("demo", demo["demo"].spec | {"first_seed": 5})}

    def seed_of(target: str) -> int:
        return command.target_of(recipes, command.Choice("cpu", None), target, "demo")[0].seed

    assert seed_of("results/demo/cpu/hot/seed6/rl/metrics.json") == 6
    assert seed_of("results/demo/cpu/base-recipe/seed0/evals/before.json") == 0  # of a pinned stage
    with pytest.raises(UserError, match="seeds are 5 to 6; ask for more"):
        seed_of("results/demo/cpu/hot/seed0/rl/metrics.json")


def test_quickstart_without_its_recipe(demo):
    with pytest.raises(UserError, match=r"recipes/r1_zero\.yaml: missing; the quickstart runs it"):
        command.target_of(demo, command.Choice("cpu", None), "all", "r1_zero")


def test_editing_one_arm_marks_its_results_alone(demo, project, monkeypatch):
    """Without any notes of Snakemake's: by what lies beside the results."""
    monkeypatch.chdir(project.folder)
    monkeypatch.setattr(redo, "_stale", lambda path, checked: None)
    monkeypatch.setattr(redo, "_remeasure", lambda recipes, node: None)
    run = Jobs(demo, command.Choice("cpu", None))
    asked = command.target_of(demo, run.choice, "demo", "demo")
    nodes, judgements = run.nodes(asked), run.judgements(asked)
    made = {Path(graph.sentinel(node)): graph.lineage(demo, node) for node in nodes}
    for path, made_from in (made | judgements).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        redo.record(path).write_text(made_from)
    assert redo.mark(demo, nodes, judgements) == []
    project.edit("demo", "{dial: 5}", "{dial: 6}")
    run = Jobs(load_all(project.folder / "recipes"), run.choice)
    lines = redo.mark(run.recipes, run.nodes(asked), run.judgements(asked))
    hot = [f"hot/seed{seed}/{file}" for seed in (0, 1) for file in ("rl/metrics.json", "evals/after.json")]
    assert lines == [
        f"results/demo/cpu/{file}: it was made from other settings; redoing it"
        for file in [*hot, "report/table.csv"]
    ]
    quickstart = command.target_of(demo, run.choice, "all", "demo")  # does not include the edited arm
    assert redo.mark(run.recipes, run.nodes(quickstart), run.judgements(quickstart)) == []


def test_unchanged_weights_are_not_read_again(demo, project, monkeypatch):
    """Twice the same size and time: taken as checked. Another time: found, though the size is the same."""
    monkeypatch.chdir(project.folder)
    node = graph.Node("base", "cpu", "base-recipe", 0, "pretrain", "stage")
    metrics, weights = Path(graph.sentinel(node)), Path("checkpoints/w/final/weights")
    for path in (metrics, weights):
        path.parent.mkdir(parents=True)
    weights.write_text("good")
    model = weights.parent
    sentinel.write_json(
        metrics,
        {"model": str(model), "digest": sentinel.digest(model), "files": sentinel.sizes(model), "inputs": {}},
    )
    redo.record(metrics).write_text(graph.lineage(demo, node))
    read: list[Path] = []
    digest = sentinel.digest
    monkeypatch.setattr(sentinel, "digest", lambda folder: read.append(folder) or digest(folder))
    assert redo.mark(demo, [node], {}) == redo.mark(demo, [node], {}) == []
    assert read == [model]
    weights.write_text("evil")
    os.utime(weights, ns=(1, 1))
    for _ in range(2):
        assert len(redo.mark(demo, [node], {})) == 1
        assert redo.marker(metrics).exists()
    redo.record(metrics).write_text("another lineage")
    assert redo.outdated(demo, node) == "it was made from other settings"
    redo.record(metrics).unlink()
    assert redo.outdated(demo, node) == "there is no record of what it was made from"


def test_unused_checkpoints(demo, tmp_path):
    node = graph.Node("demo", "cpu", "hot", 0, "rl", "stage")
    used = tmp_path / "demo/cpu/hot/seed0/rl" / graph.lineage(demo, node)[:12]
    old = [
        used.with_name("0" * 12),
        tmp_path / "gone/cpu/hot/seed0/rl/abc",
        tmp_path / "demo/cpu/gone/seed0/rl/abc",
    ]
    for path in (used, *old):
        path.mkdir(parents=True)
    assert clean.unused(demo, tmp_path) == sorted(old)


def test_clean_takes_the_folder_checkpoints_by_itself(demo, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["clean"])
    monkeypatch.setattr(clean, "load_all", lambda: demo)
    old = Path("checkpoints/gone/cpu/hot/seed0/rl/abc")
    old.mkdir(parents=True)
    assert clean.main() == 0
    assert not old.exists()
    assert capsys.readouterr().out == f"removed {old}\n1 checkpoint folders removed\n"


@pytest.fixture
def demo(project, monkeypatch):
    """The fixture's recipes, without the repository's world checks in the way."""
    toy = yaml.load((project.folder / "recipes/schema.yaml").read_text(), yaml.CSafeLoader)
    for reader in ("validate", "products"):
        monkeypatch.setattr(f"recipes.{reader}.schema", lambda: toy)
    return load_all(project.folder / "recipes")


def test_console_tells_start_end_and_the_log_of_a_failure(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("".join(f"line {i}\n" for i in range(100)))
    console = LogHandler(OutputSettings(), None)

    def lines(level: int = logging.INFO, **about) -> list[str]:
        record = logging.LogRecord("snakemake", level, "", 0, "text", (), None)
        record.__dict__.update(about)
        return console.lines(record)

    assert lines(event=LogEvent.JOB_INFO, jobid=3, rule_name="train", rule_msg="train x") == [
        "start  train x"
    ]
    assert lines(event=LogEvent.JOB_FINISHED, job_id=3) == ["end    train x   0:00"]
    failed = lines(logging.ERROR, event=LogEvent.JOB_ERROR, jobid=3, rule_name="train", log=[str(log)])
    assert failed[:2] == ["FAILED train x", f"       {log}, its end:"]
    assert (len(failed), failed[-1]) == (27, "         line 99")
    assert lines(logging.ERROR) == ["text"]
    assert lines() == []


def test_a_reason_of_many_files_is_short():
    reason = "Missing output files: a; Input files updated by another job: b, c, d, e, f"
    assert (
        shortened(reason) == "Missing output files: a; Input files updated by another job: b, c, d and 2 more"
    )
    assert shortened("Forced execution") == "Forced execution"
