"""A stage with only the longest rows of its own data, to measure the most memory that it needs.

Prompts are repeated, and every completion runs to the cap, so a step has the shape of the worst step of the
run. Rewards by rule take no memory and are left out.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.data import demonstrations, forms, preferences, prompts, token_ids
from encore.errors import UserError
from encore.forecast import stand_ins
from encore.forecast.trial import Config
from encore.recipe.base import present
from encore.recipe.kinds import KINDS, GrpoStage, RewardModelStage, SftStage
from encore.recipe.kinds.domains import Domain
from encore.recipe.kinds.pairs import PairsStage
from encore.recipe.kinds.rollout import LEARNED, REWARD_MODEL, RolloutStage
from encore.runtime import files, health
from encore.sampling.turns import room
from encore.stages.job import typed
from encore.stages.policy import locate_policy
from encore.stages.sft import documents

ROWS = 4096  # more rows than any rollout or batch takes
HELD_OUT = 8
OF_PROMPTS = ("domains", "problems", "longest_prompt", "decontaminate", "replay", "caps")
# keys of rewards by rule, and `sampler`, because sampler lean ends completions before the cap
OF_ROLLOUTS = ("advantage", "dynamic_sampling", "soft_overlong_cache", "sampler", "tool", "learn_results")
OF_DEMONSTRATIONS = ("task", "template", "chat", "corpus", "also", "problems", "decontaminate")


@dataclass(frozen=True)
class Longest:
    """A stage with only the longest rows of its data, for trying its memory."""

    config: Config
    inputs: dict[str, Path]
    tokens: str  # text that says how many tokens a row has


def of_stage_kind(config: Config, inputs: Mapping[str, Path], seed: int, folder: Path) -> Longest | None:
    """Return the stage with only its longest rows, which are written to `folder`.

    None if a stage of this kind cannot be cut to its longest rows.
    """
    kind = config["run"]
    if issubclass(KINDS[kind], RolloutStage):
        return _rollouts(config, inputs, seed, folder)
    if kind == "sft":
        return _demonstrations(config, inputs, seed, folder)
    ranked = kind in ("dpo", "kto") or (kind == "reward_model" and "labels" not in config)
    return _comparisons(config, inputs, folder) if ranked else None


def _rollouts(config: Config, inputs: Mapping[str, Path], seed: int, folder: Path) -> Longest:
    stage, _ = typed(config["run"], config)
    assert isinstance(stage, RolloutStage)
    _, tokenizer = locate_policy(stage, inputs)
    rows_of_parts: list[tuple[int, str, RolloutStage | Domain]] = []
    parts: Mapping[str, RolloutStage | Domain] = {"": stage}
    for part in (stage.domains or parts if isinstance(stage, GrpoStage) else parts).values():
        dataset = prompts.of_task(part.questions, forms.of(part.form, tokenizer), part.problems, seed)
        kept, length = prompts.fitting(dataset, tokenizer, part.longest_prompt)
        lengths = [len(ids) for ids in token_ids.prompt_ids(kept["prompt"][:], tokenizer)]
        rows_of_parts.append((length, kept["question"][lengths.index(length)], part))
    length, question, part = max(rows_of_parts, key=lambda entry: entry[0])
    path = folder / "longest.jsonl"
    # each answer is a different number, because answers are checked before any training
    rows = ({"question": question, "answer": str(row)} for row in range(ROWS))
    files.write(path, "".join(json.dumps(row) + "\n" for row in rows))

    args, caps = dict(config["args"]), stage.caps_by_step if isinstance(stage, GrpoStage) else {}
    cap = max(caps.values(), default=present(stage.args.max_completion_length))
    cap += room(stage.tool if isinstance(stage, GrpoStage) else None, tokenizer)
    least = "min_tokens" if args.get("use_vllm") else "min_new_tokens"
    args["generation_kwargs"] = {**(args.get("generation_kwargs") or {}), least: cap}
    args["max_completion_length"] = cap
    if "mask_truncated_completions" in args:
        args["mask_truncated_completions"] = False  # otherwise there is nothing to learn from
    apart = (REWARD_MODEL,) if "safety_threshold" in config else LEARNED
    scored = [role for role in apart if role in inputs]
    longest = {
        **{key: value for key, value in config.items() if key not in (*OF_PROMPTS, *OF_ROLLOUTS)},
        **part.model_dump(include={*health.FORMS}, exclude_unset=True),
        "task": {"file": str(path), "question": "question", "answer": "answer", "verifier": "math"},
        "rewards": {"random": 0.0 if stage.run == "distillation" else 1.0} | dict.fromkeys(scored, 1.0),
        "args": args,
    }
    return Longest(longest, dict(inputs), f"a prompt of {length} tokens and a completion of {cap}")


def _demonstrations(config: Config, inputs: Mapping[str, Path], seed: int, folder: Path) -> Longest:
    stage, _ = typed(config["run"], config)
    assert isinstance(stage, SftStage)
    _, tokenizer = locate_policy(stage, inputs)
    words = tokenizer if stage.by_chat else None
    sources = demonstrations.sources(stage, inputs.get("data"), seed, words)
    rows, _ = demonstrations.usable([row for of_source in sources.values() for row in of_source])
    lengths = [len(document["input_ids"]) for document in documents(rows, tokenizer, whole=True)]
    longest, length = _longest(rows, lengths, stage.args.max_length)
    (prompt, reply), *further = demonstrations.exchanges(longest)
    empty = {"question": "", "answer": "", "difficulty": 0}
    whole = "".join([reply, *(text for exchange in further for text in exchange)])
    row = {**empty, "prompt": prompt, "completion": whole}
    data = stand_ins.of_completions(config, [row] * ROWS, folder)
    assert data, "a usable demonstration has a text"
    left = {key: value for key, value in config.items() if key not in OF_DEMONSTRATIONS}
    return Longest(left, {**inputs, "data": data}, f"a demonstration of {length} tokens")


def _comparisons(config: Config, inputs: Mapping[str, Path], folder: Path) -> Longest:
    stage, _ = typed(config["run"], config)
    assert isinstance(stage, PairsStage | RewardModelStage)
    _, tokenizer = locate_policy(stage, inputs)
    rows, _ = preferences.usable(preferences.load(inputs["data"]))
    lengths = [max(map(len, ids)) for ids in token_ids.tokenised(rows, tokenizer)]
    row, length = _longest(rows, lengths, stage.args.max_length)
    learnt, held_out = (row | {"split": split} for split in preferences.SPLITS)
    data = stand_ins.of_preferences(config, [learnt] * ROWS + [held_out] * HELD_OUT, folder)
    left = {key: value for key, value in config.items() if key != "problems"}
    return Longest(left, {**inputs, "data": data}, f"pairs of up to {length} tokens")


def _longest(rows: Sequence[Any], lengths: Sequence[int], limit: int | None) -> tuple[Any, int]:
    """Return the longest row of at most `limit` tokens, and its length. Raises UserError if there is none."""
    fits = [i for i, length in enumerate(lengths) if limit is None or length <= limit]
    if not fits:
        raise UserError(f"args.max_length: {limit}, and none of {len(rows)} rows is as short")
    best = max(fits, key=lambda i: lengths[i])
    return rows[best], lengths[best]
