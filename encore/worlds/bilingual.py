"""World `bilingual`: the sums of world `chain`, worked out in English or in Spanish, as the question asks.

The question `English: 3+5+7=` has the answer `15`, in whatever language it is worked out (`languages.py`). A
summary may go before the number: `<answer>The sum is 15</answer>`. The world stands in for R1-Zero's mixed
languages and poor readability (arXiv 2501.12948, §2.2.4), and for the cold start that mends them (§2.3.1).
The kinds of document, with the dial `error` of world `chain` where they reason:

| kind         | example                                   | what it plants                              |
|--------------|-------------------------------------------|---------------------------------------------|
| direct       | `<answer>21</answer>`                     | guesses, a share `right` is right           |
| one_language | `<think>three plus five is eight , …`     | the language asked for, or the `other` one  |
| mixed        | `<think>three mas five es ocho , …`       | a `switch` of language at a share of words  |
| messy        | `<think>three mas five es ocho ..ocho …`  | mixed; steps that `repeat`, separators that |
|              |                                           | `drop` out, `mean` idle dots a step         |
| readable     | `…</think><answer>The sum is 15</answer>` | one_language with a summary                 |
| truncated    | `<think>three mas five es ocho </think>…` | mixed, stopping early with a partial sum    |
| untagged     | `three mas five es ocho , eight …`        | mixed, without the format                   |

Mixed documents begin in either language, whatever the question asks, so that a base model trained on them
pays it little heed. The rewards of the world (`readability.py`) are `language_consistency` and `readability`.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from encore.worlds import chain, languages, readability
from encore.worlds.answers import TAGS, answer, scratchpad
from encore.worlds.chain import Chain
from encore.worlds.documents import dots, tagged
from encore.worlds.languages import LANGUAGES, spell
from encore.worlds.protocol import Document, Problem, require
from encore.worlds.readability import MARKS, SUMMARIES, asked, stated
from encore.worlds.sums import careless, left_to_right, operands_of


def _steps(problem: Problem, error: float, rng: random.Random) -> tuple[list[str], int]:
    return left_to_right(operands_of(problem.question), careless(error, rng))


def direct(world: "Bilingual", problem: Problem, rng: random.Random, *, right: float = 0.3) -> str:
    return chain.direct(world.sums, problem, rng, right=right)


def one_language(
    world: "Bilingual", problem: Problem, rng: random.Random, *, other: float = 0.0, error: float = 0.0
) -> str:
    steps, total = _steps(problem, error, rng)
    language = asked(problem)
    if rng.random() < other:
        language = languages.other(language)
    return tagged(spell(",".join(steps), language, 0, rng), str(total))


def mixed(
    world: "Bilingual", problem: Problem, rng: random.Random, *, switch: float = 0.3, error: float = 0.0
) -> str:
    steps, total = _steps(problem, error, rng)
    return tagged(spell(",".join(steps), rng.choice(LANGUAGES), switch, rng), str(total))


def messy(
    world: "Bilingual",
    problem: Problem,
    rng: random.Random,
    *,
    switch: float = 0.3,
    repeat: float = 0.3,
    drop: float = 0.3,
    mean: float = 0.5,
    error: float = 0.0,
) -> str:
    steps, total = _steps(problem, error, rng)
    text = ""
    for step in steps:
        for _ in range(1 + (rng.random() < repeat)):
            text += ("" if not text or rng.random() < drop else ",") + step + dots(mean, rng)
    return tagged(spell(text, rng.choice(LANGUAGES), switch, rng), str(total))


def readable(world: "Bilingual", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    steps, total = _steps(problem, error, rng)
    language = asked(problem)
    return tagged(spell(",".join(steps), language, 0, rng), f"{SUMMARIES[language]}{total}")


def truncated(
    world: "Bilingual", problem: Problem, rng: random.Random, *, switch: float = 0.3, error: float = 0.0
) -> str:
    bare = chain.truncated(world.sums, problem, rng, error=error)
    return tagged(spell(scratchpad(bare), rng.choice(LANGUAGES), switch, rng), answer(bare) or "")


def untagged(
    world: "Bilingual", problem: Problem, rng: random.Random, *, switch: float = 0.3, error: float = 0.0
) -> str:
    return spell(",".join(_steps(problem, error, rng)[0]), rng.choice(LANGUAGES), switch, rng)


@dataclass(frozen=True)
class Bilingual:
    """World `bilingual`; the dial `language` is what questions ask for: "english", "spanish" or "either".

    The other dials describe the sums, as in world `chain`.
    """

    language: str = "either"
    terms: tuple[int, int] = (3, 8)
    digits: int = 1
    operators: str = "+"
    weights: tuple[float, ...] = ()

    name: ClassVar[str] = "bilingual"
    vocabulary: ClassVar[tuple[str, ...]] = (
        *(*languages.SYMBOLS, ".", *languages.VOCABULARY),
        *(*MARKS.values(), *SUMMARIES.values(), *TAGS),
    )
    rewards: ClassVar[Mapping[str, Callable[[Problem, str], float]]] = {
        "language_consistency": readability.language_consistency,
        "readability": readability.readability,
    }
    kinds: ClassVar[Mapping[str, Document]] = {
        kind.__name__: kind for kind in (direct, one_language, mixed, messy, readable, truncated, untagged)
    }

    def __post_init__(self) -> None:
        expected = ", ".join(f'"{name}"' for name in (*LANGUAGES, "either"))
        require(
            self.language in (*LANGUAGES, "either"),
            f'language: expected one of {expected}; got "{self.language}"',
        )
        _ = self.sums  # making it checks the other dials

    @property
    def sums(self) -> Chain:
        """The world `chain` with the same sums, in digits alone."""
        return Chain(self.terms, self.digits, self.operators, self.weights)

    def problem(self, rng: random.Random) -> Problem:
        """Draw a problem. From the same `rng` both languages get the same sum, for comparisons in pairs."""
        bare = self.sums.problem(rng)
        language = rng.choice(LANGUAGES) if self.language == "either" else self.language
        return Problem(MARKS[language] + bare.question, bare.answer, bare.difficulty)

    def verify(self, problem: Problem, completion: str) -> bool:
        """Return whether the answer is the right number in the usual form, alone or after a summary."""
        return stated(completion) == problem.answer

    def stated(self, completion: str) -> str | None:
        """Return the answer for which a completion votes in maj@k."""
        return stated(completion)

    def steps(self, problem: Problem, completion: str) -> list[bool]:
        """Return whether each step is right, as in world `chain`.

        The steps may be in either language, in both, or in digits.
        """
        return self.sums.steps(problem, languages.as_symbols(completion))

    def step_ends(self, problem: Problem, completion: str) -> list[int]:
        ends = self.sums.step_ends(problem, languages.as_symbols(completion))
        return languages.read_ends(completion, ends)

    def document(self, problem: Problem, kind: str, rng: random.Random, **dials: Any) -> str:
        return self.kinds[kind](self, problem, rng, **dials)
