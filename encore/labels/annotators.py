"""Simulated labellers, and the scores that stage `label` writes beside each ranking. Pure functions of rows.

    human annotator   ranks by Plackett and Luce's model on gold (`plackett_luce`)
    AI judge          does the same on v = u + bias (j - u) + length_bias tokens / 10 (+ position_bias)

Here u is the gold score and j the judge's own score, whose biases are dials of the world. No stage writes
gold scores: a reply's score is its rank instead, the number of replies to its prompt that are ranked below
it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from encore.data import samples
from encore.data.samples import Sample
from encore.errors import UserError
from encore.labels import plackett_luce
from encore.labels.plackett_luce import Floats
from encore.recipe.kinds.label import Labeller
from encore.worlds.protocol import Problem

Scores = list[list[float]]  # K scores for each row
MOST = 1e3  # largest factor of the judge's own bias; larger factors change nothing


@dataclass(frozen=True)
class Labels:
    """The scores of a labeller; if it errs at random, also the scores of a second such labeller."""

    scores: Scores
    second: Scores | None = None
    fitted: dict[str, float] = field(default_factory=dict)  # `temperature` and `bias` of the labeller


def rewarded(rows: Sequence[Sample], reward: Callable[[Problem, str], float]) -> Scores:
    """Return a world's reward of each completion, with the prefill of its prompt put before it."""
    scores = []
    for row in rows:
        problem = samples.problem(row)
        scores.append([float(reward(problem, problem.begun + text)) for text in row["completions"]])
    return scores


def by_rank(scores: Scores) -> Scores:
    """Return for each reply the number of replies to its prompt that have a lower score."""
    return [[float(sum(other < score for other in row)) for score in row] for row in scores]


def annotated(gold: Scores, dials: Labeller, seed: int) -> Labels:
    """Return rankings of human annotators, who agree with each other or with gold as often as `dials` say."""
    temperature = dials.temperature
    if temperature is None:
        seen = plackett_luce.gaps(gold)
        temperature = plackett_luce.temperature_for(seen, agreement=dials.agreement, accuracy=dials.accuracy)
    return _ranked(gold, temperature, seed, {"temperature": temperature})


def ai_judge(
    gold: Scores, judge_scores: Scores, rows: Sequence[Sample], dials: Labeller, seed: int
) -> Labels:
    """Return rankings of an AI judge, whose own scores of the completions are `judge_scores`.

    The dial `accuracy` sets the temperature or, if `temperature` is set, the bias of a judge that sees both
    orders of each pair. If `both_orders` is false, the judge is therefore right less often.
    """
    tokens = [row["tokens"] for row in rows]
    orders, position = dials.both_orders, dials.position_bias

    def perceived(bias: float, both_orders: bool = True) -> Scores:
        return [
            plackett_luce.perceived(
                [u + bias * (j - u) for u, j in zip(us, js, strict=True)],
                counts,
                length_bias=dials.length_bias,
                position_bias=position,
                both_orders=both_orders,
            ).tolist()
            for us, js, counts in zip(gold, judge_scores, tokens, strict=True)
        ]

    bias, temperature = dials.bias, dials.temperature or 0.0
    if dials.accuracy is not None and dials.temperature is not None:
        fair, biased = plackett_luce.gaps(perceived(0.0)), plackett_luce.gaps(perceived(1.0))
        bias = _bias_for(fair, biased - fair, plackett_luce.gaps(gold), dials.accuracy, temperature)
    elif dials.accuracy is not None:
        seen, truth = plackett_luce.gaps(perceived(bias)), plackett_luce.gaps(gold)
        temperature = plackett_luce.temperature_for(seen, accuracy=dials.accuracy, truth=truth)
    return _ranked(perceived(bias, orders), temperature, seed, {"temperature": temperature, "bias": bias})


def _bias_for(fair: Floats, unfair: Floats, truth: Floats, accuracy: float, temperature: float) -> float:
    """Return the least b at which a judge that perceives the gaps `fair` + b `unfair` has this accuracy.

    `truth` are the gold gaps of the same pairs. Raises UserError if no bias makes the judge that bad, or if
    the temperature alone makes it worse.
    """

    def right(bias: float) -> float:
        return plackett_luce.accuracy(fair + bias * unfair, temperature, truth)

    places = [0.0, *np.geomspace(1e-2, MOST, 101).tolist()]
    values = [right(place) for place in places]
    at = next((i for i, value in enumerate(values) if value <= accuracy), 0)
    if at == 0:
        reach = f"{min(values):.3f} to {values[0]:.3f}"
        raise UserError(
            f"labeller.accuracy: {accuracy:g} is out of reach at temperature {temperature:g}: {reach}"
        )
    low, high = places[at - 1], places[at]
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if right(middle) <= accuracy else (middle, high)
    return high


def _ranked(perceived: Scores, temperature: float, seed: int, fitted: dict[str, float]) -> Labels:
    """Return two labellers' rankings by the utilities that both perceive.

    A score is the number of replies ranked below.
    """
    drawn = []
    for labeller in range(2):
        rng = np.random.default_rng([seed, labeller])
        scores = []
        for values in perceived:
            ranking = plackett_luce.annotator(values, rng, temperature)
            below = [0.0] * len(ranking)
            for place, i in enumerate(ranking):
                below[i] = float(len(ranking) - 1 - place)
            scores.append(below)
        drawn.append(scores)
    return Labels(drawn[0], drawn[1], fitted)


def quality(rows: Sequence[Sample], labels: Labels, gold: Scores | None) -> dict[str, float]:
    """Return metrics of labels: shares of the pairs of different texts with different scores.

        pairs                    the number of these pairs, not a share
        agreement                ordered alike by the second labeller
        first_preferred          whose first-drawn text is preferred
        longer_preferred         whose longer text is preferred, among pairs of different lengths
        accuracy                 ordered as gold does, among pairs with different gold
        accuracy/longer_worse    the same, among pairs whose shorter text has more gold
        gold/longer_preferred    whose longer text has more gold, among pairs of different lengths and gold

    A metric that cannot be measured is left out.
    """
    votes: dict[str, list[bool]] = {}
    pairs = 0
    for number, row in enumerate(rows):
        scores, texts, tokens = labels.scores[number], row["completions"], row["tokens"]
        for i in range(len(texts)):
            for j in range(i + 1, len(texts)):
                gap, longer = scores[i] - scores[j], tokens[i] - tokens[j]
                # the texts are equal, the scores are equal, or a score is NaN
                if texts[i] == texts[j] or not abs(gap) > 0:
                    continue
                pairs += 1
                votes.setdefault("first_preferred", []).append(gap > 0)
                if longer:
                    votes.setdefault("longer_preferred", []).append((gap > 0) == (longer > 0))
                if labels.second is not None:
                    other = labels.second[number][i] - labels.second[number][j]
                    votes.setdefault("agreement", []).append((gap > 0) == (other > 0))
                if gold is not None and (true := gold[number][i] - gold[number][j]):
                    votes.setdefault("accuracy", []).append((gap > 0) == (true > 0))
                    if longer:
                        votes.setdefault("gold/longer_preferred", []).append((true > 0) == (longer > 0))
                        if (true > 0) != (longer > 0):
                            votes.setdefault("accuracy/longer_worse", []).append((gap > 0) == (true > 0))
    shares = {name: sum(cast) / len(cast) for name, cast in votes.items()}
    return {"pairs": pairs, **shares}
