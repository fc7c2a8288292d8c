"""A tiny stage of every kind, an evaluation, an analysis: what they are run on, what they must give again."""

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import stage_runs
import test_distillation
import test_dpo
import test_kto
import test_label
import test_ppo
import test_reward_model
import test_sft
import toy_run
from saved_models import reward_model
from stage_runs import preferences_product, rows_product

POLICY = "results/pretrain/metrics.json"
SAMPLES = "results/sample/metrics.json"
NOT_REPEATED = ("provenance.json", "timing.csv")  # they have times
DEMONSTRATIONS = [
    {"prompt": f"<user>{a}+{b}=<assistant>", "completion": f"<answer>{a + b}</answer>",
     "question": f"{a}+{b}=", "answer": str(a + b), "difficulty": 2}
    for a in range(2) for b in range(13)
]  # fmt: skip
DRAW = {
    "task": stage_runs.TASK,
    "template": stage_runs.TEMPLATE,
    "problems": 9,
    "args": {"num_generations": 4, "temperature": 1.0, "top_p": 1.0, "max_completion_length": 12},
}
HELDOUT = {
    "task": stage_runs.TASK,
    "template": stage_runs.TEMPLATE,
    "items": 6,
    "samples": 4,
    "temperature": 1.0,
    "top_p": 1.0,
    "max_gen_toks": 12,
    "k": [1, 4],
}
EVALUATION, REPORT = "evaluation", "report"


def nothing() -> None:
    """No file but those of the policy."""


@dataclass(frozen=True)
class Case:
    kind: str
    config: dict[str, Any]
    inputs: dict[str, str] = field(default_factory=lambda: {"policy": POLICY})
    ready: Callable[[], None] = nothing  # called in a folder with the policy
    trap: Callable[[], None] = nothing  # called in the process of the stage
    base: dict[str, Any] = field(default_factory=lambda: stage_runs.PRETRAIN)
    after: tuple[str, ...] = ()  # the cases that are run before

    def start(self, folder: Path, trap: Callable[[], None]) -> Any:
        """The process of the stage in `folder`; `trap()` is run in it first."""
        both = partial(_both, self.trap, trap)
        if self.kind in OTHERS:
            process = stage_runs.FORK.Process(
                target=_said, args=(OTHERS[self.kind], self.config, folder, both)
            )
            process.start()
            return process
        return stage_runs.start(
            self.kind, stage_runs.command(self.kind, self.config, **self.inputs), folder, both
        )

    def outputs(self, folder: Path) -> dict[str, bytes]:
        """All that the stage must give again, byte by byte: everything but times and logs."""
        made = [folder / f"results/{self.kind}", folder / f"checkpoints/{self.kind}"]
        found = {
            str(path.relative_to(folder)): path.read_bytes()
            for place in made
            for path in place.rglob("*")
            if path.is_file() and path.name not in (*NOT_REPEATED, "lock")
        }
        assert found
        return found


def _both(first: Callable[[], None], second: Callable[[], None]) -> None:
    first()
    second()


def _said(
    work: Callable[[dict[str, Any]], int], config: dict[str, Any], folder: Path, trap: Callable[[], None]
) -> None:
    """Be the process of what is no stage, in `folder`."""
    os.chdir(folder)
    with (
        open("out.txt", "a") as said,
        open("err.txt", "a") as log,
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(log),
    ):
        trap()
        status = work(config)
    os._exit(status)


def _evaluate(config: dict[str, Any]) -> int:
    """Measure the policy."""
    from evals import evaluate

    out = f"results/{EVALUATION}/after.json"
    arguments = ["--config", json.dumps(config), "--model", POLICY, "--name", "r/cpu/a/seed3/after"]
    arguments += ["--out", out, "--samples", out.replace(".json", ".samples.jsonl"), "--gpus", "0"]
    return evaluate.main(arguments)


def _report(config: dict[str, Any]) -> int:
    """Write the page of a synthetic run."""
    from analysis import report
    from analysis.numbers.run import Run
    from encore.recipe.graph import Graph

    run = Run(Graph(toy_run.load_all(Path())), "toy_zero", "cpu", toy_run.ARMS[:2], (0,), Path())
    report.command(run, Path(f"results/{REPORT}/report.html"), "report")
    return 0


OTHERS = {EVALUATION: _evaluate, REPORT: _report}


def all_right() -> None:
    """Every completion with a number is counted as right: a tiny policy cannot add."""
    from encore.rewards import rules

    build = rules.build

    def built(names, world, seed, **options):
        def accuracy(completions, answer, **columns):
            return [float(any(map(str.isdigit, text))) for text in completions]

        return [*(dict(zip(names, build(names, world, seed, **options), strict=True))
                  | {"accuracy": accuracy}).values()]  # fmt: skip

    rules.build = built


def demonstrations() -> None:
    rows_product(Path("results/data"), DEMONSTRATIONS)


def comparisons() -> None:
    preferences_product(Path("results/data"), [test_dpo.row(a, b) for a in range(2) for b in range(7, 13)])


def ranked() -> None:
    rows = test_reward_model.comparisons()
    preferences_product(Path("results/label"), rows)
    shown = [row | {"completion": row["responses"][row["ranking"][0]]} for row in rows[:9]]
    rows_product(Path("results/data"), shown)


def scored() -> None:
    reward_model(Path.cwd())


def trained() -> None:
    """The stages and evaluations of a synthetic run."""
    toy_run.make(Path.cwd())


DATA = {"policy": POLICY, "data": "results/data/metrics.json"}
CASES = {
    "pretrain": Case("pretrain", stage_runs.PRETRAIN, {}),
    "sft": Case("sft", test_sft.CONFIG, DATA, demonstrations),
    "reward_model": Case("reward_model", test_reward_model.CONFIG, test_reward_model.INPUTS, ranked),
    "dpo": Case("dpo", test_dpo.CONFIG, DATA, comparisons),
    "kto": Case("kto", test_kto.CONFIG, DATA, comparisons),
    "grpo": Case("grpo", stage_runs.GRPO),
    "ppo": Case("ppo", test_ppo.PPO, test_ppo.INPUTS, scored),
    "distillation": Case(
        "distillation", test_distillation.DISTILLATION, {"policy": POLICY, "teacher": POLICY}
    ),
    "policy_gradient": Case("policy_gradient", stage_runs.REINFORCE),
    "rejection_sampling": Case("rejection_sampling", DRAW, trap=all_right),
    "sample": Case("sample", test_label.SAMPLE, base=test_label.PRETRAIN),
    "label": Case("label", {"by": "gold"}, {"data": SAMPLES}, base=test_label.PRETRAIN, after=("sample",)),
    "label_steps": Case(
        "label_steps",
        {"by": "rollouts", "args": test_label.SAMPLE["args"] | {"num_generations": 2}},
        {"policy": POLICY, "data": SAMPLES},
        base=test_label.PRETRAIN,
        after=("sample",),
    ),
    EVALUATION: Case(EVALUATION, {"tasks": {"heldout": HELDOUT}, "seed": 3}),
    REPORT: Case(REPORT, {}, {}, trained),
}


def prepared(case: Case, folder: Path) -> Path:
    """A folder in which the stage can begin."""
    if case.inputs:
        assert stage_runs.run("pretrain", stage_runs.command("pretrain", case.base), folder) == 0, (
            folder / "err.txt"
        ).read_text()
    for name in case.after:
        process = CASES[name].start(folder, nothing)
        process.join(600)
        assert process.exitcode == 0, (folder / "err.txt").read_text()
    folder.mkdir(parents=True, exist_ok=True)
    before = Path.cwd()
    os.chdir(folder)
    try:
        case.ready()
    finally:
        os.chdir(before)
    return folder


def fresh(ready: Path, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ready, folder, ignore=shutil.ignore_patterns("*.txt"))
    return folder
