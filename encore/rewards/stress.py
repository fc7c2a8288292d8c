"""The stress test of a reward: the rewards of the responses of attacks.py, and of a policy's own ones."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from types import SimpleNamespace

import torch

from encore import own_code
from encore.data.forms import PREFILL
from encore.errors import UserError, first_line
from encore.objectives.advantages import total
from encore.rewards.attacks import ATTACKS, FORMS, IN_FORM, Attack, Form, Item
from encore.rewards.notations import same
from encore.rewards.outcomes import HANGS, RAISES, RANDOM, RETURNS, Scored, best_form
from encore.rewards.rules import Reward
from encore.rewards.table import reward_table
from encore.runtime.reward_checks import Row
from encore.worlds.final_answer import reference

OTHERS = 8  # answers to other questions that an attack may list
SHOWN = 40  # characters of a response in a message
SAMPLED = "the best-paid wrong response of the policy"


@dataclass(frozen=True)
class Subject:
    """The reward under test, and the questions on which it is tested.

    `rows` have the columns that reward functions read. `answers` are the right answers of the whole data set,
    and empty if nobody can state them, as with unit tests. `wrong` has the wrong responses of a policy to
    each row, if there are any.
    """

    reward: str
    task: str
    functions: Mapping[str, Reward]
    weights: Mapping[str, float]
    rows: Sequence[Row]
    answers: Sequence[str]
    tokens: Callable[[str], Sequence[int]]
    wrong: Sequence[Sequence[str]] = ()


@dataclass
class Stress:
    """A stress test: `run` yields the rewards of each response, after `begin` was called with its name."""

    subject: Subject
    begin: Callable[[str], None] = lambda name: None
    items: list[Item] = field(init=False)

    def __post_init__(self) -> None:
        self.items = items(self.subject)

    def run(self) -> Iterator[Scored]:
        """Yield the right answer in each form, then all attacks in the best of them. Stop after a hang."""
        forms = []
        for form in FORMS:
            if scored := self._scored(IN_FORM, form):
                forms.append(scored)
                yield scored
                if scored.fault == HANGS:
                    return
        best = best_form(forms)
        form = FORMS[0] if best is None else next(form for form in FORMS if form.name == best.form)
        for attack in ATTACKS:
            if scored := self._scored(attack, form):
                yield scored
                if scored.fault == HANGS:
                    return
        if any(self.subject.wrong):
            self.begin(SAMPLED)
            yield self._best_sample()

    def _scored(self, attack: Attack, form: Form) -> Scored | None:
        """Return the rewards of an attack; None if no question has such a response."""
        responses = [attack.write(item, form) for item in self.items]
        places = [place for place, response in enumerate(responses) if response is not None]
        if not places:
            return None
        stated = form.name if attack is IN_FORM else ""
        name = f"{attack.name} {stated}".strip()
        self.begin(name)
        texts = [self._continued(place, responses[place] or "") for place in places]
        example = responses[places[0]] or ""
        return self._called(Scored(name, attack.kind, stated, places, example=example), texts)

    def _continued(self, place: int, response: str) -> str:
        """Return a response without its beginning, if the prompt already has it."""
        begun = str(self.subject.rows[place].get(PREFILL, "")).strip()
        begins = bool(begun) and response.lstrip().startswith(begun)
        return response.lstrip().removeprefix(begun) if begins else response

    def _called(self, scored: Scored, texts: Sequence[str]) -> Scored:
        """Return `scored` with the rewards of `texts`, which are computed twice, or with a fault."""
        rows = [self.subject.rows[place] for place in scored.places]
        ids = [self.subject.tokens(text) for text in texts]
        try:
            values, again = (self._values(rows, texts, ids) for _ in range(2))
        except own_code.Slow as error:
            return replace(scored, fault=HANGS, why=str(error))
        except own_code.Failed as error:
            return replace(scored, fault=RAISES, why=str(error))
        except UserError as error:
            if not str(error).startswith(tuple(filter(own_code.is_own, self.subject.functions))):
                raise  # such as a sandbox that is missing
            return replace(scored, fault=RETURNS, why=str(error))
        except Exception as error:  # an error of a reward of ours, which must not hide the other results
            return replace(scored, fault=RAISES, why=f"{type(error).__name__}: {first_line(error)}")
        for value, other, text in zip(values, again, texts, strict=True):
            if not math.isfinite(value):
                return replace(scored, fault=RETURNS, why=f"{value} for {text[:SHOWN]!r}")
            if value != other:
                why = f"{value:g}, and then {other:g}, for {text[:SHOWN]!r}"
                return replace(scored, fault=RANDOM, why=why)
        return replace(scored, values=values)

    def _values(self, rows: Sequence[Row], texts: Sequence[str], ids: Sequence[Sequence[int]]) -> list[float]:
        """Return the weighted sum of each text's rewards, (texts,); NaN if no function gives a reward."""
        subject = self.subject
        options = {"trainer_state": SimpleNamespace(global_step=0), "log_metric": lambda name, value: None}
        # (texts, functions)
        table = reward_table([*subject.functions.values()], rows, texts, ids, **options)
        weights = torch.tensor([subject.weights[name] for name in subject.functions])
        sums = total(table, weights).masked_fill(table.isnan().all(dim=1), math.nan)
        values: list[float] = sums.tolist()
        return values

    def _best_sample(self) -> Scored:
        """Return the rewards of the policy's best-paid wrong response to each question that has one."""
        pairs = [(place, text) for place, texts in enumerate(self.subject.wrong) for text in texts]
        places = [place for place, _ in pairs]
        scored = self._called(Scored(SAMPLED, "wrong", places=places), [text for _, text in pairs])
        if scored.fault:
            return scored
        best: dict[int, tuple[float, str]] = {}
        for (place, text), value in zip(pairs, scored.values, strict=True):
            if place not in best or value > best[place][0]:
                best[place] = (value, text)
        values = [value for value, _ in best.values()]
        example = max(best.values())[1]
        return replace(scored, places=[*best], values=values, example=example)


def items(subject: Subject) -> list[Item]:
    """Return the questions of a subject as the attacks read them, (rows,)."""
    known = [answer for answer in dict.fromkeys(subject.answers) if answer]
    common = Counter(filter(None, subject.answers)).most_common(1)
    every = []
    for place, row in enumerate(subject.rows):
        answer = reference(row["answer"]) if known else ""
        near = (known[(place + step) % len(known)] for step in range(len(known)))
        others = tuple(islice((other for other in near if not same(other, answer)), OTHERS))
        every.append(Item(row["question"], row["prompt"], answer, others, common[0][0] if common else ""))
    return every
