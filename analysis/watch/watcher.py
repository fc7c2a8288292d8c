"""The state of all jobs in a folder of results, which is read again whenever the page asks for it."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from analysis.watch import jobs, rollouts, views
from analysis.watch.curve import Curve
from analysis.watch.job_log import LONGEST, WARNINGS, JobLog
from analysis.watch.jobs import Files, Job, Plan
from encore.errors import UserError, known

QUIET = 300.0  # seconds without a sign of life after which a job counts as stopped
# steps of a job without a sign of life after which it counts as stopped, if they take longer than QUIET
STEPS = 5
PLANNING = 60.0  # longest time between the start of a run and its plan, in seconds
PAUSE = 1.0  # shortest pause between two readings of the folder, in seconds
SHARE = 10  # shortest pause, as a multiple of the time that a reading took
LARGEST = 2**24  # bytes of the largest metrics.json that is read


class Watcher:
    """A reader of a folder of results, which several threads may use at once."""

    def __init__(self, results: Path, recipes: Collection[str], clock: Callable[[], float] = time.time):
        self.results, self.recipes, self.clock = results, frozenset(recipes), clock
        self.root = results.absolute().parent
        self._lock = threading.Lock()
        self._next = 0.0
        self._plan = Plan({}, 0.0)
        self._files: Mapping[Job, Files] = {}
        self._logs: dict[Job, JobLog] = {}
        self._curves: dict[Path, Curve] = {}
        self._warned: dict[Job, tuple[float, tuple[str, ...]]] = {}
        self._states: dict[Job, views.JobState] = {}
        # the file that was read last, and its rollout
        self._sampled: tuple[object, rollouts.Rollout | None] = (), None

    def check_results(self) -> None:
        """Raise UserError if there is no folder, no job, or no job of a named recipe to watch."""
        if not self.results.is_dir():
            raise UserError(f"{self.results}: no such folder; name the folder of results with --results")
        begun = jobs.on_disk(self.results, ())
        plan = jobs.planned(self.root, ())
        recipes = sorted({job.recipe for job in (*begun, *plan.seconds)})
        if not recipes:
            raise UserError(f"{self.results}: no run is here yet; start one, such as: encore run r1_zero")
        known(str(self.results), sorted(self.recipes), recipes, "recipe")

    # -- the answers to the page -------------------------------------------------------------------------

    def overview(self) -> views.Overview:
        """Return the jobs that run, failed or stopped, and the number of jobs of each run in each state."""
        with self._lock:
            self._look()
            runs: dict[str, Counter[str]] = {}
            newest: dict[str, float] = {}
            for job, state in self._states.items():
                runs.setdefault(job.run, Counter())[state.state] += 1
                newest[job.run] = max(newest.get(job.run, 0.0), state.changed)
            order = sorted(runs, key=lambda run: (-_to_come(runs[run]), -newest[run], run))
            shown = ("running", "failed", "stopped")
            active = [state for state in self._states.values() if state.state in shown]
            active.sort(key=lambda state: (shown.index(state.state), -state.changed, state.id))
            return views.Overview(
                str(self.results),
                self.clock(),
                tuple(active),
                tuple(views.RunState(run, dict(runs[run])) for run in order),
                self._seconds_left(),
            )

    def run(self, name: str, stage: str) -> views.Run | None:
        """Return the jobs of the run `name` and the curves of its stage `stage`; None without such a run.

        If the run has no such stage, the curves are of the stage that ran last.
        """
        with self._lock:
            self._look()
            states = {job: state for job, state in self._states.items() if job.run == name}
            if not states:
                return None
            curves = self._curves_of(states)
            stages = sorted({job.name for job in curves})
            if stage not in stages:
                last = max(curves, key=lambda job: (states[job].changed, job), default=None)
                stage = last.name if last else ""
            warned = {job: self._warnings(job) for job in states if self._is_done(job)}
            return views.run(name, states, stage, stages, curves, warned)

    def rollout(self, path: str) -> rollouts.Rollout | None:
        """Return the last rollout of the stage with this Job.path; None without such a stage or a rollout."""
        with self._lock:
            self._look()
            job = next((job for job in self._files if job.path == path and job.kind == "stage"), None)
            if not job:
                return None
            result = self.results / job.path / "completions.jsonl"
            state = jobs.training_state(self.root / "checkpoints", job)
            # if a stage samples without a training state, the file grows beside the results
            file = result if self._files[job].done or not state.completions else state.completions
            try:
                status = file.stat()
            except OSError:
                return None
            read = (file, status.st_size, status.st_mtime_ns)
            if self._sampled[0] != read:
                self._sampled = read, rollouts.last(file)
            return self._sampled[1]

    # -- the reading of files ----------------------------------------------------------------------------

    def _look(self) -> None:
        """Read all changes in the folder, unless the last reading was less than a pause ago."""
        began = time.monotonic()
        if began < self._next:
            return
        self._plan = jobs.planned(self.root, self.recipes)
        self._files = jobs.on_disk(self.results, self.recipes)
        for job in set(self._logs) - set(self._files):
            del self._logs[job]
        self._states = {job: self._state(job, files) for job, files in self._files.items()}
        for job in self._plan.seconds:
            self._states.setdefault(job, views.JobState.of(job, "waiting"))
        took = time.monotonic() - began
        self._next = began + took + max(PAUSE, SHARE * took)

    def _state(self, job: Job, files: Files) -> views.JobState:
        if files.done:
            self._logs.pop(job, None)
            return views.JobState.of(job, "done", changed=files.changed)
        log = self._logs.setdefault(job, JobLog(files.log))
        log.update()
        step, changed = 0, files.changed
        if job.kind == "stage":
            state = jobs.training_state(self.root / "checkpoints", job)
            changed = max(changed, state.changed)
            step = self._curve(state.curve).step if state.curve else 0
        patience = max(QUIET, STEPS * log.seconds_a_step)
        word: views.Word = "running" if self.clock() - changed <= patience else "stopped"
        if log.error or log.stopped:
            word = "failed" if log.error else "stopped"
        if word != "running" and job in self._plan.seconds and changed < self._plan.began - PLANNING:
            return views.JobState.of(job, "waiting", changed=changed)  # the log is of an earlier run
        return views.JobState.of(job, word, log, changed, step)

    def _curve(self, path: Path) -> Curve:
        """Return the curve in a file, after reading the part that was added since the last call."""
        curve = self._curves.setdefault(path, Curve(path))
        curve.update()
        return curve

    def _curves_of(self, states: Collection[Job]) -> dict[Job, Curve]:
        """Return job -> its learning curve, for the jobs in `states` that have one."""
        curves: dict[Job, Curve] = {}
        for job in states:
            if job.kind != "stage" or job not in self._files:
                continue
            path: Path | None = self.results / job.path / "curve.csv"
            if not self._files[job].done:
                path = jobs.training_state(self.root / "checkpoints", job).curve
            if path and (curve := self._curve(path)).step:
                curves[job] = curve
        return curves

    def _is_done(self, job: Job) -> bool:
        return job in self._files and self._files[job].done

    def _warnings(self, job: Job) -> tuple[str, ...]:
        """Return the messages of the health checks that a finished job failed."""
        changed = self._files[job].changed
        if job in self._warned and self._warned[job][0] == changed:
            return self._warned[job][1]
        name = f"{job.path}/metrics.json" if job.kind == "stage" else f"{job.path}.json"
        warnings = tuple(views.failing(_content(self.results / name)))[:WARNINGS]
        self._warned[job] = changed, tuple(text[:LONGEST] for text in warnings)
        return self._warned[job][1]

    def _seconds_left(self) -> float | None:
        """Return the seconds that the rest of the plan will take at the present pace; None if it is unknown.

        The pace is the planned seconds of all work that is done, running jobs included, per elapsed second.
        """
        planned = sum(self._plan.seconds.values())
        made = 0.0
        running = False
        for job, seconds in self._plan.seconds.items():
            state = self._states[job]
            running |= state.state == "running"
            made += seconds * (1.0 if state.state == "done" else state.share)
        elapsed = self.clock() - self._plan.began
        if not running or not planned or made < planned / 100 or elapsed <= 0:
            return None
        return elapsed * (planned - made) / made


def _to_come(counts: Mapping[str, int]) -> int:
    """Return the number of running and waiting jobs of a run; 0 if no job runs."""
    return counts["running"] + counts["waiting"] if counts["running"] else 0


def _content(path: Path) -> object:
    """Return the content of a JSON file; None if it cannot be read."""
    try:
        return json.loads(path.read_bytes()) if path.stat().st_size <= LARGEST else None
    except (OSError, ValueError, RecursionError):
        return None
