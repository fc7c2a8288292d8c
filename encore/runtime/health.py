"""Checks before, during and after a stage's work. An error stops the stage; warnings go into metrics.json.

A quantity that was not measured is not checked.
"""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple, TypedDict

from encore.errors import UserError
from encore.runtime import curves, sentinel

Severity = Literal["error", "warning"]
# half: trained in bfloat16 or float16, by the weights' type or by autocast; rounded: the sampler is
# rounded on purpose, whatever the policy is trained in
Precision = Literal["full", "half", "rounded"]

FORMS = ("template", "chat")  # the keys by which a recipe sets the form of questions

# Above a tenth, the cap and not the policy decides how long a completion is.
TRUNCATION = 0.10
# Above a half, most of a rollout carries no gradient: the task is too easy, too hard, or the reward is flat.
ZERO_VARIANCE = 0.50
# Any underfull rollout carries less gradient than the recipe intends.
UNDERFULL = 0.0
# Below a tenth of its first value, sampling is all but greedy and the policy finds nothing new.
ENTROPY_LEFT = 0.10
# Before its first update the policy is the one that sampled the rollout. If a ratio is further from 1 than
# rounding explains, training computes other log-probabilities than sampling did.
RATIO_AT_START = 1e-4


class GapLimits(NamedTuple):
    """The limits of the mean difference between sampler's and trainer's log-probabilities, nats a token."""

    warns: float
    stops: float  # above this gap the sampler is no longer the policy that learns
    # a gap above `warns` also stops the stage if it is this multiple of the run's first gaps
    growth: float | None
    rows: int  # number of log rows, each of one rollout or more, whose median is judged


# In float32 a gap is a millionth, so any larger gap has a cause. In bf16 a correct run has a gap:
# Qwen2.5-0.5B between vLLM and a trainer has a root mean square of 0.031 to 0.041 nats a token
# (ServiceNow/Fast-LLM#525) or a standard deviation of 0.050 with a tail (95th percentile 0.113,
# huggingface/trl#6789), which is a mean of 0.02 to 0.04. Single rollouts have larger gaps; therefore the
# median is judged.
SAMPLER_GAP: dict[Precision, GapLimits] = {
    "full": GapLimits(warns=0.005, stops=0.05, growth=None, rows=1),
    "half": GapLimits(warns=0.06, stops=0.3, growth=5.0, rows=5),
    "rounded": GapLimits(warns=0.3, stops=math.inf, growth=None, rows=5),  # a gap is what was asked for
}

FLAT = "last_fifth/frac_reward_zero_std/"  # metric of a domain, whose name follows


class Check(TypedDict):
    """A check, in the form of metrics.json."""

    check: str  # name of the check
    ok: bool
    value: float
    limit: float
    message: str
    severity: Severity


def make_check(
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
    """Return `checks` unchanged. Raises UserError with the first failed check that is an error."""
    for check in checks:
        if not check["ok"] and check["severity"] == "error":
            raise UserError(f"health check {check['check']}: {check['message']}")
    return list(checks)


# -- an evaluation -------------------------------------------------------------------------------------------


def unjudged(task: str, failures: Sequence[str], completions: int) -> Check:
    """Return a check of how many of `completions` a user's verifier could not judge; they count as wrong."""
    message = f"{task}: {len(failures)} of {completions} completions count as wrong: {failures[0]}"
    severity: Severity = "error" if len(failures) == completions else "warning"
    return make_check("verifier_fails", False, len(failures) / completions, 0.0, message, severity)


# -- the data ------------------------------------------------------------------------------------------------


def enough(available: int, needed: int, what: str) -> Check:
    """Check that there are enough data for one batch, because training leaves out an incomplete batch."""
    message = f"one step takes {needed} {what}, there are {available}"
    return make_check("enough_data", available >= needed, available, needed, message, "error")


def enough_prompts(available: int, needed: int) -> Check:
    """Check that there are prompts for one rollout; with fewer, TRL silently makes no step."""
    message = f"one rollout takes {needed} prompts, there are {available}"
    if available < needed:
        message += "; ask for more `problems`, or for `copies` of each"
    return make_check("enough_prompts", available >= needed, available, needed, message, "error")


def known_tokens(tokenizer: Any, texts: Sequence[str], what: str) -> Check:
    """Check that the tokenizer knows all of `texts`, which `what` names in the message.

    A text may contain the unknown token itself, such as `<unk>`, because a policy can write it.
    """
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
    return make_check("known_tokens", not bad, len(bad), 0, message, "error")


def context(longest: int, cap: int, limit: int | None) -> Check:
    """Check that prompt and completion fit into the model's context; a document has `cap` 0."""
    what = "the longest document needs"
    if cap:
        what = f"the longest prompt ({longest} tokens) and a completion of {cap} need"
    message = f"{what} {longest + cap} positions, the model has {limit}"
    return make_check(
        "context", limit is None or longest + cap <= limit, longest + cap, limit or 0, message, "error"
    )


def left_out(long: int, prompts: int, max_length: int | None) -> Check:
    """Check that no prompt was left out because it has more than `max_length` tokens with a response."""
    message = f"{long} of {prompts} prompts have a response longer than max_length {max_length}"
    return make_check("long", long == 0, long, 0, f"{message}: they are skipped")


def template_of(policy: Path | None, stage_form: Any) -> Any:
    """Return the template, or `chat`, that a policy was trained with.

    If it was trained with several forms, the result is `stage_form` if it is one of them, otherwise the
    first. `policy` is the metrics.json of the policy's stage.
    """
    config = sentinel.read_sentinel(policy)["config"] if policy else {}
    parts = [config, *config.get("corpus", {}).get("also", []), *config.get("domains", {}).values()]
    templates = [part[key] for part in parts for key in FORMS if key in part]
    return stage_form if stage_form in templates else next(iter(templates), None)


def same_template(stage_form: Any, policy: Path | None) -> Check:
    """Check that the policy was trained with the stage's form, a template or `chat`, if the form is known."""
    base = template_of(policy, stage_form)
    ok = base is None or base == stage_form
    message = "the policy was trained with this template" if ok else f"the policy was trained with {base!r}"
    return make_check("same_template", ok, 0 if ok else 1, 0, message)


# -- the results ---------------------------------------------------------------------------------------------


def truncated(rate: float) -> Check:
    """Check that few completions were cut at the cap; `rate` is the share of completions that were."""
    message = f"{rate:.1%} of completions are cut at the cap"
    return make_check("truncation", rate <= TRUNCATION, rate, TRUNCATION, message)


def falling_loss(curve: list[curves.Row], scalars: Mapping[str, float]) -> list[Check]:
    """Check that the loss does not rise from the first fifth of the steps to the last; [] without a loss."""
    first, last = curves.first_fifth(curve, "loss"), scalars.get("last_fifth/loss")
    if first is None or last is None:
        return []
    message = f"loss went from {first:.3f} in the first fifth of the steps to {last:.3f} in the last"
    return [make_check("loss", last <= first, last, first, message)]


def training(
    curve: list[curves.Row],
    scalars: Mapping[str, float],
    precision: Precision,
    when: str = "in the last fifth of the steps",
) -> list[Check]:
    """Return checks of a policy's training so far, from its curve and the curve's `scalars`.

    The last fifth of the steps is compared with a fixed limit (truncation, groups without variance), with the
    first value (entropy) or with the first fifth (accuracy, and all rewards of each domain). `precision` is
    the precision in which the policy is trained. Messages end with `when`.
    """
    checks = []

    def warn(name: str, ok: bool, value: float, limit: float, text: str) -> None:
        checks.append(make_check(name, ok, value, limit, f"{text} {when}"))

    for name, key, limit, text in (
        ("truncation", "completions/clipped_ratio", TRUNCATION, "of completions are cut at the cap"),
        ("zero_variance", "frac_reward_zero_std", ZERO_VARIANCE, "of groups have zero variance"),
        ("underfull", "dynamic/underfull", UNDERFULL, "of rollouts lack groups of mixed outcome"),
    ):
        if name == "zero_variance" and "last_fifth/dynamic/underfull" in scalars:
            continue  # dynamic sampling draws such groups, but leaves them out of the rollout
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
    """Check that sampling and training computed the same log-probabilities, at the worst step of `curve`."""
    gaps = [value for _, name, value in curve if name == "sampler_gap"]
    rows = SAMPLER_GAP[precision].rows
    windows = [gaps[start : start + rows] for start in range(max(len(gaps) - rows, 0) + 1)]
    worst = [_gap(gaps[:rows], max(windows, key=median), precision)] if gaps else []
    return ratio_at_start(curve) + worst


def ratio_at_start(curve: list[curves.Row]) -> list[Check]:
    """Check how far importance ratios were from 1 before the first update; [] if that was not measured."""
    starts = [value for _, name, value in curve if name == "ratio/at_start"]
    if not starts:
        return []
    away = max(starts)
    text = f"importance ratios differ from 1 by up to {away:.1g} before the first update with a rollout"
    return [make_check("ratio_at_start", away <= RATIO_AT_START, away, RATIO_AT_START, text)]


def sampler_gap_now(gaps: Sequence[float], precision: Precision) -> list[Check]:
    """Check the newest of a run's `gaps`, a list with one gap for each log row; [] without gaps."""
    rows = SAMPLER_GAP[precision].rows
    return [_gap(gaps[:rows], gaps[-rows:], precision)] if gaps else []


def _gap(first: Sequence[float], window: Sequence[float], precision: Precision) -> Check:
    """Judge the median gap of `window`, by fixed limits and by the median of the run's `first` gaps.

    If the window has fewer rows than the limits require, the check may warn but never stops the run.
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
    return make_check("sampler_gap", gap <= limits.warns, gap, limit, text, "error" if stops else "warning")


def _of_domain(domain: str, curve: list[curves.Row], scalars: Mapping[str, float], when: str) -> list[Check]:
    """Return checks of a domain: truncation, groups without variance, and a rise of each of its rewards."""
    checks = []
    for name, key, limit, text in (
        ("truncation", "completions/clipped_ratio", TRUNCATION, "completions are cut at the cap"),
        ("zero_variance", "frac_reward_zero_std", ZERO_VARIANCE, "groups have zero variance"),
    ):
        share = scalars[f"last_fifth/{key}/{domain}"]
        text = f"{share:.1%} of domain {domain}'s {text} (limit {limit:.0%}) {when}"
        checks.append(make_check(f"{name}/{domain}", share <= limit, share, limit, text))
    means = re.compile(rf"last_fifth/(rewards/([\w.:]+)/{domain})/mean")
    metrics = [match for match in map(means.fullmatch, sorted(scalars)) if match]
    for label, key in (("reward", f"reward/{domain}"), *((m[2], f"{m[1]}/mean") for m in metrics)):
        first, last = curves.first_fifth(curve, key), scalars[f"last_fifth/{key}"]
        if first is None:
            continue
        text = f"{label} of domain {domain} went from {first:.3f} in the first fifth of the steps"
        # a domain learns if its whole reward rises; one of several rewards may be at its maximum already
        ok = last > first if label == "reward" else last >= first
        checks.append(make_check(key.removesuffix("/mean"), ok, last, first, f"{text} to {last:.3f} {when}"))
    return checks
