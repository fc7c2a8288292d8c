"""Rollouts of several turns, as TRL's GRPOTrainer takes them: its `rollout_func` with an `env_mask`.

The loss, the ratios, the KL term, entropies and lengths then see the policy's own tokens alone; the rewards
do too. Whatever samples a turn is the trainer's own: transformers, vLLM or the lean sampler.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from encore.sampling.tools import Tool
from encore.sampling.turns import Talk, converse

OWN = "own_ids"  # the column of the policy's own tokens


def rollouts(tool: Tool, learn_results: bool) -> Callable[[list[str], Any], dict[str, list[Any]]]:
    """TRL's `rollout_func` of policies that may call `tool`; prompts are texts."""

    def sample(prompts: list[str], trainer: Any) -> dict[str, list[Any]]:
        ids = trainer._tokenize_prompts(prompts)[0]

        def draw(contexts: list[list[int]], cap: int, also: list[int]) -> Any:
            with _until(trainer, cap, also):
                # one completion a context, of which no two need be alike
                return trainer._generate_single_turn(contexts, None, {}, 1)

        talks = converse(ids, trainer.max_completion_length, draw, tool, trainer.processing_class)
        # the sampler has no log-probabilities of results, which matters where these are learned
        known = bool(talks[0].logps) and not learn_results
        if (last := trainer._drawn) is not None:  # those of one turn alone
            trainer._drawn = _rectangle(talks, last) if known else None
        return {
            "prompt_ids": ids,
            "completion_ids": [talk.ids for talk in talks],
            "logprobs": [talk.logps for talk in talks] if known else None,
            "env_mask": [talk.own for talk in talks],
            OWN: [talk.said for talk in talks],
            "turns": [talk.turns(trainer.processing_class) for talk in talks],
            "calls": [talk.calls for talk in talks],
            "malformed": [talk.malformed for talk in talks],
        }

    return sample


def own_part(
    inputs: Sequence[dict[str, Any]], completions: Sequence[Any], ids: list[list[int]], tokenizer: Any
) -> tuple[Sequence[Any], list[list[int]]]:
    """Completions and their token ids without what a tool has said; as they are where there is none."""
    if OWN not in inputs[0]:
        return completions, ids
    own = [row[OWN] for row in inputs]
    return tokenizer.batch_decode(own, skip_special_tokens=True), own


def _rectangle(talks: Sequence[Talk], like: torch.Tensor) -> torch.Tensor:
    """(batch, time) log-probabilities as the sampler gave them, 0 for results and after the end."""
    width = max(len(talk.ids) for talk in talks)
    rows = [talk.logps + [0.0] * (width - len(talk.logps)) for talk in talks]
    return torch.tensor(rows, dtype=like.dtype, device=like.device)


@contextmanager
def _until(trainer: Any, cap: int, also: Sequence[int]) -> Iterator[None]:
    """Let completions have at most `cap` tokens, and end with one of `also` too."""
    whole, ends = trainer.max_completion_length, trainer.eos_token_ids
    trainer.set_cap(cap)
    _end_with(trainer, [*ends, *also], also)
    try:
        yield
    finally:
        trainer.set_cap(whole)
        _end_with(trainer, ends, ())


def _end_with(trainer: Any, ends: Sequence[int], also: Sequence[int]) -> None:
    trainer.eos_token_ids = [*ends]
    if trainer.use_vllm:
        given = trainer.args.generation_kwargs or {}  # vLLM knows the checkpoint's own ends
        stops = [*given.get("stop_token_ids", []), *also]
        trainer.vllm_generation.generation_kwargs = {**given, "stop_token_ids": stops}
    else:
        trainer.generation_config.eos_token_id = [*ends]
        trainer.generation_kwargs["eos_token_id"] = [*ends]
