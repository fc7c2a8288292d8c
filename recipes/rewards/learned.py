"""A reward model as the reward of a policy."""

from collections.abc import Callable
from typing import Any

from recipes.errors import UserError, nearest
from recipes.models.reward_model import AGGREGATES, RewardModel, aggregated


def as_reward(model: RewardModel, tokenizer: Any, aggregate: str = "mean") -> Callable[..., list[float]]:
    """TRL's reward function `reward_model`, which reads the token ids of the policy's completions.

    Of several members it logs how much they disagree, as the mean of their standard deviation. Raises
    UserError where the policy's `tokenizer` differs from the reward model's.
    """
    model.same_tokenizer(tokenizer)
    if aggregate not in AGGREGATES:
        raise UserError(f"ensemble: unknown {aggregate!r}{nearest(aggregate, [*AGGREGATES])}")

    def reward(prompts: list, completions: list, completion_ids: Any = None, **columns: Any) -> list[float]:
        if completion_ids is None:
            raise ValueError("reward_model needs completion_ids")
        rewards = model.score(prompts, completion_ids)  # (members, batch)
        log = columns.get("log_metric")
        if log is not None and len(rewards) > 1:
            log("rewards/reward_model/members_std", float(rewards.std(dim=0).mean()))
        return aggregated(rewards, aggregate).tolist()

    reward.__name__ = "reward_model"
    return reward
