"""The names of metrics that a claim or a published number may compare."""

import re
from collections.abc import Iterable

# metrics of an evaluation task
METRICS = ("format_rate", "truncation_rate", "length")
OF_TOOL = ("calls", "called", "malformed")  # further metrics of a task with a tool
VERIFIED = (
    "accuracy",
    "length_correct",
    "length_incorrect",
)  # further metrics of a task that can tell right from wrong
# rewards of a world that are also metrics
HABITS = ("verification", "sound_checks", "backtracking", "subgoals", "backward_chaining", "idling")
OF_WORLD = (
    "language_consistency",
    "readability",
    "unrepaired",
    "carries",
    "lost",
    "other_rule",
    "refused",
    "visible",
    "special_cased",
    *HABITS,
)
# score -> another score; the first is averaged over the responses for which the other is 1
AMONG = {"sound_checks": "verification", "lost": "carries"}
# scores that are also reported for right and for wrong responses
BY_ANSWER = ("unrepaired", "perplexity", "trace")
# Score by which a reward model selects the best of n responses -> name of the selection in a metric, as in
# gold/bon@8 or accuracy/bon_product@8. Only a process reward model has the scores BY_STEPS.
BY_STEPS = {"proxy_product": "bon_product", "proxy_min": "bon_min"}
SELECTORS = {"proxy": "bon", **BY_STEPS}
SCORED = {  # score in a task's `score` -> the metrics it makes
    "gold": ("gold", "win_rate"),
    # order_flips is the share of pairs whose winner depends on their order
    "judge": ("win_rate", "order_flips"),
    **{name: (name,) for name in SELECTORS},
    "kl": ("kl",),
    "forward_kl": ("forward_kl",),
    **{name: (name,) for name in OF_WORLD},
    **{name: (name, f"{name}_correct", f"{name}_incorrect") for name in BY_ANSWER},
}
OF_LM_EVAL = "score"  # for a task of lm-eval: the mean of its own metric, such as f1; right answers score 1
BY_DIFFICULTY = ("accuracy", "length")
# metrics of a checkpoint and the one that `coverage` compares it with, made by analysis/numbers/coverage.py
COVERED = ("both", "gained", "lost", "neither", "gained_by_chance", "crossover", "crossed", "ahead", "behind")
FAMILIAR = "familiar"  # further metric of a task that scores perplexity

# metrics of two policies, made by analysis/verdicts/published.py
PAIRED = ("win_rate", "length_controlled")

# metrics of a stage's training curve: OF_TRAINING/curve, made by encore/runtime/curves.py, and AREA/curve
AREA = "auc"
OF_AREA = re.compile(rf"{AREA}/(.+)")
OF_TRAINING = ("last", "last_fifth", "first_fifth", "mean", "max", AREA)
OF_START = re.compile(r"first_fifth/(.+)")
# the curve of the tokens in all rollouts so far, without groups that dynamic sampling has left out
TRAINED_TOKENS = "dynamic/trained_tokens"
# effort until an accuracy is reached
REACHED = re.compile(r"(updates|samples|flops|seconds)_to/accuracy=(0?\.\d*[1-9]\d*|1(?:\.0*)?)")
# 1 if training collapsed, else 0
FALL = "collapsed"
COLLAPSED = re.compile(rf"{FALL}/(accuracy)")
# the accuracy at the end of training: predicted by the law of entropy from its beginning, and reached
LAW = ("entropy_law/predicted", "entropy_law/reached")
# the sigmoid of accuracy over compute: what its first half predicts for the end, what was reached, its
# asymptote, and the log2 of the operations at which half of the way is gone
SIGMOID = ("sigmoid/predicted", "sigmoid/reached", "sigmoid/asymptote", "sigmoid/midpoint")
# rewards of a stage that logs gold or proxy reward
REWARDS = ("gold", "proxy")
OF_PEAK = ("peak", "rise", "drop", "kl_at_peak")
NATS = r"(\d+\.?\d*|\.\d+)"
AT_KL = re.compile(rf"(gold|proxy)_at_kl/{NATS}")
# a metric of a frontier: its task, its score, the direction of the KL and the KL; made by
# analysis/numbers/frontiers.py
ON_FRONTIER = re.compile(rf"([^/]+)/(gold|proxy|accuracy)_at_(kl|forward_kl)/{NATS}")
# final numbers of a stage that labels pairs or learns from them
OF_PAIRS = re.compile(
    r"accuracy|agreement|(accuracy|loss|calibration|length|logratio|margin|members)/[a-z0-9_=/]+"
)

# All forms of a stage's final number, as an error message lists them.
FORMS = (
    *(f"{name}/…" for name in OF_TRAINING),
    "updates_to/accuracy=X, and samples_to, flops_to, seconds_to (0 < X <= 1)",
    f"{FALL}/accuracy",
    *LAW,
    *SIGMOID,
    *(f"{name}/{'|'.join(REWARDS)}" for name in OF_PEAK),
    f"{'|'.join(REWARDS)}_at_kl/NATS",
    "accuracy/validation and its like of pairs",
)


def best_of(scores: Iterable[str], verified: bool) -> list[tuple[str, str, str]]:
    """Return the measures of best-of-n on a task: (score that selects, score that is reported, name).

    The reported score is gold if the task has it, otherwise the share of right answers. If `proxy` selects,
    proxy itself is reported too.
    """
    known = set(scores)
    worth = "gold" if "gold" in known else "accuracy" if verified else None
    measures = []
    for selector, best in SELECTORS.items():
        values = (worth, "proxy") if selector == "proxy" else (worth,)
        measures += [(selector, value, f"{value}/{best}") for value in values if value and selector in known]
    return measures


def by_template(task: str, template: str) -> str:
    """Return the name of a task with one of its candidate templates, joined by @."""
    return f"{task}@{template}"


def task_of(metric: str) -> str:
    """Return the name of the task in an evaluation's metric, whichever template was used."""
    return metric.partition("/")[0].partition("@")[0]


def of_training(metric: str) -> bool:
    """Return whether a metric has the form of a stage's final number."""
    kind, _, name = metric.partition("/")
    if metric in (*LAW, *SIGMOID) or any(
        form.fullmatch(metric) for form in (REACHED, COLLAPSED, AT_KL, OF_PAIRS)
    ):
        return True
    return (kind in OF_TRAINING and bool(name)) or (kind in OF_PEAK and name in REWARDS)
