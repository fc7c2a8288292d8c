"""What is said of jobs: which run, which have stopped, what is left."""

import time

import pytest
import watched_run

from analysis.watch.watcher import QUIET, STEPS, Watcher
from encore.errors import UserError
from snakemake_logger_plugin_encore import PLANNED


@pytest.fixture
def trainings(tmp_path):
    return watched_run.make(tmp_path)


class Later(Watcher):
    """A watcher that looks anew each time, and whose clock can be set forward."""

    seconds = 0.0

    def __init__(self, root, recipes=()):
        super().__init__(root / "results", recipes, lambda: time.time() + self.seconds)

    def _look(self):
        self._next = 0.0
        super()._look()

    def states(self):
        return {(job.arm, job.seed, job.name): job for job in self.overview().active}


def test_each_job_is_in_its_state(trainings, tmp_path):
    watcher = Later(tmp_path)
    (run,) = watcher.overview().runs
    assert run == ("toy/cpu", {"running": 1, "failed": 1, "done": 1, "waiting": 4})
    states = watcher.states()
    failed, running = states["base-recipe", 0, "grpo"], states["a", 1, "grpo"]
    assert (failed.state, failed.ended) == ("failed", "MemoryError: no room")
    assert (running.state, running.what, running.counted, running.total) == ("running", "step", 12, 40)
    assert running.warnings == ("55.0% of groups have zero variance (limit 50%) at step 12",)
    assert running.rate
    assert list(states) == [("a", 1, "grpo"), ("base-recipe", 0, "grpo")]  # what runs stands first


def test_a_job_goes_on_while_it_is_watched(trainings, tmp_path):
    watcher = Later(tmp_path)
    assert watcher.states()["a", 1, "grpo"].counted == 12
    trainings["a/seed1"].go_on(3)
    assert watcher.states()["a", 1, "grpo"].counted == 15
    assert watcher.rollout("toy/cpu/a/seed1/grpo").step == 15
    trainings["a/seed1"].end()
    assert ("a", 1, "grpo") not in watcher.states()
    assert watcher.overview().runs[0].counts["done"] == 2
    assert watcher.rollout("toy/cpu/a/seed1/grpo").step == 15


def test_a_silent_job_has_stopped_and_one_of_long_steps_has_not(trainings, tmp_path):
    watcher = Later(tmp_path)
    watcher.seconds = QUIET + 60
    assert watcher.states()["a", 1, "grpo"].state == "stopped"
    log = trainings["a/seed1"].log
    with log.open("a") as stream:
        stream.write("[toy/cpu/a/seed1 grpo] step 20/40 reward 0.1 1:00:00 left\n")
    slow = STEPS * 3600 / 20
    watcher.seconds = slow - 60
    assert watcher.states()["a", 1, "grpo"].state == "running"
    watcher.seconds = slow + 60
    assert watcher.states()["a", 1, "grpo"].state == "stopped"


def test_a_job_that_was_told_to_end_has_stopped_at_once(trainings, tmp_path):
    with trainings["a/seed1"].log.open("a") as stream:
        stream.write("stopped; all up to step 12 is saved in checkpoints/x\n")
    state = Later(tmp_path).states()["a", 1, "grpo"]
    assert (state.state, state.ended) == ("stopped", "all up to step 12 is saved in checkpoints/x")


def test_what_has_failed_waits_once_its_run_is_started_again(trainings, tmp_path):
    for path in watched_run.files(tmp_path):
        watched_run.age(path, 900.0)
    watcher = Later(tmp_path)
    assert watcher.overview().runs[0].counts == {"stopped": 1, "failed": 1, "done": 1, "waiting": 4}
    watched_run.age(tmp_path / PLANNED, 5.0)
    assert watcher.overview().runs[0].counts == {"done": 1, "waiting": 6}


def test_an_evaluation_tells_of_its_completions(trainings, tmp_path):
    log = tmp_path / "results/toy/cpu/a/seed0/evals/after.log"
    log.parent.mkdir()
    log.write_text("[toy/cpu/a/seed0 eval:after] heldout 1024/4096 completions 0:12 left\n")
    state = Later(tmp_path).states()["a", 0, "after"]
    told = (state.state, state.what, state.counted, state.total, state.left, state.measured)
    assert told == ("running", "heldout", 1024, 4096, "0:12", "completions")
    log.with_suffix(".json").write_text("{}")
    assert ("a", 0, "after") not in Later(tmp_path).states()


def test_the_time_left_goes_by_the_pace_so_far(trainings, tmp_path):
    watcher = Later(tmp_path)
    planned = 100.0 * 4 + 10.0 * 3
    made = 100.0 + 2 * 100.0 * 12 / 40  # the failed one keeps its steps
    assert watcher.overview().seconds_left == pytest.approx(60 * (planned - made) / made, rel=0.05)
    trainings["a/seed1"].log.write_text("error: no more\n")
    assert watcher.overview().seconds_left is None  # nothing runs


def test_files_that_vanish_leave_a_job_that_waits(trainings, tmp_path):
    watcher = Later(tmp_path)
    watcher.run("toy/cpu", "grpo")
    for path in watched_run.files(tmp_path / "results"):
        path.unlink()
    assert watcher.overview().runs == (("toy/cpu", {"waiting": 7}),)
    assert watcher.run("toy/cpu", "grpo").charts == ()
    assert watcher.rollout("toy/cpu/a/seed1/grpo") is None


def test_curves_have_a_line_for_each_seed_of_each_arm(trainings, tmp_path):
    run = Later(tmp_path).run("toy/cpu", "")
    reward, *others = run.charts
    assert [(line.arm, line.seed, line.running) for line in reward.lines] == [
        ("a", 0, False), ("a", 1, True), ("base-recipe", 0, False),
    ]  # fmt: skip
    assert reward.lines[1].values[-1] == 12 / 40
    assert [chart.label.split()[0] for chart in others] == ["Accuracy:", "Length", "Entropy,", "KL"]
    assert [arm.name for arm in run.arms] == ["base-recipe", "a"]
    assert run.sampled[0] == "toy/cpu/a/seed1/grpo"
    assert run.warnings == (("toy/cpu/a/seed0/grpo", "60% of groups have zero variance"),)


def test_only_what_is_new_is_read_while_a_run_goes_on(trainings, tmp_path):
    watcher = Later(tmp_path)
    for _ in range(5):
        watcher.run("toy/cpu", "grpo")
    read = sum(log.file.bytes_read for log in watcher._logs.values())
    read += sum(curve.file.bytes_read for curve in watcher._curves.values())
    names = ("curve.csv", "train.log")
    there = {path: path.stat().st_size for path in watched_run.files(tmp_path) if path.name in names}
    unread = trainings["a/seed0"].log  # of a job that is done
    assert read == sum(there.values()) - there[unread]


def test_a_folder_is_looked_at_once_however_many_ask(trainings, tmp_path, monkeypatch):
    looks = []
    monkeypatch.setattr("analysis.watch.jobs.on_disk", lambda results, recipes: looks.append(results) or {})
    watcher = Watcher(tmp_path / "results", ())
    for _ in range(9):
        watcher.overview()
    assert len(looks) == 1


@pytest.mark.parametrize("name", ["toy", "toy/gpu", "../toy/cpu", ""])
def test_there_is_nothing_of_other_runs(trainings, tmp_path, name):
    assert Later(tmp_path).run(name, "grpo") is None
    assert Later(tmp_path).rollout(f"{name}/a/seed1/grpo") is None


def test_what_is_not_there_is_told_in_one_line(tmp_path):
    with pytest.raises(UserError, match="no such folder; name the folder of results with --results"):
        Later(tmp_path).check_results()
    (tmp_path / "results/published").mkdir(parents=True)
    with pytest.raises(UserError, match="no run is here yet; start one, such as: encore run r1_zero"):
        Later(tmp_path).check_results()
    watched_run.make(tmp_path)
    Later(tmp_path, ["toy"]).check_results()
    with pytest.raises(UserError, match='unknown recipe "toi"; did you mean "toy"'):
        Later(tmp_path, ["toi"]).check_results()
