"""The words that a claim or a published number may use for what it compares."""

import re

METRICS = ("format_rate", "truncation_rate", "length")


VERIFIED = ("accuracy", "length_correct", "length_incorrect")  # of tasks that can tell right from wrong


SCORED = {"gold": ("gold", "win_rate"), "proxy": ("proxy",), "kl": ("kl",)}  # of a task's `score`


BY_DIFFICULTY = ("accuracy", "length")


# of a curve; recipes/runtime/curves.py makes them
OF_TRAINING = ("last", "last_fifth", "first_fifth", "mean", "max")


# analysis/reach.py makes them
REACHED = re.compile(r"(updates|samples)_to/accuracy=(0?\.\d*[1-9]\d*|1(?:\.0*)?)")


# analysis/peaks.py makes them, of a stage that logs gold or proxy reward
OF_PEAK = ("peak", "rise", "drop", "kl_at_peak")


REWARDS = ("gold", "proxy")


# analysis/published.py has them of two policies
PAIRED = ("win_rate", "length_controlled")


AT_KL = re.compile(r"(gold|proxy)_at_kl/(\d+\.?\d*|\.\d+)")


# of a stage that labels pairs or learns from them, measured at its end: reward_quality.py, dpo.py, label.py
OF_PAIRS = re.compile(
    r"accuracy|agreement|(accuracy|loss|calibration|length|logratio|margin|members)/[a-z0-9_=/]+"
)


FORMS = (
    *(f"{name}/…" for name in OF_TRAINING),
    "updates_to/accuracy=X",
    "samples_to/accuracy=X (0 < X <= 1)",
    *(f"{name}/{'|'.join(REWARDS)}" for name in OF_PEAK),
    f"{'|'.join(REWARDS)}_at_kl/NATS",
    "accuracy/validation and its like of pairs",
)


def of_training(metric: str) -> bool:
    """Whether a metric has the form of a stage's final number."""
    kind, _, name = metric.partition("/")
    if REACHED.fullmatch(metric) or AT_KL.fullmatch(metric) or OF_PAIRS.fullmatch(metric):
        return True
    return (kind in OF_TRAINING and bool(name)) or (kind in OF_PEAK and name in REWARDS)
