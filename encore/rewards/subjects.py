"""The subjects of a stress test: the rewards of a part of a recipe, on the questions of its task."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from encore import worlds
from encore.data import forms, prompts
from encore.data.forms import NUMBER, PREFILL, Prompter
from encore.errors import UserError
from encore.recipe.caps import Caps
from encore.recipe.form import Form
from encore.recipe.kinds.rollout import LEARNED
from encore.recipe.reward_names import OVERLONG
from encore.recipe.task import Rewarded
from encore.rewards import rules, verifiers
from encore.rewards.stress import Subject
from encore.runtime.reward_checks import CHECKED, Row
from encore.worlds import World
from encore.worlds.final_answer import reference

LONGEST = 10**9  # tokens of a text, none of which is cut
MOST = 512  # problems of a world among which other answers, and the most common one, are sought


@dataclass(frozen=True)
class Sample:
    """A question that a policy has answered, and its wrong responses."""

    question: str
    answer: str
    difficulty: int
    prefill: str
    number: int
    wrong: tuple[str, ...]


def of_part(
    part: Rewarded,
    task: str,
    weights: Mapping[str, float],
    *,
    seed: int = 0,
    caps: Caps | None = None,
    cache: int | None = None,
    samples: Sequence[Sample] = (),
) -> Subject:
    """Return the subject of a stage or domain: its rewards, weighted as in training, on its own task.

    `task` is the name of the part in the table. Rewards of weight 0 are left out, and so are reward models,
    which a recipe trains. `caps` and `cache` are as in rules.build. Raises UserError as the reading of the
    data does.
    """
    used = {name: weight for name, weight in weights.items() if weight and name not in LEARNED}
    questions, form = part.questions, _prompter(part.form)
    world = questions.make_world()
    cache = cache if OVERLONG in used else None
    built = rules.build(used, world, seed, caps=caps, cache=cache, verifies=questions.verifies)
    problems = prompts.of_task(questions, form, min(part.problems or MOST, MOST) if world else None, seed)
    answered = verifiers.answer_suffices(questions)
    drawn: list[Row] = problems.select(range(min(CHECKED, len(problems)))).to_list()
    rows = [*drawn, *(_row(form, sample, drawn[0]) for sample in samples)]
    reward = next(iter(used)) if len(used) == 1 else " + ".join(f"{w:g} {name}" for name, w in used.items())
    return Subject(
        reward=reward,
        task=task,
        functions=dict(zip(used, built, strict=True)),
        weights=used,
        rows=rows,
        answers=[reference(answer) for answer in problems["answer"]] if answered else [],
        tokens=_tokens(world),
        wrong=[*([()] * len(drawn)), *(sample.wrong for sample in samples)],
    )


def _prompter(form: Form) -> Prompter:
    """Return the prompter of a form; for a chat the request alone, because no tokenizer is loaded."""
    if form.chat is None:
        return forms.plain(form.template)
    request = forms.plain(form.chat.user or "{question}")
    return Prompter(request.fill, form.chat.prefill or "")


def _tokens(world: World | None) -> Callable[[str], Sequence[int]]:
    """Return the function that makes tokens of a text: the world's tokens, or else its bytes."""
    if world is None or not world.vocabulary:
        return lambda text: list(text.encode(errors="surrogatepass"))
    tokenizer = worlds.tokenizer([world], model_max_length=LONGEST)
    return lambda text: tokenizer(text)["input_ids"]


def _row(form: Prompter, sample: Sample, like: Row) -> Row:
    """Return the row of a policy's question, with the columns of the row `like`."""
    columns = {
        "prompt": form.put(sample.question, "" if form.prefill else sample.prefill),
        "question": sample.question,
        "answer": sample.answer,
        "difficulty": sample.difficulty,
        PREFILL: sample.prefill,
        NUMBER: sample.number,
    }
    return {name: columns[name] for name in like}


def read_samples(file: Path) -> list[Sample]:
    """Return the first CHECKED questions of an evaluation's samples that have wrong responses.

    Raises UserError if the file is missing, or if a line is no sample with verdicts.
    """
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--samples: cannot read {file}: {error}") from None
    samples = (_sample(f"--samples: {file}, line {n}", line) for n, line in enumerate(lines, 1) if line)
    return [*islice((sample for sample in samples if sample.wrong), CHECKED)]


def _sample(place: str, line: str) -> Sample:
    try:
        row = json.loads(line)
        completions = row.get("completions") or []  # a task of likelihoods has none
        pairs = zip(completions, row["correct"] if completions else [], strict=True)
        return Sample(
            str(row["question"]),
            str(row["answer"]),
            int(row.get("difficulty") or 0),
            str(row.get(PREFILL) or ""),
            int(row.get(NUMBER) or 0),
            tuple(str(text) for text, right in pairs if right is False),  # None: nothing verifies
        )
    except (ValueError, TypeError, LookupError, AttributeError):
        raise UserError(
            f"{place}: expected question, answer, completions and correct, as encore eval writes them"
        ) from None
