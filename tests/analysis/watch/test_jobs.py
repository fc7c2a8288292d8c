"""Which jobs a folder of results has, by what they left, and which were planned."""

import shutil

import pytest
import watched_run

from analysis.watch import jobs


@pytest.fixture
def root(tmp_path):
    watched_run.make(tmp_path)
    return tmp_path


def test_jobs_are_found_by_what_they_left(root):
    there = jobs.on_disk(root / "results", ())
    assert {(job.arm, job.seed): made.done for job, made in there.items()} == {
        ("a", 0): True, ("a", 1): False, ("base-recipe", 0): False,
    }  # fmt: skip
    assert jobs.on_disk(root / "results", ["another"]) == {}


def test_a_result_that_is_marked_to_be_made_again_is_not_there(root):
    marker = root / "results/toy/cpu/a/seed0/grpo/metrics.stale"
    marker.write_text("changed")
    assert ("a", 0) not in {(job.arm, job.seed) for job in jobs.on_disk(root / "results", ())}


def test_folders_and_files_of_other_names_are_no_jobs(root):
    results = root / "results"
    for name in (
        "toy/cpu/a/seed\u0661/grpo",
        "toy/cpu/a/seedx/grpo",
        "toy/cpu/..a/seed0/grpo",
        "published/x",
    ):
        (results / name).mkdir(parents=True)
        (results / name / "metrics.json").write_text("{}")
    evals = results / "toy/cpu/a/seed0/evals"
    evals.mkdir()
    for name in ("after.json", "after.samples.jsonl", "<img>.log", "before.log"):
        (evals / name).write_text("")
    (evals / "odd.json").mkdir()
    there = jobs.on_disk(results, ())
    assert {job.name: made.done for job, made in there.items() if job.kind == "eval"} == {
        "after": True, "before": False,
    }  # fmt: skip
    assert len(there) == 5


def test_the_newest_training_state_is_read(root):
    (job,) = [job for job in jobs.on_disk(root / "results", ()) if (job.arm, job.seed) == ("a", 1)]
    older = root / "checkpoints" / job.path / "0123456789ab"
    newer = older.with_name("fedcba987654") / "member1"
    shutil.copytree(older, newer)
    watched_run.age(newer / "curve.csv", -5)
    state = jobs.training_state(root / "checkpoints", job)
    assert state.curve == newer / "curve.csv"


@pytest.mark.parametrize(
    "text", ["", "[1]", '{"train a": "x"}', '{"train toy/cpu/../seed0/x": 1}', "[" * 99_999]
)
def test_a_plan_that_cannot_be_read_is_none(root, text):
    (root / jobs.PLANNED).write_text(text)
    assert jobs.planned(root, ()).seconds == {}
