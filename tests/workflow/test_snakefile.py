"""The Snakefile itself: planned over the real recipes, linted, formatted; what is redone, and its console."""

import logging
import os
import shutil
import sys
from argparse import Namespace
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from papers import GRAPH, RECIPES
from snakemake.exceptions import MissingRuleException
from snakemake.settings.types import DAGSettings, OutputSettings
from snakemake_interface_logger_plugins.common import LogEvent

from encore import validity
from encore.errors import UserError
from encore.recipe.graph import Graph, Node
from encore.recipe.load import load_all
from encore.recipe.machine import Resources
from encore.runtime import digests, files, sentinel
from encore.workflow import clean, marks, resources, start, targets
from encore.workflow.console import show_failure
from encore.workflow.jobs import Jobs
from snakemake_logger_plugin_encore import (
    LogHandler,
    shortened,
)
from snakemake_logger_plugin_encore.left import said, seconds_left


@pytest.mark.slow
@pytest.mark.parametrize("scale", sorted({scale for recipe in RECIPES.values() for scale in recipe.scales}))
def test_every_recipe_is_planned_at_every_scale(scale, open_workflow, monkeypatch):
    """For two seeds: more are planned as the second is."""
    monkeypatch.setattr(start, "load_sound", lambda user_file: (RECIPES, {}))  # they are read once, for all
    recipes = {name for name, recipe in RECIPES.items() if scale in recipe.scales}
    workflow = open_workflow(scale=scale, seeds=2)
    dag = workflow.dag(dag_settings=DAGSettings(targets=recipes, forceall=True))
    dag.execute_workflow(executor="dryrun")
    planned = {
        str(job.output[0]) for job in workflow._workflow.dag.jobs if job.rule.name in ("train", "evaluate")
    }
    chosen = {name: RECIPES[name].selection(scale, "report", 2) for name in recipes}
    assert planned == {
        n.sentinel for name, (arms, seeds) in chosen.items() for n in GRAPH.grid(name, scale, arms, seeds)
    }


@pytest.mark.parametrize(
    ("place", "mistake"),
    [
        ("base-recipe/seed1/evals/after_sensitivity_hf", None),
        ("base-recipe/seed1/evals/before_sensitivity_lean", None),  # of the base model
        ("base-recipe/seed0/evals/before_sensitivity_lean", "seeds are 1 to 16"),
        ("base-recipe/seed1/evals/after_sensitivity_vllm", "unknown checkpoint"),
        ("random/seed1/evals/after_sensitivity_hf", "unknown checkpoint"),
    ],
)
def test_an_evaluation_of_sensitivity_can_be_asked_for_where_there_is_one(place, mistake):
    target = f"results/r1_zero/cpu/{place}.json"
    with pytest.raises(UserError, match=mistake) if mistake else nullcontext():
        (node,) = targets.target_of(GRAPH, targets.Choice("cpu", None), target, "r1_zero")
        assert node.sentinel == target
        assert [one.name for one in GRAPH.inputs(node).values()] == [GRAPH.inputs(node)["model"].name]


@pytest.mark.slow
def test_wildcards_are_constrained(open_workflow):
    """A seed that is no number is no output of `train`, also where no command line was checked."""
    target = "results/r1_zero/cpu/base-recipe/seedX/grpo/metrics.json"
    dag = open_workflow().dag(dag_settings=DAGSettings(targets={target}))
    with pytest.raises(MissingRuleException):
        dag.execute_workflow(executor="dryrun")


@pytest.mark.slow
@pytest.mark.parametrize("config", [{}, {"seeds": "auto"}])
def test_lint_finds_what_is_known(config, open_workflow, caplog):
    """Software is pinned in pyproject.toml, once for all rules, not in a conda environment for each."""
    assert open_workflow(**config).lint()
    found = [line.strip() for line in caplog.text.splitlines() if line.startswith("    * ")]
    assert set(found) == {"* Specify a conda environment or container for each rule.:"}


def test_editing_one_arm_marks_its_results_alone(demo, project, monkeypatch):
    """Without any notes of Snakemake's: by what lies beside the results."""
    monkeypatch.chdir(project.folder)
    monkeypatch.setattr(validity, "of_stage", lambda path, of_file, stored: None)
    monkeypatch.setattr(validity, "of_evaluation", lambda recipes, node: None)
    run = Jobs(demo, targets.Choice("cpu", None))
    asked = targets.target_of(demo, run.choice, "demo", "demo")
    nodes, judgements = run.nodes(asked), run.judgements(asked)
    made = {Path(node.sentinel): demo.lineage(node) for node in nodes}
    for path, made_from in (made | judgements).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        digests.record(path).write_text(made_from)
    assert marks.mark(demo, nodes, judgements) == []
    project.edit("demo", "{dial: 5}", "{dial: 6}")
    run = Jobs(Graph(load_all(project.folder / "recipes")), run.choice)
    lines = marks.mark(run.graph, run.nodes(asked), run.judgements(asked))
    hot = [f"hot/seed{seed}/{file}" for seed in (0, 1) for file in ("rl/metrics.json", "evals/after.json")]
    assert lines == [
        f"results/demo/cpu/{file}: it was made from other settings; redoing it"
        for file in [*hot, "report/table.csv"]
    ]
    quickstart = targets.target_of(demo, run.choice, "all", "demo")  # does not include the edited arm
    assert marks.mark(run.graph, run.nodes(quickstart), run.judgements(quickstart)) == []


def test_a_page_whose_tables_are_gone_is_made_again(demo, project, monkeypatch):
    """As after an analysis that was killed: Snakemake has removed its tables, the page of before is there."""
    monkeypatch.chdir(project.folder)
    run = Jobs(demo, targets.Choice("cpu", None))
    (report,) = targets.target_of(demo, run.choice, "demo", "demo")
    report.folder.mkdir(parents=True)
    report.page.write_text("")
    lines = marks.mark(demo, [], {report.table: "judged"})
    assert lines == [f"{report.page}: its tables are gone; redoing it"]
    assert marks.markers(report.page)
    report.table.write_text("")
    digests.record(report.table).write_text("judged")
    assert marks.mark(demo, [], {report.table: "judged"}) == []
    assert not marks.markers(report.page)


@pytest.mark.parametrize(
    ("targets_of", "stops"),
    [
        (["demo"], False),
        (["draft"], True),
        (["everything"], True),
        ([], False),
        (["results/draft/cpu/report.html"], True),
    ],
)
def test_a_mistake_stops_those_who_ask_for_its_recipe_alone(targets_of, stops):
    broken = {"draft": UserError("recipes/draft.yaml: a mistake")}
    arguments = Namespace(targets=targets_of)
    with pytest.raises(UserError, match="draft") if stops else nullcontext():
        targets.check_sound(broken, arguments, "demo")


def test_memory_grows_with_the_gpus(monkeypatch):
    asked, stage = {}, {}
    monkeypatch.setattr(Graph, "resources", lambda self, node: Resources(**asked))
    monkeypatch.setattr(Graph, "stage", lambda self, node: SimpleNamespace(serving=stage.get("serving", 0)))
    gpus, serving, memory, minutes = (
        resources.of_job(Graph({}), lambda node: node)[name]
        for name in ("gpu", "vllm_gpu", "mem_mb", "runtime")
    )
    training, evaluation = (Node("r", "cpu", "a", 0, "grpo", kind) for kind in ("stage", "eval"))
    assert memory(training) == 4000
    asked["gpu"] = 8
    assert memory(training) == memory(evaluation) == 516_000
    stage["serving"] = 2
    assert (gpus(training), serving(training), memory(training)) == (10, 2, 644_000)
    assert (gpus(evaluation), serving(evaluation), memory(evaluation)) == (8, 0, 516_000)
    asked["mem_mb"] = 9000
    assert [memory(training, attempt=n) for n in (1, 2, 3)] == [9000, 13_500, 18_000]
    asked["runtime"] = 1000
    assert [minutes(training, attempt=n) for n in (1, 2, 3)] == [1000, 2000, 2880]


def test_unchanged_weights_are_not_read_again(demo, project, monkeypatch):
    """Twice the same size and times: taken as checked. Another content: found, though size and time are the
    same again."""
    monkeypatch.chdir(project.folder)
    monkeypatch.setattr(validity, "SETTLED", 0)
    node = Node("base", "cpu", "base-recipe", 0, "pretrain", "stage")
    metrics, weights = Path(node.sentinel), Path("checkpoints/w/final/weights")
    for path in (metrics, weights):
        path.parent.mkdir(parents=True)
    weights.write_text("good")
    model = weights.parent
    files.write_json(
        metrics,
        {"model": str(model), "digest": sentinel.digest(model), "files": sentinel.sizes(model), "inputs": {}},
    )
    digests.record(metrics).write_text(demo.lineage(node))
    read: list[Path] = []
    digest = digests.of_file
    monkeypatch.setattr(digests, "of_file", lambda file: read.append(file) or digest(file))
    assert marks.mark(demo, [node], {}) == marks.mark(demo, [node], {}) == []
    assert sorted(read) == [weights, metrics]
    before = weights.stat().st_mtime_ns
    weights.write_text("evil")
    os.utime(weights, ns=(before, before))
    for _ in range(2):
        assert len(marks.mark(demo, [node], {})) == 1
        assert marks.marker(metrics).exists()
    digests.record(metrics).write_text("another lineage")
    assert validity.unlike(metrics, demo.lineage(node)) == "it was made from other settings"
    digests.record(metrics).unlink()
    assert validity.unlike(metrics, demo.lineage(node)) == "there is no record of what it was made from"


def test_unused_checkpoints(demo, tmp_path):
    node = Node("demo", "cpu", "hot", 0, "rl", "stage")
    used = tmp_path / "demo/cpu/hot/seed0/rl" / demo.lineage(node)[:12]
    old = [
        used.with_name("0" * 12),
        tmp_path / "gone/cpu/hot/seed0/rl/abc",
        tmp_path / "demo/cpu/gone/seed0/rl/abc",
    ]
    for path in (used, *old):
        path.mkdir(parents=True)
    assert clean.unused(demo, tmp_path) == sorted(old)
    (old[0] / "weights").write_bytes(b"0" * 12_000_000)
    (used / "weights").write_bytes(b"0" * 12_000_000)
    line = f"no recipe leads to 3 folders in {tmp_path}, 0.012 GB"
    assert clean.told(demo, tmp_path) == f"{line}; snakemake --cores clean_checkpoints removes them"
    (tmp_path / "gone" / clean.NOTE).write_text("/home/someone/gone.yaml\n")
    assert "2 folders" in str(clean.told(demo, tmp_path))
    for path in old:
        shutil.rmtree(path)
    assert clean.told(demo, tmp_path) is None


def test_clean_takes_the_folder_checkpoints_by_itself(demo, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["clean"])
    monkeypatch.setattr(clean, "load_all", lambda: demo.recipes)
    old = Path("checkpoints/gone/cpu/hot/seed0/rl/abc")
    old.mkdir(parents=True)
    assert clean.main() == 0
    assert not old.exists()
    assert capsys.readouterr().out == f"removed {old}\n1 checkpoint folders removed\n"


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
    record = logging.LogRecord(
        "snakemake", logging.ERROR, "", 0, "Exiting because a job execution failed.", (), None
    )
    assert console.lines(record) == ["FAILED in all:", f"       train x: {log}"]


def test_console_says_how_long_the_run_will_yet_take(tmp_path, monkeypatch):
    """Jobs took twice their plan, two at a time: of the 100 planned seconds that are left 100 more pass."""
    planned = {"train a": 50.0, "train b": 50.0, "evaluate c": 60.0, "evaluate d": 40.0}
    took = {"train a": 100.0, "train b": 100.0}
    assert seconds_left(planned, took, {}, 100.0) == pytest.approx(100.0)
    assert seconds_left(planned, took, {"evaluate c": 60.0}, 130.0) == pytest.approx(140.0 / 2)
    assert seconds_left(planned, {}, {"train a": 3.0}, 3.0) is None  # nothing says how long they take
    assert seconds_left(planned, dict.fromkeys(planned, 1.0), {}, 9.0) is None  # nothing is left
    assert (said(20), said(1500), said(9000)) == (
        "about a minute left", "about 25 minutes left", "about 2.5 hours left"
    )  # fmt: skip
    monkeypatch.chdir(tmp_path)
    console = LogHandler(OutputSettings(), None)
    console.done, console.began = dict.fromkeys(planned, 1.0), console.began - 4
    files.write_json(Path("planned.json"), {**planned, "train e": 4000.0})
    monkeypatch.setattr("snakemake_logger_plugin_encore.PLANNED", Path("planned.json"))
    record = logging.LogRecord("snakemake", logging.INFO, "", 0, "", (), None)
    record.__dict__.update(event=LogEvent.PROGRESS, done=4, total=5)
    assert console.lines(record) == ["       4 of 5 jobs done, about a minute left"]
    os.utime("planned.json", (0, 0))  # of another run
    assert console.lines(record) == ["       4 of 5 jobs done"]


def test_each_line_on_the_console_is_one_write(monkeypatch):
    """The log has a thread of its own, whose lines else fall between another line's text and its end."""
    writes: list[str] = []
    stream = SimpleNamespace(write=writes.append, flush=lambda: None)
    monkeypatch.setattr(sys, "stderr", stream)
    console = LogHandler(OutputSettings(), None)
    console.emit(logging.LogRecord("snakemake", logging.ERROR, "", 0, "text", (), None))
    show_failure()
    assert writes == ["text\n", "The same command goes on from here.\n"]


def test_a_reason_of_many_files_is_short():
    reason = "Missing output files: a; Input files updated by another job: b, c, d, e, f"
    assert (
        shortened(reason) == "Missing output files: a; Input files updated by another job: b, c, d and 2 more"
    )
    assert shortened("Forced execution") == "Forced execution"
