"""Checks before, during and after training. An error stops the job; a warning goes into metrics.json.

Each check is a dict: check, ok, value, limit, message, severity.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from recipes.errors import UserError
from recipes.runtime import curves, sentinel

Check = dict[str, Any]
Reward = Callable[..., Sequence[float | None]]

GARBAGE = ("", " ", "\0", "asdf", "<answer></answer>", "</answer><answer>", "<think>" * 3)
CHECKED = 64  # problems whose gold answer is scored

# Above a tenth, the cap and not the policy decides how long a completion is.
TRUNCATION = 0.10
# Above a half, most of a rollout carries no gradient: the task is too easy, too hard, or the reward is flat.
ZERO_VARIANCE = 0.50
# Any: such a rollout carries less gradient than the recipe means.
UNDERFULL = 0.0
# Below a tenth of its start, sampling is all but greedy and nothing new is found any more.
ENTROPY_LEFT = 0.10
# Before the first update the policy is the one that sampled: more than rounding is another way to run it.
RATIO_AT_START = 1e-4


def truncated(rate: float) -> Check:
    """Warns of a share of sampled completions that never came to their end."""
    message = f"{rate:.1%} of completions are cut at the cap"
    return check("truncation", rate <= TRUNCATION, rate, TRUNCATION, message, "warning")


def check(name: str, ok: bool, value: float, limit: float, message: str, severity: str) -> Check:
    return {
        "check": name,
        "ok": bool(ok),
        "value": float(value),
        "limit": float(limit),
        "message": message,
        "severity": severity,
    }


def stop_at_errors(checks: Sequence[Check]) -> list[Check]:
    """`checks` as they are; UserError naming the first failed one of severity error."""
    for one in checks:
        if not one["ok"] and one["severity"] == "error":
            raise UserError(f"health check {one['check']}: {one['message']}")
    return list(checks)


def before_sampling(
    config: Mapping[str, Any],
    policy: Path | None,
    tokenizer: Any,
    rows: Sequence[Mapping[str, Any]],
    rewards: Mapping[str, Reward],
) -> list[Check]:
    """What every stage that samples checks of its prompts, rewards and template.

    `policy`: metrics.json of the stage it starts from; `rows` are those of recipes.data.prompts; `rewards`
    hold accuracy where answers can be verified.
    """
    strict = {name: rewards[name] for name in ("accuracy", "format") if name in rewards}
    base = sentinel.read(policy)["config"].get("template") if policy else None
    return [
        known_tokens(tokenizer, [row["prompt"] for row in rows], "prompt"),
        *([gold(rewards["accuracy"], rows)] if "accuracy" in rewards else []),
        garbage(strict, rows),
        same_template(config["template"], base),
    ]


def gold(reward: Reward, rows: Sequence[Mapping[str, Any]]) -> Check:
    """The accuracy reward of a completion that states the gold answer is 1."""
    rows = rows[:CHECKED]
    completions = [f"<think>{row['answer']}</think><answer>{row['answer']}</answer>" for row in rows]
    scores = score(reward, rows, completions)
    wrong = next((i for i, value in enumerate(scores) if value != 1.0), None)
    message = f"{len(rows)} gold answers score 1"
    if wrong is not None:
        row = rows[wrong]
        message = f"the gold answer {row['answer']!r} of {row['question']!r} scores {scores[wrong]}, not 1"
    share = sum(value == 1.0 for value in scores) / len(scores)
    return check("gold", wrong is None, share, 1.0, message, "error")


def garbage(rewards: Mapping[str, Reward], rows: Sequence[Mapping[str, Any]]) -> Check:
    """No reward for empty and meaningless completions."""
    worst, where = 0.0, ""
    for name, reward in rewards.items():
        for text in GARBAGE:
            value = max(v or 0.0 for v in score(reward, rows[:4], [text] * len(rows[:4])))
            if value > worst:
                worst, where = value, f"{name} gives {value:g} to the completion {text!r}"
    return check("garbage", worst == 0, worst, 0.0, where or "empty and garbage completions score 0", "error")


def score(
    reward: Reward, rows: Sequence[Mapping[str, Any]], completions: list[str]
) -> Sequence[float | None]:
    """Call a reward function the way TRL does: keyword arguments, one list per column."""
    columns = {key: [row[key] for row in rows] for key in rows[0] if key != "prompt"}
    prompts = [row["prompt"] for row in rows]
    return reward(prompts=prompts, completions=completions, completion_ids=[[0]] * len(rows), **columns)


def known_tokens(tokenizer: Any, texts: Sequence[str], what: str) -> Check:
    """The tokenizer knows every token of `texts`. A policy may have written the unknown token itself."""
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


def document_context(longest: int, max_length: int | None, limit: int | None) -> Check:
    """A document, cut at `max_length`, fits into the model's context."""
    return context(min(longest, max_length or longest), 0, limit)


def context(longest: int, cap: int, limit: int | None) -> Check:
    """Prompt and completion, or a document (`cap` 0), fit into the model's context."""
    what = "the longest document needs"
    if cap:
        what = f"the longest prompt ({longest} tokens) and a completion of {cap} need"
    message = f"{what} {longest + cap} positions, the model has {limit}"
    return check(
        "context", limit is None or longest + cap <= limit, longest + cap, limit or 0, message, "error"
    )


def enough_prompts(available: int, needed: int) -> Check:
    """TRL would do no step at all, and say nothing, with fewer prompts than one rollout takes."""
    message = f"one rollout takes {needed} prompts, there are {available}"
    return check("enough_prompts", available >= needed, available, needed, message, "error")


def same_template(own: str, base: str | None) -> Check:
    """The policy saw this template in its pretraining, where that is known."""
    ok = base is None or base == own
    message = "the policy was trained with this template" if ok else f"the policy was trained with {base!r}"
    return check("same_template", ok, 0 if ok else 1, 0, message, "warning")


def training(
    curve: list[curves.Row], scalars: Mapping[str, float], when: str = "in the last fifth of the steps"
) -> list[Check]:
    """Warnings from a policy's curve and its `scalars`: each compares the last fifth of the steps so far.

    Truncation and groups without variance with a fixed limit, entropy with its first value, accuracy with
    its first fifth. What was not measured is not checked. `when` ends the messages.
    """
    found = []

    def warn(name: str, ok: bool, value: float, limit: float, text: str) -> None:
        found.append(check(name, ok, value, limit, f"{text} {when}", "warning"))

    for name, key, limit, text in (
        ("truncation", "completions/clipped_ratio", TRUNCATION, "of completions are cut at the cap"),
        ("zero_variance", "frac_reward_zero_std", ZERO_VARIANCE, "of groups have zero variance"),
        ("underfull", "dynamic/underfull", UNDERFULL, "of rollouts lack groups of mixed outcome"),
    ):
        if name == "zero_variance" and "last_fifth/dynamic/underfull" in scalars:
            continue  # such groups are sampled, and then left out of the rollout
        if (value := scalars.get(f"last_fifth/{key}")) is not None:
            warn(name, value <= limit, value, limit, f"{value:.1%} {text} (limit {limit:.0%})")
    first = next((value for _, name, value in curve if name == "entropy"), 0.0)
    last = scalars.get("last_fifth/entropy")
    if first > 0 and last is not None:
        left = last / first
        text = (
            f"entropy went from {first:.3f} to {last:.3f} nats a token, {left:.1%} (limit {ENTROPY_LEFT:.0%})"
        )
        warn("entropy", left >= ENTROPY_LEFT, left, ENTROPY_LEFT, text)
    early, late = curves.first_fifth(curve, "accuracy"), scalars.get("last_fifth/accuracy")
    if early is not None and late is not None:
        text = f"accuracy went from {early:.3f} in the first fifth of the steps to {late:.3f}"
        warn("accuracy", late >= early, late, early, text)
    if starts := [value for _, name, value in curve if name == "ratio/at_start"]:
        away = max(starts)
        text = f"importance ratios differ from 1 by up to {away:.1g} before the first update with a rollout"
        found.append(check("ratio_at_start", away <= RATIO_AT_START, away, RATIO_AT_START, text, "warning"))
    return found
