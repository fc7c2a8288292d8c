"""Stage `bandit`: an estimator of the policy gradient, measured exactly, on strings that can all be listed.

    python -m encore.stages bandit --config '{"args": …}' …

Its product is `final/strings.csv`: each string with its reward, and its probability under the reference,
under the first policy, under the last policy, and under RLHF's optimum. The work takes about a second, so
there are no checkpoints: a killed run starts again, and ends with the same bits.
"""

import csv
import io
import time
from pathlib import Path

from torch import Tensor

from encore.bandit import measures
from encore.bandit.paths import follow, summed_up
from encore.bandit.problem import Bandit, draw
from encore.recipe.kinds.bandit import BanditStage
from encore.runtime import curves, files, health
from encore.runtime.provenance import untrained
from encore.stages.job import Job
from encore.stages.outcome import Outcome

ROUNDING = 1e-12  # largest allowed distance from 1 of the sum of all probabilities
FORMULA = "no model: the policy is a table"


def run(stage: BanditStage, job: Job) -> Outcome:
    """Measure the estimator along the exact gradient's path and along its own; save the table of strings."""
    began, args = time.perf_counter(), stage.args
    graded = args.rewards == "graded"
    bandit = draw(args.letters, args.longest, graded, args.beta, args.critic_error, job.seed)
    job.progress.start(0, args.steps)
    followed = follow(bandit, args)
    curve = curves.rows(followed.history)
    metrics = curves.scalars(curve) | summed_up(followed.history)
    if args.beta:
        metrics["last/optimum/gradient"] = measures.of_optimum(bandit, args)
    job.progress.step(args.steps, args.steps, dict(followed.history[-1]), 0)
    _save(bandit, followed.policy, job.workdir / "final")
    return Outcome(
        metrics=metrics,
        health=[_chances(bandit, followed.policy)],
        fit=untrained(0, began),
        flops_a_token=0,
        formula=FORMULA,
        curve=curve,
    )


def _save(bandit: Bandit, policy: Tensor, folder: Path) -> None:
    """Write strings.csv into a folder; `policy` (prefixes, vocabulary): the logits after the last step."""
    policies = {"reference": bandit.reference, "before": bandit.start, "after": policy}
    if bandit.beta:
        policies["optimum"] = bandit.optimum()
    chances = [bandit.strings.probabilities(logits).tolist() for logits in policies.values()]
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["string", "reward", *policies])
    rows.writerows(zip(bandit.strings.texts, bandit.rewards.tolist(), *chances, strict=True))
    folder.mkdir(parents=True, exist_ok=True)
    files.write(folder / "strings.csv", out.getvalue())


def _chances(bandit: Bandit, policy: Tensor) -> health.Check:
    """Check that the probabilities of the listed strings under the last policy sum to 1."""
    away = abs(bandit.strings.probabilities(policy).sum().item() - 1)
    text = f"the probabilities of all strings add up to 1, but for {away:.1g}"
    return health.make_check("probabilities", away <= ROUNDING, away, ROUNDING, text, "error")
