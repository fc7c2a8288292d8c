"""Real runs of the real Snakefile over stages that take no time: what is redone after each kind of change."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BASE = "base/cpu/base-recipe/seed0/pretrain"


@pytest.mark.fault(
    ".snakemake is lost", "between two runs", "what a recipe's change asks for is made again, nothing else"
)
@pytest.mark.slow
def test_editing_one_arm_redoes_its_stages_alone(project):
    """Also where Snakemake's own notes are lost; nothing but the line on what is requested."""
    assert len(project.run()) == 5  # the quickstart: one arm, one seed
    shutil.rmtree(project.folder / ".snakemake")
    project.edit(
        "demo",
        "rl: {run: toy, needs: {policy: sft}, dial: 1}",
        "rl: {run: toy, needs: {policy: sft}, dial: 2}",
    )
    assert project.run() == ["demo/cpu/base-recipe/seed0/after", "demo/cpu/base-recipe/seed0/rl"]
    assert list((project.folder / "results").rglob("*.stale"))  # until the next start
    again = project.snakemake()
    assert again.stdout.splitlines()[-2:] == [
        "summary of demo quickstart seeds=1",
        "results/demo/cpu/quickstart.html",
    ]
    assert "Nothing to be done" in again.stderr
    assert "redoing" not in again.stderr


@pytest.mark.slow
def test_a_tracker_is_told_to_new_stages_and_is_no_reason_to_redo_one(project, tmp_path_factory):
    package = tmp_path_factory.mktemp("packages") / "wandb/__init__.py"
    package.parent.mkdir()
    package.touch()
    search = os.pathsep.join([str(package.parents[1]), os.environ.get("PYTHONPATH", "")])
    tracks = project.folder / "tracks.txt"
    project.run()
    assert {*tracks.read_text().split()} == {"none"}
    tracks.unlink()
    assert project.run("--config", "track=wandb", PYTHONPATH=search) == []
    assert project.run("demo", "--config", "track=wandb", PYTHONPATH=search)
    assert {*tracks.read_text().split()} == {"wandb"}
    assert project.run("demo") == []


@pytest.mark.slow
def test_evaluations_within_a_stage_are_jobs(project):
    rl = "rl: {run: toy, needs: {policy: sft}, dial: 1"
    project.edit("demo", f"{rl}}}", f"{rl}, evaluate_every: 2, args: {{max_steps: 5}}}}")
    done = project.snakemake("-n")
    planned = {line.split()[2] for line in done.stdout.splitlines() if line.startswith("would evaluate")}
    names = ("before", "after", "after_step2", "after_step4")
    assert planned == {f"demo/cpu/base-recipe/seed0/{name}" for name in names}


@pytest.mark.slow
def test_without_snakemakes_notes_an_edited_claim_is_judged_again(project):
    project.run()
    summary = project.folder / "results/demo/cpu/quickstart/summary.txt"
    page = project.folder / "results/demo/cpu/quickstart.html"
    before = summary.stat().st_mtime_ns
    shutil.rmtree(project.folder / ".snakemake")
    assert project.run() == []
    assert summary.stat().st_mtime_ns == before
    project.edit("demo", "margin: 0.1", "margin: 0.2")
    done = project.snakemake()
    assert "quickstart/table.csv: it was made from other settings; redoing it" in done.stderr
    assert summary.stat().st_mtime_ns > before
    assert page.stat().st_mtime_ns > before
    after = summary.stat().st_mtime_ns
    assert project.run() == []
    assert summary.stat().st_mtime_ns == after


@pytest.mark.fault(
    "modification times are in any order: a copy, a clock that jumped",
    "results/, with and without .snakemake",
    "nothing is made again",
)
@pytest.mark.slow
@pytest.mark.parametrize("notes", [True, False], ids=["with .snakemake", "without"])
def test_a_copy_with_its_times_in_any_order_is_up_to_date(project, notes):
    """As `cp -r` writes them: nothing is trained or evaluated again."""
    project.run()
    if not notes:
        shutil.rmtree(project.folder / ".snakemake")
    files = sorted((project.folder / "results").rglob("*"), reverse=True)  # newest: the first
    for number, file in enumerate(file for file in files if file.is_file()):
        os.utime(file, (1e9 + number, 1e9 + number))
    assert project.run() == []


@pytest.mark.slow
def test_quickstart_then_nothing_then_each_change(project):
    """One folder lived in for a while, for each snakemake costs a second."""
    main = [f"demo/cpu/base-recipe/seed0/{name}" for name in ("after", "before", "rl", "sft")]
    assert project.run() == [BASE, *main]
    assert (project.folder / "results/demo/cpu/quickstart.html").exists()

    project.edit("demo", "title: Demo", "# a comment\ntitle: Demo")
    assert project.run() == []  # a comment changes nothing

    everything = project.run("demo")  # the other arms, the second seed: only what is new
    assert everything == sorted(
        ["base/cpu/other/seed0/pretrain"]
        + ["demo/cpu/other-base/seed0/before"]  # the base is one model for all seeds, so is its evaluation
        + [f"demo/cpu/base-recipe/seed1/{name}" for name in ("after", "rl", "sft")]
        + [f"demo/cpu/hot/seed{seed}/{name}" for seed in (0, 1) for name in ("after", "rl")]
        + [f"demo/cpu/other-base/seed{seed}/{name}" for seed in (0, 1) for name in ("after", "rl", "sft")]
    )

    project.edit("demo", "{dial: 5}", "{dial: 6}")
    assert project.run("demo") == [f"demo/cpu/hot/seed{s}/{n}" for s in (0, 1) for n in ("after", "rl")]

    added = project.run("demo", "--config", "seeds=3")  # one more seed trains that seed alone
    assert added
    assert all("/seed2/" in name for name in added)

    report = project.folder / "results/demo/cpu/report/summary.txt"
    before = report.stat().st_mtime_ns
    project.edit("demo", "margin: 0.1", "margin: 0.2")
    assert project.run("demo", "--config", "seeds=3") == []  # another claim: judged anew, nothing trained
    assert report.stat().st_mtime_ns > before


@pytest.mark.slow
def test_jobs_of_a_run_are_forked_from_one_process_that_starts_with_the_first(project):
    loads = project.folder / "loads.txt"
    project.snakemake("-n")
    assert not loads.exists()
    assert len(project.run()) == 5
    assert len(loads.read_text().splitlines()) == 1
    assert project.run() == []
    assert len(loads.read_text().splitlines()) == 1
    assert not Path(f"/proc/{loads.read_text().strip()}").exists()
    project.edit("demo", "{dial: 5}", "{dial: 6}")
    project.run("demo", ENCORE_WARM="off")
    assert len(loads.read_text().splitlines()) == 1


@pytest.mark.fault(
    "weights are lost or damaged", "checkpoints/", "told in one line; that stage is made again, no other"
)
@pytest.mark.slow
def test_lost_or_damaged_weights_redo_their_stage_alone(project):
    project.run()
    metrics = project.folder / "results" / BASE / "metrics.json"
    model = project.folder / json.loads(metrics.read_text())["model"]
    for harm in (lambda: shutil.rmtree(model), lambda: (model / "weights.json").write_text("garbage")):
        harm()
        done = project.snakemake("--dry-run")
        assert f"{metrics.relative_to(project.folder)}: its model" in done.stderr
        assert project.run() == [BASE]
        assert project.run() == []
    metrics.unlink()
    assert project.run() == []  # nobody asks for it, as with make
    project.edit("demo", "margin: 0.1", "margin: 0.2")
    assert project.run() == [BASE]  # the new report does
    assert project.run() == []


@pytest.mark.slow
def test_changed_checkpoint_is_evaluated_again(project):
    project.run()
    path = project.folder / "results/demo/cpu/base-recipe/seed0/evals/after.json"
    path.write_text(path.read_text().replace("sha256:", "sha256:0"))
    assert project.run() == ["demo/cpu/base-recipe/seed0/after"]


@pytest.mark.fault(
    "kill -9 of Snakemake and all its jobs",
    "in training",
    "no lock is left; the same command goes on from the checkpoint",
)
@pytest.mark.slow
def test_killed_run_goes_on_with_the_same_command(project):
    environment = os.environ | {
        "TOY_SLEEP": "2",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    run = subprocess.Popen(project.command(), cwd=project.folder, env=environment, start_new_session=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    state = project.folder / "checkpoints"
    _wait(lambda: [p for p in state.rglob("state.json") if p.read_text() == "1"], 60)
    os.killpg(run.pid, signal.SIGSTOP)  # so that it is still in that stage when it is killed
    second = project.snakemake("--config", "seeds=1")
    assert second.returncode == 2
    assert (
        project.error(second)
        == f"error: another snakemake (process {run.pid}) runs in this folder; wait for it"
    )
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    project.run()
    begun = (project.folder / "jobs.txt").read_text().splitlines()[0]
    assert begun.startswith(BASE)
    assert "from 0" not in begun  # resumed


@pytest.mark.fault("a stage fails", "one arm of several", "the end of its log is shown; the other arms go on")
@pytest.mark.slow
def test_failed_stage_shows_its_log_and_leaves_the_other_arms_alone(project):
    project.edit("demo", "{dial: 5}", "{dial: 13}")
    done = project.snakemake("demo")
    assert done.returncode == 1
    assert "unlucky dial" in done.stderr  # the end of the log
    assert (project.folder / "results/demo/cpu/other-base/seed1/evals/after.json").exists()
    project.edit("demo", "{dial: 13}", "{dial: 5}")
    assert project.run("demo") == [f"demo/cpu/hot/seed{s}/{n}" for s in (0, 1) for n in ("after", "rl")]


@pytest.mark.slow
def test_python_m_snakemake_is_snakemake(project):
    done = subprocess.run([sys.executable, "-m", "snakemake", "dmo"], cwd=project.folder,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 2
    assert project.error(done) == 'error: no target or recipe "dmo"; did you mean "demo"?'


@pytest.mark.fault("a recipe is half written", "recipes/", "a warning; the others run")
@pytest.mark.slow
def test_a_half_written_recipe_stops_no_other(project):
    (project.folder / "recipes/draft.yaml").write_text("title: [")
    done = project.snakemake("-n", "demo")
    assert done.returncode == 0
    assert "warning: recipes/draft.yaml: line 2" in done.stderr
    done = project.snakemake("-n", "draft")
    assert done.returncode == 2
    assert "error: recipes/draft.yaml: line 2" in done.stderr


@pytest.mark.fault(
    "the analysis fails",
    "after all stages",
    "made again by the same command; no page of before is shown as its own",
)
@pytest.mark.slow
def test_a_failed_analysis_is_made_again_by_the_same_command(project):
    """The page of before is no result of the recipe as it is now."""
    project.run("demo")
    project.edit("demo", "{dial: 5}", "{dial: 6}")
    report = project.folder / "analysis/report.py"
    text = report.read_text()
    report.write_text("raise SystemExit(1)")
    assert project.snakemake("demo").returncode == 1
    report.write_text(text)
    done = project.snakemake("demo")
    assert done.returncode == 0, done.stderr
    assert (project.folder / "results/demo/cpu/report/table.csv").exists()
    assert "Nothing to be done" not in done.stderr


def _wait(condition, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)
