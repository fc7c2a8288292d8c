"""The choice of a policy's completions to train on: a funnel of filters, each counted.

| step             | completions that pass, of those that passed before                         |
|------------------|----------------------------------------------------------------------------|
| sampled          | all                                                                        |
| ended            | completions that were not cut at the cap                                   |
| right            | completions to which the verifier gives 1                                  |
| a reward's name  | completions with at least its threshold; rewards follow in alphabetical    |
|                  | order, because a recipe's lineage does not know the order of its keys      |
| distinct         | completions unlike all that passed before for the same prompt              |
| kept             | the first completions of each prompt, up to a number                       |
"""

from collections.abc import Mapping, Sequence

from encore.sampling.completion import Completion

# step -> ascending indices of the completions that pass it; the steps are in order
Funnel = dict[str, list[int]]

TOLERANCE = 1e-9  # absorbs rounding errors of a score


def steps(thresholds: Mapping[str, float]) -> tuple[str, ...]:
    """Return the names of all steps of a funnel in order; metrics.json does not keep the order."""
    return ("sampled", "ended", "right", *sorted(thresholds), "distinct", "kept")


def passed(
    completions: Sequence[Completion],
    scores: Mapping[str, Sequence[float]],
    thresholds: Mapping[str, float],
    size: int,
    most: int | None,
) -> Funnel:
    """Return, for each step, the indices of the completions that pass it.

    The `size` completions of each prompt stand one after another. `scores`, of `accuracy` and of each reward
    in `thresholds`, have a value for each completion. `most`: how many completions of a prompt are kept at
    most; None for all.
    """
    funnel = {"sampled": [*range(len(completions))]}
    funnel["ended"] = [i for i in funnel["sampled"] if not completions[i].truncated]
    left = funnel["right"] = [i for i in funnel["ended"] if scores["accuracy"][i] == 1.0]
    for name in sorted(thresholds):
        left = funnel[name] = [i for i in left if scores[name][i] >= thresholds[name] - TOLERANCE]
    texts: dict[int, dict[str, int]] = {}  # prompt -> text -> number of the first completion with this text
    for i in left:
        texts.setdefault(i // size, {}).setdefault(str(completions[i]), i)
    funnel["distinct"] = [i for firsts in texts.values() for i in firsts.values()]
    funnel["kept"] = [i for firsts in texts.values() for i in [*firsts.values()][:most]]
    return funnel


def metrics(funnel: Funnel, size: int) -> dict[str, float]:
    """Return two metrics for each step of a funnel.

    `funnel/STEP` is the number of completions that pass the step; `funnel/STEP/problems` is the share of
    prompts with at least one such completion.
    """
    problems = len(funnel["sampled"]) // size
    counted: dict[str, float] = {}
    for step, left in funnel.items():
        counted[f"funnel/{step}"] = len(left)
        counted[f"funnel/{step}/problems"] = len({i // size for i in left}) / problems
    return counted


def emptied(funnel: Funnel, thresholds: Mapping[str, float]) -> str:
    """Return the error for a funnel that kept nothing: where the last completions were lost, what helps."""
    says = {"ended": "ended within the cap", "right": "right"}
    says |= {name: f"with {name} >= {thresholds[name]:g}" for name in sorted(thresholds)}
    last = next(step for step in funnel if not funnel[step])
    upto = [*says][: [*says].index(last) + 1]
    counts = [f"{len(funnel[step])} {says[step]}" for step in upto]
    helps = "more num_generations, easier problems or a better policy would help"
    if last == "ended":
        helps = "a larger max_completion_length would help"
    elif last in thresholds:
        helps = f"a lower keep.{last}, more num_generations or a better policy would help"
    return f"0 of {len(funnel['sampled'])} completions kept: {', of them '.join(counts)}; {helps}"
