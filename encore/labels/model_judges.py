"""Models as labellers: a reward model, a policy's implicit reward, or a language model that is asked.

`reward_model`, `implicit` and `language_model` return the labels, the number of tokens read, and the number
of parameters that read them. `Judge` is the language model by itself, as evaluations ask it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import torch

from encore.data.samples import Sample
from encore.data.token_ids import prompt_ids, reply_ids
from encore.errors import UserError
from encore.labels.annotators import Labels, Scores
from encore.models.language_model import Source, device, load_for_inference, load_tokenizer, locate
from encore.models.logprobs import sequence_logps
from encore.models.packing import shortest_first
from encore.models.reward_model import aggregated
from encore.models.reward_model import load as load_reward_model
from encore.recipe.base import present
from encore.recipe.kinds.label import Labeller

ASKED = 16  # number of questions at once


def reward_model(rows: Sequence[Sample], metrics_json: Path, aggregate: str) -> tuple[Labels, int, int]:
    """Return as labels the rewards by a stage's reward model: the mean or the worst of its members."""
    model = load_reward_model(metrics_json).to(device())
    prompts, texts, truncated = _flat(rows)
    rewards = model.score_text(prompts, texts, truncated)  # (members, completions)
    values = aggregated(rewards, aggregate).tolist()
    parameters = sum(member.num_parameters() for member in model.members)
    return Labels(_per_row(rows, values)), tokens(rows, model.tokenizer), parameters


def implicit(rows: Sequence[Sample], policy: Path, reference: Path, beta: float) -> tuple[Labels, int, int]:
    """Return as labels DPO's implicit reward, beta log(pi(y|x) / pi_ref(y|x)), up to a term in x alone."""
    prompts, texts, truncated = _flat(rows)
    logps, parameters, counted = [], 0, 0
    for place in (policy, reference):
        source = locate(place)
        tokenizer, model = load_tokenizer(source), load_for_inference(source)
        replies = reply_ids(texts, truncated, tokenizer)
        logps.append(sequence_logps(model, prompt_ids(prompts, tokenizer), replies))
        parameters += model.num_parameters()
        counted = tokens(rows, tokenizer)
    values = (beta * (logps[0] - logps[1])).tolist()
    return Labels(_per_row(rows, values)), counted, parameters


def language_model(
    rows: Sequence[Sample], dials: Labeller, policy: Path | None = None
) -> tuple[Labels, int, int]:
    """Return as labels how often a language model prefers a completion to the others of its prompt.

    It is the labeller of Lee et al. (2023, §2.1). `policy`, or without it the dial `model`, is asked
    `question`, with {prompt}, {first} and {second} filled in, and answers 1 or 2: P(first) is the softmax of
    the log-probabilities of these two tokens. With `both_orders` (the default) P(first) is averaged over both
    orders of a pair, which cancels a preference for one position. Raises UserError if the tokenizer has no
    such tokens, or if a question does not fit.
    """
    judge = load_judge(locate(policy or dials.model), "labeller")
    pairs = [
        (number, i, j)
        for number, row in enumerate(rows)
        for i, j in permutations(range(len(row["completions"])), 2)
        if i < j or dials.both_orders
    ]
    asked = [
        ask(present(dials.question), rows[n]["prompt"], rows[n]["completions"], i, j) for n, i, j in pairs
    ]
    first, read = judge.answers(asked)
    scores = [[0.0] * len(row["completions"]) for row in rows]
    for (number, i, j), p in zip(pairs, first, strict=True):
        scores[number][i] += p
        scores[number][j] += 1 - p
    return Labels(scores), read, judge.model.num_parameters()


@dataclass(frozen=True)
class Judge:
    """A language model that is asked which of two texts is better, and answers 1 or 2."""

    model: Any
    tokenizer: Any
    digits: tuple[int, int]  # token ids of the answers 1 and 2
    digest: str
    key: str  # the configuration key that names the model, for messages

    def answers(self, questions: Sequence[str]) -> tuple[list[float], int]:
        """Return the probability of answer 1 to each question, and the number of tokens read.

        Raises UserError if a question is too long.
        """
        ids = prompt_ids(questions, self.tokenizer)
        longest = max(map(len, ids), default=0)
        limit = getattr(self.model.config, "max_position_embeddings", None)
        if limit is not None and longest > limit:
            raise UserError(
                f"{self.key}.question: the longest question has {longest} tokens, but the model has {limit} "
                "positions"
            )
        return preferred(self.model, self.tokenizer, ids, self.digits), sum(map(len, ids))


def load_judge(source: Source, key: str) -> Judge:
    """Return the judge with the model `source`. Raises UserError if it has no tokens 1 and 2."""
    tokenizer, model = load_tokenizer(source), load_for_inference(source)
    digits = [tokenizer(digit, add_special_tokens=False)["input_ids"] for digit in "12"]
    if any(len(ids) != 1 or ids[0] == tokenizer.unk_token_id for ids in digits):
        raise UserError(f"{key}: the model asked, {source.place}, has no tokens for the answers 1 and 2")
    return Judge(model, tokenizer, (digits[0][0], digits[1][0]), source.digest, key)


def preferred(
    model: Any, tokenizer: Any, questions: Sequence[list[int]], answers: Sequence[int]
) -> list[float]:
    """Return P(first answer) after each question: the softmax of the logits of the two tokens `answers`."""
    shares = [0.0] * len(questions)
    model.eval()
    for batch in shortest_first([len(ids) for ids in questions], ASKED):
        padded = tokenizer.pad(
            {"input_ids": [questions[i] for i in batch]}, padding_side="left", return_tensors="pt"
        ).to(model.device)
        mask = padded["attention_mask"]
        with torch.no_grad():
            logits = model(
                input_ids=padded["input_ids"],
                attention_mask=mask,
                # counts only real tokens, as if there were no padding
                position_ids=(mask.cumsum(1) - 1).clamp(min=0),
                logits_to_keep=1,
                use_cache=False,
            ).logits[:, -1, list(answers)]  # (batch, 2)
        for i, p in zip(batch, logits.float().softmax(dim=1)[:, 0].tolist(), strict=True):
            shares[i] = p
    return shares


def ask(question: str, prompt: str, texts: Sequence[str], first: int, second: int) -> str:
    """Return the question about two completions; braces in the completions are plain text."""
    filled = {"{prompt}": prompt, "{first}": texts[first], "{second}": texts[second]}
    return re.sub("|".join(map(re.escape, filled)), lambda match: filled[match.group()], question)


def _flat(rows: Sequence[Sample]) -> tuple[list[str], list[str], list[bool]]:
    """Return prompts, texts, and whether the text is truncated, for all completions in the order of rows."""
    prompts = [row["prompt"] for row in rows for _ in row["completions"]]
    texts = [text for row in rows for text in row["completions"]]
    return prompts, texts, [cut for row in rows for cut in row["truncated"]]


def _per_row(rows: Sequence[Sample], values: Sequence[float]) -> Scores:
    """Return `values`, which are in the order of `_flat`, as K values for each row."""
    left = iter(values)
    return [[float(next(left)) for _ in row["completions"]] for row in rows]


def tokens(rows: Sequence[Sample], tokenizer: Any) -> int:
    """Return the number of tokens of all completions, each counted together with its prompt."""
    widths = prompt_ids([row["prompt"] for row in rows], tokenizer)
    return sum(
        len(ids) * len(row["tokens"]) + sum(row["tokens"]) for ids, row in zip(widths, rows, strict=True)
    )
