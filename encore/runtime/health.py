"""Checks before, during and after a stage's work. An error stops the stage; a warning goes into metrics.json.

What cannot be checked, because it was not measured, gives no check at all.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple, TypedDict

from encore.errors import UserError
from encore.runtime import curves, sentinel

Severity = Literal["error", "warning"]
Precision = Literal["full", "half"]  # half: bfloat16 or float16, as the weights' type or by autocast

FORMS = ("template", "chat")  # the keys by which a recipe says how questions are put

# Above a tenth, the cap and not the policy decides how long a completion is.
TRUNCATION = 0.10
# Above a half, most of a rollout carries no gradient: the task is too easy, too hard, or the reward is flat.
ZERO_VARIANCE = 0.50
# Any underfull rollout carries less gradient than the recipe intends.
UNDERFULL = 0.0
# Below a tenth of its first value, sampling is all but greedy and the policy finds nothing new.
ENTROPY_LEFT = 0.10
# Before its first update the policy is the one that sampled the rollout. A ratio further from 1 than rounding
# explains means that training computes other log-probabilities than sampling did.
RATIO_AT_START = 1e-4


class GapLimits(NamedTuple):
    """Limits of the mean difference between a sampler's log-probabilities and the trainer's, nats a token."""

    warns: float
    stops: float  # the sampler is no longer the policy that learns
    growth: float | None  # a gap above `warns` also stops at so many times the run's first gaps
    rows: int  # the gap that is judged is the median of so many log rows, each of one rollout or more


# Float32 gives a millionth, so any row that is further away has a cause. In bf16 a sound run has a gap:
# Qwen2.5-0.5B between vLLM and a trainer has a root mean square of 0.031 to 0.041 nats a token
# (ServiceNow/Fast-LLM#525) or a standard deviation of 0.050 with a tail (95th percentile 0.113,
# huggingface/trl#6789), which is a mean of 0.02 to 0.04. Single rollouts lie higher, hence the median.
SAMPLER_GAP: dict[Precision, GapLimits] = {
    "full": GapLimits(warns=0.005, stops=0.05, growth=None, rows=1),
    "half": GapLimits(warns=0.06, stops=0.3, growth=5.0, rows=5),
}

FLAT = "last_fifth/frac_reward_zero_std/"  # + a domain: of stages with several


class Check(TypedDict):
    """One check, as metrics.json has it."""

    check: str  # its name
    ok: bool
    value: float
    limit: float
    message: str
    severity: Severity


def check(
    name: str, ok: bool, value: float, limit: float, message: str, severity: Severity = "warning"
) -> Check:
    return {
        "check": name,
        "ok": bool(ok),
        "value": float(value),
        "limit": float(limit),
        "message": message,
        "severity": severity,
    }


def stop_at_errors(checks: Sequence[Check]) -> list[Check]:
    """`checks` unchanged. Raises UserError with the first one that failed and is an error."""
    for one in checks:
        if not one["ok"] and one["severity"] == "error":
            raise UserError(f"health check {one['check']}: {one['message']}")
    return list(checks)


# -- an evaluation -------------------------------------------------------------------------------------------


def unjudged(task: str, failures: Sequence[str], completions: int) -> Check:
    """What one's own verifier said of completions that it failed over, of so many: they count as wrong."""
    message = f"{task}: {len(failures)} of {completions} completions count as wrong: {failures[0]}"
    severity: Severity = "error" if len(failures) == completions else "warning"
    return check("verifier_fails", False, len(failures) / completions, 0.0, message, severity)


# -- the data ------------------------------------------------------------------------------------------------


def enough(available: int, needed: int, what: str) -> Check:
    """Training leaves out an incomplete last batch of an epoch; with less than one batch it does nothing."""
    message = f"one step takes {needed} {what}, there are {available}"
    return check("enough_data", available >= needed, available, needed, message, "error")


def enough_prompts(available: int, needed: int) -> Check:
    """With fewer prompts than one rollout takes, TRL makes no step, and does not say so."""
    message = f"one rollout takes {needed} prompts, there are {available}"
    return check("enough_prompts", available >= needed, available, needed, message, "error")


def known_tokens(tokenizer: Any, texts: Sequence[str], what: str) -> Check:
    """The tokenizer knows every token of `texts`. A policy may itself have written the unknown token."""
    unknown, written = tokenizer.unk_token_id, tokenizer.unk_token
    bad = []
    if unknown is not None and texts:
        read = zip(texts, tokenizer(list(texts))["input_ids"], strict=True)
        bad = [text for text, ids in read if ids.count(unknown) > text.count(written)]
    message = f"the tokenizer knows all of every {what}"
    if bad:
        message = (
            f"the tokenizer does not know a part of the {what} {bad[0]!r}; does the template fit the model?"
        )
    return check("known_tokens", not bad, len(bad), 0, message, "error")


def context(longest: int, cap: int, limit: int | None) -> Check:
    """Prompt and completion, or a document (`cap` 0), fit into the model's context."""
    what = "the longest document needs"
    if cap:
        what = f"the longest prompt ({longest} tokens) and a completion of {cap} need"
    message = f"{what} {longest + cap} positions, the model has {limit}"
    return check(
        "context", limit is None or longest + cap <= limit, longest + cap, limit or 0, message, "error"
    )


def left_out(long: int, prompts: int, max_length: int | None) -> Check:
    """No prompt was left out for a response that makes more than `max_length` tokens with it."""
    message = f"{long} of {prompts} prompts have a response longer than max_length {max_length}"
    return check("long", long == 0, long, 0, f"{message}: they are skipped")


def template_of(policy: Path | None, own: Any) -> Any:
    """The template, or `chat`, that a policy was trained with; of several `own` if it is one, else the first.

    `policy`: the metrics.json of its stage.
    """
    config = sentinel.read(policy)["config"] if policy else {}
    parts = [config, *config.get("corpus", {}).get("also", []), *config.get("domains", {}).values()]
    templates = [part[key] for part in parts for key in FORMS if key in part]
    return own if own in templates else next(iter(templates), None)


def same_template(own: Any, policy: Path | None) -> Check:
    """Check that the policy was trained with `own`, the template or `chat` of a stage, as far as known."""
    base = template_of(policy, own)
    ok = base is None or base == own
    message = "the policy was trained with this template" if ok else f"the policy was trained with {base!r}"
    return check("same_template", ok, 0 if ok else 1, 0, message)


# -- what came of it -----------------------------------------------------------------------------------------


def truncated(rate: float) -> Check:
    """Warns if many sampled completions were cut before their end."""
    message = f"{rate:.1%} of completions are cut at the cap"
    return check("truncation", rate <= TRUNCATION, rate, TRUNCATION, message)


def falling_loss(curve: list[curves.Row], scalars: Mapping[str, float]) -> list[Check]:
    """Warns if the loss rises from the first fifth of the steps to the last."""
    first, last = curves.first_fifth(curve, "loss"), scalars.get("last_fifth/loss")
    if first is None or last is None:
        return []
    message = f"loss went from {first:.3f} in the first fifth of the steps to {last:.3f} in the last"
    return [check("loss", last <= first, last, first, message)]


def training(
    curve: list[curves.Row],
    scalars: Mapping[str, float],
    precision: Precision,
    when: str = "in the last fifth of the steps",
) -> list[Check]:
    """Warnings about a policy's training so far, from its curve and the curve's `scalars`.

    The last fifth of the steps is compared with a fixed limit (truncation, groups without variance), with the
    first value (entropy) or with the first fifth (accuracy, and of each domain all rewards). `precision`: in
    which the policy is trained. Messages end with `when`.
    """
    checks = []

    def warn(name: str, ok: bool, value: float, limit: float, text: str) -> None:
        checks.append(check(name, ok, value, limit, f"{text} {when}"))

    for name, key, limit, text in (
        ("truncation", "completions/clipped_ratio", TRUNCATION, "of completions are cut at the cap"),
        ("zero_variance", "frac_reward_zero_std", ZERO_VARIANCE, "of groups have zero variance"),
        ("underfull", "dynamic/underfull", UNDERFULL, "of rollouts lack groups of mixed outcome"),
    ):
        if name == "zero_variance" and "last_fifth/dynamic/underfull" in scalars:
            continue  # dynamic sampling samples such groups, and leaves them out of the rollout
        if (value := scalars.get(f"last_fifth/{key}")) is not None:
            warn(name, value <= limit, value, limit, f"{value:.1%} {text} (limit {limit:.0%})")
    entropy = next((value for _, name, value in curve if name == "entropy"), 0.0)
    last = scalars.get("last_fifth/entropy")
    if entropy > 0 and last is not None:
        left = last / entropy
        text = f"entropy went from {entropy:.3f} to {last:.3f} nats a token, {left:.1%}"
        warn("entropy", left >= ENTROPY_LEFT, left, ENTROPY_LEFT, f"{text} (limit {ENTROPY_LEFT:.0%})")
    first, last = curves.first_fifth(curve, "accuracy"), scalars.get("last_fifth/accuracy")
    if first is not None and last is not None:
        text = f"accuracy went from {first:.3f} in the first fifth of the steps to {last:.3f}"
        warn("accuracy", last >= first, last, first, text)
    for domain in sorted(key.removeprefix(FLAT) for key in scalars if key.startswith(FLAT)):
        checks += _of_domain(domain, curve, scalars, when)
    return checks + sampled_as_trained(curve, precision)


def sampled_as_trained(curve: list[curves.Row], precision: Precision) -> list[Check]:
    """Check that sampling and training compute the same log-probabilities, at the worst place of `curve`."""
    gaps = [value for _, name, value in curve if name == "sampler_gap"]
    rows = SAMPLER_GAP[precision].rows
    windows = [gaps[start : start + rows] for start in range(max(len(gaps) - rows, 0) + 1)]
    worst = [_gap(gaps[:rows], max(windows, key=median), precision)] if gaps else []
    return ratio_at_start(curve) + worst


def ratio_at_start(curve: list[curves.Row]) -> list[Check]:
    """Check the largest distance of a ratio from 1 before the first update; no check if none was measured."""
    starts = [value for _, name, value in curve if name == "ratio/at_start"]
    if not starts:
        return []
    away = max(starts)
    text = f"importance ratios differ from 1 by up to {away:.1g} before the first update with a rollout"
    return [check("ratio_at_start", away <= RATIO_AT_START, away, RATIO_AT_START, text)]


def sampler_gap_now(gaps: Sequence[float], precision: Precision) -> list[Check]:
    """Check the newest of a run's `gaps`, one a log row in their order; no check of no gaps."""
    rows = SAMPLER_GAP[precision].rows
    return [_gap(gaps[:rows], gaps[-rows:], precision)] if gaps else []


def _gap(first: Sequence[float], window: Sequence[float], precision: Precision) -> Check:
    """Judge the median gap of `window`, by fixed limits and by the median of the run's `first` gaps.

    A window with fewer rows than the limits ask for warns, and stops nothing.
    """
    limits, gap, began = SAMPLER_GAP[precision], median(window), median(first)
    grown = max(limits.warns, limits.growth * began) if limits.growth else limits.stops
    stop = min(limits.stops, grown)
    stops = len(window) == limits.rows and gap > stop
    limit = stop if stops else limits.warns
    limited = f"limit {limit:.2g}"
    if stops and stop < limits.stops:
        limited += f"; the run began with {began:.2g}"
    text = (
        f"the sampler's log-probabilities differ from the trainer's by {gap:.2g} nats a token on average "
        f"({limited}): does it have the policy's weights, dtype and temperature, no top_p or top_k, "
        "and as a vLLM server --logprobs-mode processed_logprobs?"
    )
    return check("sampler_gap", gap <= limits.warns, gap, limit, text, "error" if stops else "warning")


def _of_domain(domain: str, curve: list[curves.Row], scalars: Mapping[str, float], when: str) -> list[Check]:
    """Warnings about one of several domains: its own limits, whether it learns, and each of its rewards."""
    checks = []
    for name, key, limit, text in (
        ("truncation", "completions/clipped_ratio", TRUNCATION, "completions are cut at the cap"),
        ("zero_variance", "frac_reward_zero_std", ZERO_VARIANCE, "groups have zero variance"),
    ):
        share = scalars[f"last_fifth/{key}/{domain}"]
        text = f"{share:.1%} of domain {domain}'s {text} (limit {limit:.0%}) {when}"
        checks.append(check(f"{name}/{domain}", share <= limit, share, limit, text))
    means = re.compile(rf"last_fifth/(rewards/([\w.:]+)/{domain})/mean")
    found = [match for match in map(means.fullmatch, sorted(scalars)) if match]
    for label, key in (("reward", f"reward/{domain}"), *((m[2], f"{m[1]}/mean") for m in found)):
        first, last = curves.first_fifth(curve, key), scalars[f"last_fifth/{key}"]
        if first is None:
            continue
        text = f"{label} of domain {domain} went from {first:.3f} in the first fifth of the steps"
        # a domain learns where its whole reward rises; one of several rewards may be at its top
        ok = last > first if label == "reward" else last >= first
        checks.append(check(key.removesuffix("/mean"), ok, last, first, f"{text} to {last:.3f} {when}"))
    return checks
