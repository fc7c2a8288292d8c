"""What stages that learn from rollouts share: the checks before them and the record of them."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from encore.data import forms
from encore.data.token_ids import end_ids, prompt_ids
from encore.errors import UserError
from encore.learning.completions import CompletionsLog
from encore.learning.ratio_statistics import RatioStatistics
from encore.runtime import curves, files, gpus, health, reward_checks
from encore.stages.policy import Policy, positions


def defaults(args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of GRPO and PPO where a recipe's `args` do not say."""
    # on a CPU a static cache is a tenth faster than one that grows by copying
    growing = torch.cuda.is_available() or args.get("bf16")
    cache = {} if growing else {"cache_implementation": "static"}
    # a large model loads for minutes; a vLLM server that fails is noticed at once
    return {"save_steps": 20, "vllm_server_timeout": 1200.0, **cache}


def check_cache(args: Any) -> None:
    """Raise UserError where a cache of one precision would get two: autocast makes values bf16, not keys."""
    mixed = (args.bf16 or args.fp16) and "dtype" not in (args.model_init_kwargs or {})
    if mixed and "static" in (args.cache_implementation or ""):
        raise UserError(
            f"args.cache_implementation: {args.cache_implementation} holds keys and values in one precision, "
            "and bf16 mixes two; remove it, or set bf16 to false"
        )


def end_with_turns(args: Any, config: Mapping[str, Any], policy: Policy) -> None:
    """Tell vLLM, in `args`, how turns of a chat end: it has read the checkpoint's own ends alone."""
    if args.use_vllm and forms.chats(config):
        ends = {"stop_token_ids": end_ids(policy.generation, policy.tokenizer)}
        args.generation_kwargs = ends | (args.generation_kwargs or {})


def checks(
    config: Mapping[str, Any],
    inputs: Mapping[str, Path],
    policy: Policy,
    problems: Sequence[Mapping[str, Any]],
    rewards: Mapping[str, reward_checks.Reward],
    needed: int,
    cap: int,
) -> list[health.Check]:
    """Checks before training; UserError at the first error.

    `needed`: prompts a rollout; `cap`: most tokens of a completion.
    """
    prompts = [row["prompt"] for row in problems]
    longest = max(map(len, prompt_ids(prompts, policy.tokenizer)))
    return health.stop_at_errors(
        [
            health.enough_prompts(len(problems), needed),
            health.context(longest, cap, positions(policy.model)),
            *reward_checks.before_sampling(config, inputs.get("policy"), policy.tokenizer, problems, rewards),
        ]
    )


def opened(workdir: Path) -> CompletionsLog | None:
    """The log of completions under `workdir`; training cuts it to where it goes on from.

    Of several processes of a stage only the first has one; it records the rollouts of all.
    """
    return CompletionsLog(workdir / "completions.jsonl") if gpus.first() else None


def write(
    out: Path, history: Sequence[dict[str, Any]], ratios: RatioStatistics, log: CompletionsLog | None
) -> tuple[list[curves.Row], dict[str, float]]:
    """Write timing.csv, ratios.csv and completions.jsonl beside `out`; the curve without times, and its
    scalars."""
    curve = curves.rows(history)
    files.write(out.with_name("timing.csv"), curves.text(curves.timing(curve)))
    files.write(out.with_name("ratios.csv"), ratios.text())
    if log:
        log.flush()
        shutil.copyfile(log.path, out.with_name("completions.jsonl"))
    curve = curves.deterministic(curve)
    return curve, curves.scalars(curve)
