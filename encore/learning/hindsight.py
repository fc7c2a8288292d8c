"""Hindsight: the prompts from which a policy teaches itself, each of which shows a right response (SDPO).

Hübotter et al. 2026, arXiv 2601.20802. A policy that is shown a right response to a question knows better
what to write at each token of another response to it. The response that is shown is the first right one of
the same group, other than the completion itself, as in TRL's SDPOTrainer. A completion without one is left
out of the loss.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from accelerate.utils import gather_object

from encore.data.forms import PREFILL, Prompter
from encore.data.token_ids import prompt_ids
from encore.learning.estimators import Stateless
from encore.learning.measures import Measures
from encore.learning.minibatch import Minibatch
from encore.learning.scoring import Row, Scores
from encore.worlds.text import RESPONSE

PLACES = re.compile(rf"(\{{question\}}|{re.escape(RESPONSE)})")


@dataclass(frozen=True)
class Hindsight:
    """The prompts of a teacher that sees a response: `text` has {question} and {response}."""

    text: str
    form: Prompter

    def prompt(self, row: Row, response: str) -> str:
        """Return the prompt of a row's question with a response; the response may hold braces."""
        prefill: str = row.get(PREFILL, "")
        values: dict[str, str] = {"{question}": row["question"], RESPONSE: prefill + response}
        shown = "".join(values.get(part, part) for part in PLACES.split(self.text))
        return self.form.put(shown, prefill[len(self.form.prefill) :])


@dataclass(frozen=True)
class OfHindsight(Stateless):
    """An estimator that gives each completion the prompt of its teacher, in place of an advantage."""

    hindsight: Hindsight
    trainer: Any
    measures: Measures

    def estimate(self, batch: Minibatch, scores: Scores) -> Minibatch:
        """Return `batch` with the teacher's prompts; completions without a response are out of the loss."""
        texts, tokenizer = gather_object(scores.texts), self.trainer.processing_class
        padded = self.trainer.parts.rollouts.padded
        shown = shown_responses((scores.accuracy >= 1).tolist(), self.trainer.num_generations)[scores.own]
        prompts = [
            row["prompt"] if place is None else self.hindsight.prompt(row, texts[place])
            for row, place in zip(scores.rows, shown, strict=True)
        ]
        ids = prompt_ids(prompts, tokenizer)
        helped = batch.completion_mask.new_tensor([place is not None for place in shown])
        self.measures.add_mean("hindsight", helped.float().mean())
        return replace(
            batch,
            completion_mask=batch.completion_mask * helped[:, None],
            taught_prompt_ids=padded(ids, tokenizer.pad_token_id, left=True),
            taught_prompt_mask=padded([[1] * len(row) for row in ids], 0, left=True),
        )


def shown_responses(right: Sequence[bool], group: int) -> list[int | None]:
    """Return the number of the response that each completion's teacher is shown; None if there is none.

    `right`: whether each completion is right; `group` completions in a row answer one question.
    """
    shown: list[int | None] = []
    for number in range(len(right)):
        start = number - number % group
        others = (other for other in range(start, start + group) if right[other] and other != number)
        shown.append(next(others, None))
    return shown
