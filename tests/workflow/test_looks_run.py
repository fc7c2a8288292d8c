"""`--config seeds=auto`: real runs of the real Snakefile from look to look, over stages that take no time.

In a project with few seeds a look, decided.json says what each look decides.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from encore.recipe.looks import path, read_look

ROOT = Path(__file__).parents[2]


@pytest.fixture
def few(project):
    project.edit_file("encore/recipe/looks.py", "LOOKS = (8, 16, 32)", "LOOKS = (1, 2, 3)")
    decides(project, {"1": ["hot-is-better"], "2": ["it-learns"]})
    return project


def decides(project, claims: dict[str, list[str]]) -> None:
    (project.folder / "decided.json").write_text(json.dumps(claims))


FIRST = sorted(
    ["base/cpu/base-recipe/seed0/pretrain", "base/cpu/other/seed0/pretrain", "look"]
    + [f"demo/cpu/base-recipe/seed0/{name}" for name in ("after", "before", "rl", "sft")]
    + [f"demo/cpu/other-base/seed0/{name}" for name in ("after", "before", "rl", "sft")]
    + [f"demo/cpu/hot/seed0/{name}" for name in ("after", "rl")]
)
SECOND = [f"demo/cpu/base-recipe/seed1/{name}" for name in ("after", "rl", "sft")] + ["look"]
THIRD = [f"demo/cpu/base-recipe/seed2/{name}" for name in ("after", "rl", "sft")] + ["look"]


@pytest.mark.slow
def test_one_command_goes_from_look_to_look_and_then_costs_nothing(few):
    auto = ("demo", "--config", "seeds=auto")
    dry = few.snakemake("-n", *auto)
    assert "would look at demo/cpu with 1 seeds" in dry.stdout
    assert "seed1" not in dry.stdout
    assert few.run(*auto) == sorted(FIRST + SECOND)  # hot is decided by the first, all by the second
    again = few.snakemake(*auto)
    assert "Nothing to be done" in again.stderr
    assert again.stdout.splitlines() == ["summary of demo report seeds=auto", "results/demo/cpu/report.html"]
    assert few.run("-n", *auto) == few.run(*auto) == []

    decides(few, {"1": ["hot-is-better"]})  # told otherwise, and judged by another margin: one look more
    few.edit("demo", "margin: 0.1", "margin: 0.2")
    assert few.run(*auto) == sorted(["look", "look", *THIRD])
    for lost, again in ((1, 3), (3, 1)):
        (few.folder / f"results/demo/cpu/looks/{lost}.json").unlink()
        assert few.run(*auto) == ["look"] * again
    few.edit("demo", "{dial: 5}", "{dial: 6}")  # an arm that was stopped: its one seed, and what judges it
    hot = [f"demo/cpu/hot/seed0/{name}" for name in ("after", "rl")]
    assert few.run(*auto) == sorted([*hot, "look", "look", "look"])
    assert few.run(*auto) == []


@pytest.mark.slow
def test_looks_are_judged_by_their_seeds(project):
    """The planned looks and the analysis as they are; only training and evaluation are stand-ins."""
    report = project.folder / "analysis/report.py"
    stand_in = report.read_text()
    shutil.copytree(ROOT / "analysis", project.folder / "analysis", dirs_exist_ok=True)
    for name in ("best_of_n.py", "metrics.py", "passk.py"):
        shutil.copy(ROOT / "evals" / name, project.folder / "evals")
    report.write_text(stand_in)  # the real one would draw figures for a minute
    (project.folder / "jobs.txt").write_text("")
    done = project.snakemake("demo", "--config", "seeds=auto", timeout=500)
    assert done.returncode == 0, done.stderr
    jobs = (project.folder / "jobs.txt").read_text()
    trained = {arm: jobs.count(f"demo/cpu/{arm}/seed") for arm in ("base-recipe", "hot", "other-base")}
    # sft, rl and after of a seed, hot with the base's sft; before once
    assert trained == {"base-recipe": 3 * 32 + 1, "hot": 2 * 8, "other-base": 3 * 8 + 1}
    taken = [read_look(project.folder / path("demo", "cpu", look)) for look in (8, 16, 32)]
    assert [look.open for look in taken] == [["it-learns"]] * 3
    assert [look.arms for look in taken] == [["base-recipe"]] * 3
    assert {look.verdicts["hot-is-better"] for look in taken} == {"shown"}
    assert "look at 8 seeds: 1 of 2 claims decided; more seeds for base-recipe" in done.stdout
    assert project.run("demo", "--config", "seeds=auto") == []


@pytest.mark.fault(
    "kill -9 of Snakemake and all its jobs",
    "between and in the looks of seeds=auto",
    "the same command goes on",
)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("begun", "left"),
    [
        ("demo/cpu/base-recipe/seed0/sft from 0", FIRST[1:] + SECOND),  # in the first look: some may be done
        ("demo/cpu/base-recipe/seed1/rl from 0", [one for one in SECOND if not one.endswith("sft")]),
        ("look at 2", ["look"]),
    ],
)
def test_a_killed_run_goes_on_with_the_same_command(few, begun, left):
    auto = ("demo", "--config", "seeds=auto")
    _run_until(few, begun, *auto)
    again = few.run(*auto)
    assert set(again) <= set(left)
    assert again.count("look") == left.count("look")
    assert few.run(*auto) == []


@pytest.mark.slow
def test_recipes_go_from_look_to_look_side_by_side(few):
    """The plan of one grows while jobs of the other run."""
    text = (few.folder / "recipes/demo.yaml").read_text()
    (few.folder / "recipes/other.yaml").write_text(text.replace("seeds: 2", "seeds: 2\nfirst_seed: 7"))
    done = few.run("everything", "--config", "seeds=auto", TOY_SLEEP="0.05")
    assert sorted(one for one in done if "other/cpu/" not in one) == sorted(["look"] * 2 + FIRST + SECOND)
    assert {one.split("/")[3] for one in done if one.startswith("other/cpu/base-recipe")} == {
        "seed0",  # the evaluation of the base, one for all seeds
        "seed7",
        "seed8",
    }
    for name in ("demo", "other"):  # base claims nothing
        assert (few.folder / f"results/{name}/cpu/report.html").exists()
    assert few.run("everything", "--config", "seeds=auto") == []


@pytest.mark.slow
def test_a_failed_arm_stops_the_look_and_goes_on_when_mended(few):
    few.edit("demo", "{dial: 5}", "{dial: 13}")
    done = few.snakemake("demo", "--config", "seeds=auto")
    assert done.returncode == 1
    assert "unlucky dial" in done.stderr
    assert not list((few.folder / "results/demo/cpu/looks").glob("*.json"))
    few.edit("demo", "{dial: 13}", "{dial: 5}")
    hot = [f"demo/cpu/hot/seed0/{name}" for name in ("after", "rl")]
    assert few.run("demo", "--config", "seeds=auto") == sorted([*hot, "look", *SECOND])
    stage = "demo/cpu/base-recipe/seed0/rl"  # its weights are lost
    model = json.loads((few.folder / "results" / stage / "metrics.json").read_text())["model"]
    shutil.rmtree(few.folder / model)
    # Snakemake finds the second look's inputs to be what they were
    assert few.run("demo", "--config", "seeds=auto") == [stage, "look"]
    assert few.run("demo", "--config", "seeds=auto") == []


@pytest.mark.slow
def test_what_ran_with_a_fixed_number_of_seeds_is_kept(few):
    few.run("demo")  # two seeds of every arm
    shutil.rmtree(few.folder / ".snakemake")
    few.edit(
        "demo",
        "rl: {run: toy, needs: {policy: sft}, dial: 1}",
        "rl: {run: toy, needs: {policy: sft}, dial: 2}",
    )
    dry = few.snakemake("-n", "demo", "--config", "seeds=auto")
    assert "would look at demo/cpu with 1 seeds" in dry.stdout
    edited = [("base-recipe", 0), ("base-recipe", 1), ("other-base", 0)]  # not what no look asked for
    redone = [f"demo/cpu/{arm}/seed{seed}/{name}" for arm, seed in edited for name in ("after", "rl")]
    assert few.run("demo", "--config", "seeds=auto") == sorted([*redone, "look", "look"])
    summary = few.folder / "results/demo/cpu/report/summary.txt"
    assert summary.read_text() == "summary of demo report seeds=auto\n"
    assert few.run("demo") == [f"demo/cpu/other-base/seed1/{name}" for name in ("after", "rl")]
    assert summary.read_text() == "summary of demo report seeds=2\n"
    assert few.run("demo", "--config", "seeds=auto") == []
    assert summary.read_text() == "summary of demo report seeds=auto\n"


@pytest.mark.slow
def test_jobs_of_their_own_process_find_the_looks(few):
    """As a cluster's jobs are started: by another snakemake, in mode remote."""
    few.run("demo", "--config", "seeds=auto")
    table = few.folder / "results/demo/cpu/report/table.csv"
    table.unlink()
    (few.folder / "jobs.txt").write_text("")
    remote = ["--mode", "remote", "--force", "--allowed-rules", "report", "--config", "seeds=auto"]
    wildcards = "recipe=demo,scale=cpu,report=report"
    done = few.snakemake("--target-jobs", f"report:{wildcards}", *remote)
    assert done.returncode == 0, done.stderr
    assert table.read_text() == "summary of demo report seeds=auto\n"
    look = few.folder / "results/demo/cpu/looks/2.json"
    look.unlink()
    remote[4] = "look"
    done = few.snakemake("--target-jobs", "look:recipe=demo,scale=cpu,look=2", *remote)
    assert done.returncode == 0, done.stderr
    assert (few.folder / "jobs.txt").read_text() == "look at 2\n"
    (few.folder / "results/demo/cpu/base-recipe/seed1/rl/metrics.json").unlink()
    remote[4] = "train"
    done = few.snakemake(
        "--target-jobs", "train:recipe=demo,scale=cpu,arm=base-recipe,seed=1,stage=rl", *remote
    )
    assert done.returncode == 0, done.stderr
    assert (few.folder / "jobs.txt").read_text().splitlines()[1:] == [
        "demo/cpu/base-recipe/seed1/rl from 2 OMP=1"
    ]


def _run_until(project, line: str, *arguments: str) -> None:
    """Run and kill, with all its children, when this line is among the jobs begun."""
    (project.folder / "jobs.txt").write_text("")
    environment = os.environ | {
        "TOY_SLEEP": "0.3",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run = subprocess.Popen(
        project.command(*arguments), cwd=project.folder, env=environment, start_new_session=True, **quiet
    )
    end = time.monotonic() + 60
    while line not in (project.folder / "jobs.txt").read_text():
        assert time.monotonic() < end, "timed out"
        assert run.poll() is None
        time.sleep(0.02)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
