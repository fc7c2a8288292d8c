"""The values that the server sends to the page: the states of jobs, runs, and curves."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, Self

from analysis.page.palette import colours
from analysis.watch.curve import MEASURES, Curve
from analysis.watch.job_log import JobLog
from analysis.watch.jobs import Job

Word = Literal["running", "failed", "stopped", "waiting", "done"]
FIRST = "base-recipe"  # the arm that all others are compared with


class JobState(NamedTuple):
    """The state of a job, as the page shows it."""

    id: str
    run: str
    arm: str
    seed: int
    kind: str
    name: str
    state: Word
    changed: float = 0.0  # time of the last sign of life, in seconds of the epoch; 0 if there was none
    what: str = ""  # the counted unit: "step", or the task whose completions are drawn
    counted: int = 0  # number of units that are done
    total: int = 0  # number of all units; 0 if it is not known yet
    rate: str = ""  # tokens a second; "" if it is not known yet
    left: str = ""  # time left; "" if it is not known yet
    measured: str = ""  # the last measured values as text, such as `reward 0.41 accuracy 0.33`
    warnings: tuple[str, ...] = ()
    ended: str = ""  # the reason why it ended; "" if it is not known

    @classmethod
    def of(
        cls, job: Job, state: Word, log: JobLog | None = None, changed: float = 0.0, step: int = 0
    ) -> Self:
        """Return the state of a job; `step` is the last step of its curve, 0 without a curve."""
        state_only = cls(job.path, job.run, job.arm, job.seed, job.kind, job.name, state, changed)
        if log is None:
            return state_only
        news = log.progress
        return state_only._replace(
            what=news.what or ("step" if step else ""),
            counted=max(news.done, step) if news.what in ("", "step") else news.done,
            total=news.total,
            rate=news.rate,
            left=news.left,
            measured=news.measured,
            warnings=tuple(log.warnings),
            ended=log.error or log.stopped,
        )

    @property
    def share(self) -> float:
        """The share of the job that is done, from 0 to 1."""
        return min(self.counted / self.total, 1.0) if self.total else 0.0


class RunState(NamedTuple):
    """The number of jobs of a run in each state."""

    name: str
    counts: Mapping[str, int]


class Overview(NamedTuple):
    """All runs in a folder of results, and the jobs in it that need attention."""

    folder: str
    now: float  # the present time, in seconds of the epoch
    active: tuple[JobState, ...]  # running jobs, then failed ones, then stopped ones
    runs: tuple[RunState, ...]
    seconds_left: float | None  # seconds until the plan is done; None if that is unknown


class Mark(NamedTuple):
    """A job in the picture of a run, which is drawn as a square."""

    name: str
    kind: str
    state: Word


class Row(NamedTuple):
    """The jobs of an arm; `cells` has the jobs of each seed, in the order of the run's seeds."""

    arm: str
    cells: tuple[tuple[Mark, ...], ...]


class Drawn(NamedTuple):
    """The learning curve of one seed of an arm, as a line in a chart."""

    arm: str
    seed: int
    running: bool
    steps: Sequence[int]
    values: Sequence[float]


class Chart(NamedTuple):
    """A chart of one measure, with a line for each seed of each arm."""

    label: str
    lines: tuple[Drawn, ...]


class Warned(NamedTuple):
    """A warning of a health check, and the id of the job that it concerns."""

    id: str
    text: str


class Arm(NamedTuple):
    """An arm, and the colour of its lines."""

    name: str
    colour: str


class Run(NamedTuple):
    """The jobs of a run, and the learning curves of one of its stages."""

    name: str
    arms: tuple[Arm, ...]
    seeds: tuple[int, ...]
    rows: tuple[Row, ...]
    stages: tuple[str, ...]
    stage: str
    charts: tuple[Chart, ...]
    sampled: tuple[str, ...]  # trainings that may have rollouts to show; running ones first
    warnings: tuple[Warned, ...]


def run(
    name: str,
    states: Mapping[Job, JobState],
    stage: str,
    stages: Sequence[str],
    curves: Mapping[Job, Curve],
    warned: Mapping[Job, Sequence[str]],
) -> Run:
    """Return what the page shows of the run `name`.

    `states` has all of its jobs, and `curves` has the learning curves of its stages; the charts show only the
    curves of `stage`. `warned` has the warnings of finished jobs.
    """
    arms = sorted({job.arm for job in states}, key=lambda arm: (arm != FIRST, arm))
    seeds = sorted({job.seed for job in states})
    cells: dict[tuple[str, int], list[Mark]] = {}
    for job in sorted(states, key=lambda job: (job.kind != "stage", job.name)):
        mark = Mark(job.name, job.kind, states[job].state)
        cells.setdefault((job.arm, job.seed), []).append(mark)
    rows = (Row(arm, tuple(tuple(cells.get((arm, seed), ())) for seed in seeds)) for arm in arms)
    shown = {job: curve for job, curve in curves.items() if job.name == stage}
    charts = (Chart(label, tuple(_lines(measure, shown, states))) for measure, label in MEASURES.items())
    sampled = [job for job, curve in curves.items() if curve.line("reward")]
    return Run(
        name,
        tuple(Arm(*pair) for pair in colours(arms).items()),
        tuple(seeds),
        tuple(rows),
        tuple(stages),
        stage,
        tuple(chart for chart in charts if chart.lines),
        tuple(job.path for job in sorted(sampled, key=lambda job: _newest_first(states[job]))),
        tuple(Warned(job.path, text) for job, texts in sorted(warned.items()) for text in texts),
    )


def _newest_first(state: JobState) -> tuple[bool, float, str]:
    """Return a key that sorts running jobs first, by name, and then other jobs, the newest first."""
    runs = state.state == "running"
    return not runs, 0.0 if runs else -state.changed, state.id


def _lines(measure: str, curves: Mapping[Job, Curve], states: Mapping[Job, JobState]) -> Iterator[Drawn]:
    """Yield the lines of a measure, one for each seed of each arm."""
    for job, curve in sorted(curves.items()):
        if line := curve.line(measure):
            yield Drawn(job.arm, job.seed, states[job].state == "running", line.steps, line.values)


def failing(metrics: object) -> Iterator[str]:
    """Yield the messages of failed health checks in `metrics`, the content of a job's metrics.json."""
    checks = metrics.get("health") if isinstance(metrics, dict) else None
    for check in checks if isinstance(checks, list) else ():
        if isinstance(check, dict) and check.get("ok") is False and isinstance(check.get("message"), str):
            yield check["message"]
