"""Which completions of a policy are kept to train on: a funnel of filters, each counted.

| step             | what passes, of what passed before                                         |
|------------------|----------------------------------------------------------------------------|
| sampled          | everything                                                                 |
| ended            | what was not cut at the cap                                                |
| right            | what the verifier gives 1                                                  |
| a reward's name  | what has at least its threshold; the rewards follow in alphabetical order, |
|                  | because a recipe's lineage does not know the order of its keys             |
| distinct         | what is unlike all that passed before it for the same prompt               |
| kept             | the first so many of each prompt                                           |
"""

from collections.abc import Mapping, Sequence

from encore.sampling.completion import Completion

Funnel = dict[str, list[int]]  # step -> indices of the completions that pass it, ascending; steps in order

TOLERANCE = 1e-9  # rounding errors of a score decide nothing


def steps(thresholds: Mapping[str, float]) -> tuple[str, ...]:
    """The names of all steps in order, which metrics.json does not keep."""
    return ("sampled", "ended", "right", *sorted(thresholds), "distinct", "kept")


def passed(
    completions: Sequence[Completion],
    scores: Mapping[str, Sequence[float]],
    thresholds: Mapping[str, float],
    size: int,
    most: int | None,
) -> Funnel:
    """What passes each step. The `size` completions of each prompt lie one after another.

    `scores`: of `accuracy` and of each of `thresholds`, one for each completion; `most`: completions of a
    prompt that are kept, None for all.
    """
    funnel = {"sampled": [*range(len(completions))]}
    funnel["ended"] = [i for i in funnel["sampled"] if not completions[i].truncated]
    left = funnel["right"] = [i for i in funnel["ended"] if scores["accuracy"][i] == 1.0]
    for name in sorted(thresholds):
        left = funnel[name] = [i for i in left if scores[name][i] >= thresholds[name] - TOLERANCE]
    texts: dict[int, dict[str, int]] = {}  # prompt -> text -> where it came first
    for i in left:
        texts.setdefault(i // size, {}).setdefault(str(completions[i]), i)
    funnel["distinct"] = [i for firsts in texts.values() for i in firsts.values()]
    funnel["kept"] = [i for firsts in texts.values() for i in [*firsts.values()][:most]]
    return funnel


def metrics(funnel: Funnel, size: int) -> dict[str, float]:
    """`funnel/STEP`, how many completions pass; `funnel/STEP/problems`, the share of prompts with one."""
    problems = len(funnel["sampled"]) // size
    counted: dict[str, float] = {}
    for step, left in funnel.items():
        counted[f"funnel/{step}"] = len(left)
        counted[f"funnel/{step}/problems"] = len({i // size for i in left}) / problems
    return counted


def emptied(funnel: Funnel, thresholds: Mapping[str, float]) -> str:
    """One line that says where a funnel from which nothing comes ran dry, and what would help."""
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
