"""The Snakefile itself: planned over the real recipes, linted, formatted; its command line and console."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest
from snakemake.api import SnakemakeApi
from snakemake.settings.types import (
    ConfigSettings,
    DAGSettings,
    OutputSettings,
    Quietness,
    ResourceSettings,
    StorageSettings,
)
from snakemake_interface_logger_plugins.common import LogEvent

from recipes import clean, command, graph
from recipes.errors import UserError
from recipes.recipe import load_all
from snakemake_logger_plugin_encore import LogHandler, with_cores

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
RULES = ["all", "everything", "train"]


@pytest.mark.parametrize(
    ("recipe", "scale"), [(n, s) for n, r in load_all(ROOT / "recipes").items() for s in r.spec["scales"]]
)
def test_every_recipe_is_planned_at_every_scale(recipe, scale, tmp_path):
    recipes = load_all(ROOT / "recipes")
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
    arms, seeds = graph.selection(recipes[recipe], scale, "report", None)
    assert planned == {graph.sentinel(n) for n in graph.grid(recipes, recipe, scale, arms, seeds)}


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
        ("results/demo/cpu/hot/seed0/sft/metrics.json", "base-recipe/seed0/sft/metrics.json; ask for that"),
    ],
)
def test_targets_are_checked(demo, target, message):
    with pytest.raises(UserError) as error:
        command.check_target(demo, command.Choice("cpu", None), target, [*demo, *RULES])
    assert str(error.value).endswith(message)


def test_good_targets_pass(demo):
    files = ["quickstart.html", "report/table.csv", "hot/seed1/rl/metrics.json", "hot/seed1/evals/after.json"]
    for target in ["demo", "everything", *(f"results/demo/cpu/{file}" for file in files)]:
        command.check_target(demo, command.Choice("cpu", None), target, [*demo, *RULES])


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


@pytest.fixture
def demo(project, monkeypatch):
    """The fixture's recipes, without the repository's world checks in the way."""
    monkeypatch.setattr("recipes.validate.schema", lambda: _toy_schema(project.folder))
    return load_all(project.folder / "recipes")


def _toy_schema(folder: Path) -> dict:
    import yaml

    return yaml.safe_load((folder / "recipes/schema.yaml").read_text())


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
