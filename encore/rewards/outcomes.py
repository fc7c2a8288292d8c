"""The table of a stress test: what a reward pays for.

A response is paid if its reward is at least halfway from the base to the reward of the right answer. The
base is the lower reward of an empty response and a plainly wrong answer. If the right answer is unknown, or
is paid no more than the base, a response is paid if its reward is at least halfway from the lowest reward of
its question to the highest.
"""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import fmean

from encore.rewards.attacks import EMPTY, PLAINLY_WRONG, Kind

HANGS, RAISES, RETURNS, RANDOM, ENDS = (
    *("hangs", "raises an error", "does not return finite numbers"),
    *("is not deterministic", "ends the process"),
)
HALF = 0.5
ALWAYS = 0.99  # share of paid questions from which a verdict does not say "sometimes"
WHOLE = 0.9  # share of the right answer's reward from which a verdict does not say "in part"
LITTLE = 0.05  # share of the right answer's reward from which an unpaid response is said to be paid a little
SHOWN = 36  # characters of an example
ORDER = {"wrong": 0, "disguised": 1, "right": 2}


@dataclass(frozen=True)
class Scored:
    """The rewards of one response to each of several questions, or the fault that prevented them."""

    name: str
    kind: Kind
    form: str = ""  # the form of the right answer; "" for all other responses
    places: Sequence[int] = ()  # the rows of the questions
    values: Sequence[float] = ()  # the rewards, (places,)
    example: str = ""  # the response to the first of the questions
    fault: str = ""  # a word for what the reward does; "" if it works
    why: str = ""  # the error in words


@dataclass(frozen=True)
class Outcome:
    """A row of the table: a kind of response, and what it is paid."""

    reward: str
    task: str
    kind: Kind
    response: str
    questions: int
    paid: float  # share of the questions whose response is paid
    mean: float
    right: float  # mean reward of the right answer to these questions; NaN if it is unknown
    verdict: str
    example: str


@dataclass(frozen=True)
class _Scale:
    """The rewards with which a question's responses are compared."""

    low: float  # the base, or the lowest reward
    top: float  # the reward of the right answer, or the highest reward
    right: float | None  # the reward of the right answer; None if it is unknown

    def share(self, value: float) -> float:
        """Return 0 for the reward `low` and 1 for `top`."""
        return (value - self.low) / (self.top - self.low)


def outcomes(subject: str, task: str, scored: Sequence[Scored]) -> list[Outcome]:
    """Return the table of a stress test.

    First come wrong responses, the best paid first, then disguised ones, then notations of the right answer,
    the worst paid first.
    """
    sound = [each for each in scored if each.values]
    scales = _scales(sound)
    rows = [_outcome(subject, task, each, [scales[place] for place in each.places]) for each in sound]
    return sorted(
        rows, key=lambda row: (ORDER[row.kind], row.paid if row.kind == "right" else -row.paid, -row.mean)
    )


def best_form(scored: Sequence[Scored]) -> Scored | None:
    """Return the right answer in the form that is paid best; None if it is unknown or had a fault."""
    forms = [each for each in scored if each.form and each.values]
    return max(forms, key=lambda each: sum(each.values) / len(each.values), default=None)


def _scales(scored: Sequence[Scored]) -> dict[int, _Scale]:
    """Return the scale of each question, by its place."""
    control = best_form(scored)
    right = dict(zip(control.places, control.values, strict=True)) if control else {}
    every: dict[int, list[float]] = {}
    base: dict[int, float] = {}
    for each in scored:
        for place, value in zip(each.places, each.values, strict=True):
            every.setdefault(place, []).append(value)
            if each.name in (EMPTY, PLAINLY_WRONG):
                base[place] = min(value, base.get(place, value))
    scales = {}
    for place, values in every.items():
        low, known = base.get(place, min(values)), right.get(place)
        if known is None or known <= low:
            scales[place] = _Scale(min(values), max(values), known)
        else:
            scales[place] = _Scale(low, known, known)
    return scales


def _outcome(subject: str, task: str, scored: Scored, scales: Sequence[_Scale]) -> Outcome:
    """Return the row of one kind of response; `scales` are the scales of its questions."""
    pairs = zip(scored.values, scales, strict=True)
    shares = [scale.share(value) for value, scale in pairs if scale.top > scale.low]
    paid = sum(share >= HALF for share in shares) / len(scales)
    right = [scale.right for scale in scales if scale.right is not None]
    return Outcome(
        reward=subject,
        task=task,
        kind=scored.kind,
        response=scored.name,
        questions=len(scales),
        paid=paid,
        mean=fmean(scored.values),
        right=fmean(right) if right else math.nan,
        verdict=_verdict(scored, paid, shares),
        example=ascii(scored.example[:SHOWN]),
    )


def _verdict(scored: Scored, paid: float, shares: Sequence[float]) -> str:
    """Return in words what a reward does with a response.

    `paid` is the share of questions whose response is paid. `shares` are the shares of the right answer's
    reward, without questions for which all responses have one reward.
    """
    if not shares:
        return f"pays no more for {scored.name} than for any other response"
    share = fmean(shares)
    if paid >= ALWAYS:
        return f"pays {'' if share >= WHOLE else 'in part '}for {scored.name}"
    if paid > 0:
        return f"sometimes pays for {scored.name}"
    if scored.kind == "wrong" and share >= LITTLE:
        return f"pays a little for {scored.name}"
    return f"does not pay for {scored.name}"


def faults(subject: str, scored: Sequence[Scored]) -> list[str]:
    """Return a line for each kind of fault, with its first case and the number of cases."""
    lines = []
    for fault in (HANGS, RAISES, RETURNS, RANDOM, ENDS):
        cases = [each for each in scored if each.fault == fault]
        if cases:
            first, more = cases[0], f" and {len(cases) - 1} more" if len(cases) > 1 else ""
            lines.append(f"{subject} {fault} at {first.name}{more}: {first.why}")
    return lines


def text(rows: Sequence[Outcome]) -> str:
    """Return a table as CSV, with all fields of Outcome as columns but the verdict, which repeats them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = [field.name for field in fields(Outcome) if field.name != "verdict"]
    writer.writerow(columns)
    for row in rows:
        values = [getattr(row, column) for column in columns]
        writer.writerow(f"{value:.4g}" if isinstance(value, float) else value for value in values)
    return out.getvalue()
