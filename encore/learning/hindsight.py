"""Hindsight: the prompts from which a policy teaches itself, each of which shows a right response (SDPO).

Hübotter et al. 2026, arXiv 2601.20802. A policy that is shown a right response to a question knows better
what to write at each token of another response to it. The response that is shown is the first right one of
the same group, other than the completion itself, as in TRL's SDPOTrainer. If there is none, the teacher may
read feedback instead: what the verifier says of the completion, such as the tests that its program fails
(TRL's `environment_feedback_only_without_solution`). A completion without either is left out of the loss.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from accelerate.utils import gather_object
from torch import Tensor

from encore.data.forms import PREFILL, Prompter
from encore.data.token_ids import prompt_ids
from encore.learning.estimators import Stateless
from encore.learning.measures import Measures
from encore.learning.minibatch import Minibatch
from encore.learning.scoring import Row, Scores, problem_of
from encore.rewards.feedback import Feedback
from encore.worlds.text import FEEDBACK, RESPONSE

QUESTION = "{question}"
PLACES = re.compile("(" + "|".join(map(re.escape, (QUESTION, RESPONSE, FEEDBACK))) + ")")


@dataclass(frozen=True)
class Told:
    """A text that the teacher reads without a right response: it has {question} and {feedback}."""

    text: str
    feedback: Feedback


@dataclass(frozen=True)
class Hindsight:
    """The prompts of a teacher that sees a response: `text` has {question} and {response}."""

    text: str
    form: Prompter
    told: Told | None = None  # None if completions without a right response are left out

    def prompt(self, row: Row, response: str) -> str:
        """Return the prompt of a row's question with a response; the response may hold braces."""
        return self._filled(self.text, row, RESPONSE, _begun(row) + response)

    def prompt_with_feedback(self, row: Row, words: str) -> str:
        """Return the prompt of a row's question with words on the completion, which may hold braces."""
        assert self.told
        return self._filled(self.told.text, row, FEEDBACK, words)

    def _filled(self, text: str, row: Row, place: str, shown: str) -> str:
        values: dict[str, str] = {QUESTION: row["question"], place: shown}
        filled = "".join(values.get(part, part) for part in PLACES.split(text))
        return self.form.put(filled, _begun(row)[len(self.form.prefill) :])


@dataclass(frozen=True)
class OfHindsight(Stateless):
    """An estimator that gives each completion the prompt of its teacher, in place of an advantage."""

    hindsight: Hindsight
    trainer: Any
    measures: Measures

    def estimate(self, batch: Minibatch, scores: Scores) -> Minibatch:
        """Return `batch` with the teacher's prompts; completions without one are out of the loss."""
        texts, tokenizer = gather_object(scores.texts), self.trainer.processing_class
        padded = self.trainer.parts.rollouts.padded
        shown = shown_responses((scores.accuracy >= 1).tolist(), self.trainer.num_generations)[scores.own]
        prompts = [
            None if place is None else self.hindsight.prompt(row, texts[place])
            for row, place in zip(scores.rows, shown, strict=True)
        ]
        helped = seeing = _having(prompts, batch.completion_mask)
        self.measures.add_mean("hindsight", seeing.float().mean())
        if told := self.hindsight.told:
            prompts = self._with_feedback(told, prompts, scores)
            helped = _having(prompts, batch.completion_mask)
            self.measures.add_mean("feedback", (helped - seeing).float().mean())
        ids = prompt_ids(
            [prompt or row["prompt"] for prompt, row in zip(prompts, scores.rows, strict=True)], tokenizer
        )
        return replace(
            batch,
            completion_mask=batch.completion_mask * helped[:, None],
            taught_prompt_ids=padded(ids, tokenizer.pad_token_id, left=True),
            taught_prompt_mask=padded([[1] * len(row) for row in ids], 0, left=True),
        )

    def _with_feedback(self, told: Told, prompts: Sequence[str | None], scores: Scores) -> list[str | None]:
        """Return `prompts` with feedback where there is no prompt yet and the completion is wrong."""
        filled, right = [*prompts], (scores.accuracy >= 1)[scores.own].tolist()
        left = [place for place, prompt in enumerate(prompts) if prompt is None and not right[place]]
        rows = [scores.rows[place] for place in left]
        completions = [_begun(row) + scores.texts[place] for row, place in zip(rows, left, strict=True)]
        words = told.feedback([problem_of(row) for row in rows], completions)
        for place, row, said in zip(left, rows, self._cut(words), strict=True):
            if said:
                filled[place] = self.hindsight.prompt_with_feedback(row, said)
        return filled

    def _cut(self, texts: Sequence[str]) -> list[str]:
        """Return the texts, cut where they are longer than a completion may be: for so much there is room."""
        tokenizer, cap = self.trainer.processing_class, self.trainer.args.max_completion_length
        ids = tokenizer([*texts], add_special_tokens=False)["input_ids"] if texts else []
        return [
            text if len(tokens) <= cap else tokenizer.decode(tokens[:cap])
            for text, tokens in zip(texts, ids, strict=True)
        ]


def _having(prompts: Sequence[str | None], like: Tensor) -> Tensor:
    """Return 1 for each prompt and 0 for each None, (prompts,), of the type of `like`."""
    return like.new_tensor([prompt is not None for prompt in prompts])


def _begun(row: Row) -> str:
    """Return the beginning of the completion that a row's prompt has; "" if it has none."""
    return row.get(PREFILL) or ""


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
