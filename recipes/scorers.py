"""Models as labellers: scores of samples by a reward model, by a policy's own implicit reward, by a judge."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recipes.labels import Labels, Scores

Row = Mapping[str, Any]


def reward_model(rows: Sequence[Row], metrics_json: Path, aggregate: str) -> tuple[Labels, int, int]:
    """Rewards of a stage's reward model, the mean or the worst of its members."""
    from recipes import reward_models

    model = reward_models.load(metrics_json)
    prompts, texts, truncated = flat(rows)
    rewards = model.score_text(prompts, texts, [not cut for cut in truncated])  # (members, completions)
    values = reward_models.aggregated(rewards, aggregate).tolist()
    parameters = sum(member.num_parameters() for member in model.members)
    return Labels(grouped(rows, values)), tokens(rows, model.tokenizer), parameters


def implicit(rows: Sequence[Row], policy: Path, reference: Path, beta: float) -> tuple[Labels, int, int]:
    """beta log(pi(y|x) / pi_ref(y|x)), the reward that DPO's policy implies but for a term of x alone."""
    from recipes import models
    from recipes.trainers.sequence_logps import sequence_logps

    prompts, texts, truncated = flat(rows)
    logps, parameters, counted = [], 0, 0
    for place in (policy, reference):
        source = models.locate(None, place)
        tokenizer, model = models.load_tokenizer(source), models.load(source)
        before = tokenizer(prompts)["input_ids"]
        # apart from the prompt, as when sampled: no token may span both
        after = tokenizer(texts, add_special_tokens=False)["input_ids"]
        ends = [[] if cut else [tokenizer.eos_token_id] for cut in truncated]
        replies = [[*ids, *end] for ids, end in zip(after, ends, strict=True)]
        logps.append(sequence_logps(model, before, replies))
        parameters += model.num_parameters()
        counted = tokens(rows, tokenizer)
    values = (beta * (logps[0] - logps[1])).tolist()
    return Labels(grouped(rows, values)), counted, parameters


def flat(rows: Sequence[Row]) -> tuple[list[str], list[str], list[bool]]:
    """Prompts, completions and whether each was cut, one row after another."""
    prompts = [row["prompt"] for row in rows for _ in row["completions"]]
    texts = [text for row in rows for text in row["completions"]]
    return prompts, texts, [cut for row in rows for cut in row["truncated"]]


def grouped(rows: Sequence[Row], values: Sequence[float]) -> Scores:
    """`values` of `flat`, K of each row."""
    left = iter(values)
    return [[float(next(left)) for _ in row["completions"]] for row in rows]


def tokens(rows: Sequence[Row], tokenizer: Any) -> int:
    """Of all prompts and completions, each prompt as often as it has completions."""
    widths = tokenizer([row["prompt"] for row in rows])["input_ids"]
    return sum(
        len(ids) * len(row["tokens"]) + sum(row["tokens"]) for ids, row in zip(widths, rows, strict=True)
    )
