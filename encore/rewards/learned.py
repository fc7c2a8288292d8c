"""A reward model as the reward of a policy."""

from collections.abc import Callable, Mapping, Sequence
from math import exp, fsum
from typing import Any

from torch.nn.functional import logsigmoid

from encore.data.token_ids import prompt_ids
from encore.models.reward_model import RewardModel, aggregated
from encore.rewards.rules import Reward, text
from encore.rewards.step_rewards import Placer
from encore.worlds.protocol import Problem

RIGHT, WRONG, ANSWER = 1.0, -0.5, 1.0  # points of a step by its verdict, and the bonus of a right answer


def points(chances: Sequence[float]) -> float:
    """Return the mean of the steps' points, plus the bonus ANSWER if the last step is right.

    A step is right if its probability exceeds one half; `chances` are log-probabilities. Guides to process
    rewards give these points and some bonus for the last step; the size of the bonus is ours.
    """
    right = [exp(chance) > 0.5 for chance in chances]
    return sum(RIGHT if step else WRONG for step in right) / len(right) + ANSWER * right[-1]


# makes the reward of a completion from the log-probabilities of its steps; the answer is the last step
AGGREGATIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "last": lambda chances: exp(chances[-1]),
    "product": lambda chances: exp(fsum(chances)),
    "min": lambda chances: exp(min(chances)),
    "sum": lambda chances: fsum(map(exp, chances)),
    "points": points,
}


def as_reward(
    model: RewardModel, tokenizer: Any, aggregate: str = "mean", name: str = "reward_model"
) -> Reward:
    """Return TRL's reward function `name`, which reads the token ids of the policy's completions.

    If the model has several members, it logs their standard deviation, averaged over completions. Raises
    UserError if the tokenizers of the policy and of the reward model differ.
    """
    model.same_tokenizer(tokenizer)

    def reward(prompts: list, completions: list, completion_ids: Any = None, **columns: Any) -> list[float]:
        if completion_ids is None:
            raise ValueError(f"{name} needs completion_ids")
        rewards = model.score(prompts, completion_ids)  # (members, batch)
        log = columns.get("log_metric")
        if log is not None and len(rewards) > 1:
            log(f"rewards/{name}/members_std", float(rewards.std(dim=0).mean()))
        return aggregated(rewards, aggregate).tolist()

    reward.__name__ = name
    return reward


def guarded(helpful: Reward, safe: Reward, threshold: float) -> Reward:
    """Return the reward function that is `safe` where `safe` is below the threshold, and `helpful` elsewhere.

    It is the piecewise combination of Llama 2 (arXiv 2307.09288, §3.2.3), without its tag of prompts. The
    function logs the share of completions below the threshold, as `rewards/<name of helpful>/unsafe`.
    """

    def reward(prompts: list, completions: list, **columns: Any) -> list[float]:
        safety = safe(prompts, completions, **columns)
        if (log := columns.get("log_metric")) is not None:
            log(
                f"rewards/{helpful.__name__}/unsafe", sum(score < threshold for score in safety) / len(safety)
            )
        scores = zip(safety, helpful(prompts, completions, **columns), strict=True)
        return [guard if guard < threshold else score for guard, score in scores]

    reward.__name__ = helpful.__name__
    return reward


def of_steps(model: RewardModel, tokenizer: Any, place: Placer, aggregation: str) -> Reward:
    """Return a reward function for TRL, named `reward_model`: an aggregate of the steps' probabilities.

    `aggregation` is a key of AGGREGATIONS.

    `last`, `product` and `min` are between 0 and 1, and `points` between -0.5 and 2; `sum` grows with the
    number of steps, so it pays for more steps (Cheng et al. 2025, arXiv 2504.15275, §3). The function logs
    how many steps a completion has. Raises UserError if the tokenizers of the policy and of the reward model
    differ.
    """
    model.same_tokenizer(tokenizer)

    def reward(prompts: list, completions: list, completion_ids: Any = None, **columns: Any) -> list[float]:
        if completion_ids is None:
            raise ValueError("reward_model needs completion_ids")
        begun = columns.get("prefill") or [""] * len(prompts)
        of_task = zip(columns["question"], columns["answer"], begun, strict=True)
        problems = [Problem(question, answer, 0, start or "") for question, answer, start in of_task]
        replies = zip(problems, map(text, completions), completion_ids, strict=True)
        places = [place(problem, said, [*ids]) for problem, said, ids in replies]
        before = prompt_ids(prompts, model.tokenizer)
        chances = log_chances(
            model,
            [[*prompt, *ids] for prompt, ids in zip(before, completion_ids, strict=True)],
            [[len(prompt) + end for end in ends] for prompt, ends in zip(before, places, strict=True)],
        )
        if (log := columns.get("log_metric")) is not None:
            log("rewards/reward_model/steps", sum(map(len, chances)) / len(chances))
        return [AGGREGATIONS[aggregation](steps) for steps in chances]

    reward.__name__ = "reward_model"
    return reward


def log_chances(
    model: RewardModel, sequences: Sequence[Sequence[int]], places: Sequence[Sequence[int]]
) -> list[list[float]]:
    """Return log sigmoid(r) of a process reward model's scores r at `places` of each sequence of ids."""
    return [logsigmoid(scores.double()).tolist() for scores in model.score_places(sequences, places)]
