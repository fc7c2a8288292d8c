"""The tasks that a policy is given: problems of a world, or rows of a data set."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Discriminator, Tag
from pydantic_core import InitErrorDetails

from encore import own_code
from encore.recipe import reward_names
from encore.recipe.base import HubName, Mistake, Positive, Revision, below, matching, refuse
from encore.recipe.form import Posed
from encore.recipe.world_tasks import EnvironmentTask, GymTask, Task, WorldTask, own_mistakes

FORMATS = (".jsonl", ".parquet")
SLICE = re.compile(r"([^\[\]+]+)\[(-?\d*):(-?\d*)\]")  # split[from:to] in rows; percentages are not allowed
OF_HUB = ("hub", "revision", "subset", "split")
# key of a question's answer -> the verifiers that read it, apart from users' verifiers
OF_VERIFIER = {"answer": ("math", "tests"), "numbers": ("countdown",), "target": ("countdown",)}


class DataSet(Task):
    """Rows of a data set of the Hub, at a commit, or of a user's file.

    The other keys name columns, as encore/data/columns.py reads them.
    """

    hub: HubName | None = None
    revision: Revision | None = None
    subset: str | None = None
    split: str | None = None
    # a file instead of these: .jsonl or .parquet, relative to the folder in which snakemake is called
    file: str | None = None
    sha256: str | None = None  # digest of the planned file, which Encore adds for a job

    @property
    def name(self) -> str:
        """The name of the data set in messages."""
        return self.file or f"{self.hub} split {self.split}"

    @classmethod
    def further_mistakes(cls, value: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        """Yield the keys that are missing in a data set of the Hub."""
        for key in ("hub", "revision", "split"):
            if "file" not in value and key not in value:
                yield InitErrorDetails(type="missing", loc=(key,), input=value)

    def mistakes(self) -> Iterator[Mistake]:
        """Yield mistakes: a missing file, one of unknown format, and keys of the Hub beside a file."""
        if self.sha256 is not None:
            yield "sha256", "a job is given it; remove it"
        if self.file is None:
            return
        file = Path(self.file)
        for key in OF_HUB:
            if getattr(self, key) is not None:
                yield key, f"of a Hub dataset, and {file} is a file; remove it"
        if file.suffix not in FORMATS:
            yield "file", f"{file}: expected a file that ends in .jsonl or .parquet"
        elif not file.is_file():
            yield "file", f"there is no file {file} in {Path.cwd()}"


class Questions(DataSet):
    """Questions, with answers that a verifier reads, or without answers."""

    question: str
    answer: str | None = None
    # math, countdown, or tests: unit tests, run in the sandbox (encore/rewards/unit_tests.py). A user's
    # verifier: my_module:function(question, answer, completion) -> bool
    verifier: (
        Annotated[
            str,
            AfterValidator(
                matching("math|countdown|tests|.*:.*", "math, countdown, tests or my_module:function")
            ),
        ]
        | None
    ) = None
    numbers: str | None = None  # column for verifier countdown, with target, instead of answer
    target: str | None = None

    @property
    def is_verified(self) -> bool:
        """Whether the data set names a verifier, by which answers are right or wrong."""
        return self.verifier is not None

    @property
    def verifies(self) -> str:
        """The name of the verifier, math if none is named."""
        return self.verifier or "math"

    @property
    def gives_feedback(self) -> bool:
        """Whether the verifier says in words why a completion is wrong: only unit tests do."""
        return self.verifies == reward_names.TESTS

    def lacking(self) -> Iterator[Mistake]:
        """Yield the keys that are missing for answers to be verified."""
        columns = ("numbers", "target") if self.verifier == "countdown" else ("answer",)
        for key in ("verifier", *columns):
            if getattr(self, key) is None:
                yield key, "missing"

    def mistakes(self) -> Iterator[Mistake]:
        """Yield also a verifier that does not exist, and columns that the verifier does not read."""
        yield from super().mistakes()
        is_own = own_code.is_own(self.verifier)
        if self.verifier is not None and is_own:
            yield from own_mistakes("verifier", self.verifier)
        for key, verifiers in OF_VERIFIER.items():
            read = self.verifier is None or self.verifier in verifiers or (is_own and key == "answer")
            if getattr(self, key) is not None and not read:
                yield key, f"of verifier {' or '.join(verifiers)}, not {self.verifier}; remove it"


class DemonstrationRows(DataSet):
    """Prompts and the completions to imitate: texts or conversations."""

    prompt: str
    completion: str


class Comparisons(DataSet):
    """Pairs of replies, chosen and rejected, or lists of ranked replies."""

    prompt: str | None = None  # the dialogue with which both replies begin; pairs may have none
    chosen: str | None = None
    rejected: str | None = None
    responses: str | None = None  # a column with lists of mappings, which have the next two keys
    text: str | None = None
    rank: str | None = None  # key of the rank; 1 is the best

    def mistakes(self) -> Iterator[Mistake]:
        """Yield also missing columns of pairs or rankings, and columns that belong to the other kind."""
        yield from super().mistakes()
        pair, ranking = ("chosen", "rejected"), ("responses", "text", "rank")
        is_pair = any(getattr(self, key) is not None for key in pair)
        for key in pair if is_pair else ("prompt", *ranking):
            if getattr(self, key) is None:
                words = "missing; a pair has" if is_pair else "missing; pairs have chosen and rejected;"
                rest = "chosen and rejected" if is_pair else "a ranking has prompt, responses, text and rank"
                yield key, f"{words} {rest}"
        for key in ranking if is_pair else ():
            if getattr(self, key) is not None:
                yield key, "of a ranking, and chosen and rejected are of pairs; remove it"


class LabelledSteps(DataSet):
    """Solutions as lists of steps, each labelled: TRL's type "stepwise supervision"."""

    prompt: str
    completion: str
    labels: str


def kind_of(value: Any) -> str:
    """Return the tag of a task: a data set has the key hub or file, a task of reasoning-gym its name."""
    if not isinstance(value, Mapping):
        names = {DataSet: "a data set", GymTask: "a gym", EnvironmentTask: "an environment"}
        return next((name for kind, name in names.items() if isinstance(value, kind)), "a world")
    if {"hub", "file"} & value.keys():
        return "a data set"
    keys = {"reasoning_gym": "a gym", "environment": "an environment"}
    return next((name for key, name in keys.items() if key in value), "a world")


AWorld = Annotated[WorldTask, Tag("a world")]
AGym = Annotated[GymTask, Tag("a gym")]
AnEnvironment = Annotated[EnvironmentTask, Tag("an environment")]
QuestionTask = Annotated[
    AWorld | AGym | AnEnvironment | Annotated[Questions, Tag("a data set")], Discriminator(kind_of)
]


def refusing(words: Mapping[str, str]) -> BeforeValidator:
    """Return a validator that refuses tasks of the kinds in `words`, each with its message."""

    def allowed(value: Any) -> Any:
        if (kind := kind_of(value)) in words:
            refuse(words[kind])
        return value

    return BeforeValidator(allowed)


NO_CORPUS = "a corpus is written by a world; this task has none"
NO_DOCUMENTS = "reasoning-gym has questions and answers, and writes no corpus; name a world or a data set"
NO_EPISODES = "an environment has episodes, and writes no corpus; name a world or a data set"
no_documents = refusing({"a gym": NO_DOCUMENTS, "an environment": NO_EPISODES})
CorpusTask = Annotated[WorldTask, refusing({"a data set": NO_CORPUS}), no_documents]
DemonstrationTask = Annotated[
    AWorld | Annotated[DemonstrationRows, Tag("a data set")], Discriminator(kind_of), no_documents
]


class Asked(Posed):
    """The questions of a task, and their form."""

    task: QuestionTask | None = None
    problems: Positive | None = None  # number of distinct training problems

    @property
    def questions(self) -> QuestionTask:
        """The task, which is set once all layers are merged."""
        assert self.task is not None
        return self.task

    def asked_mistakes(self, needs_answers: bool) -> Iterator[Mistake]:
        """Yield the mistakes within task and form.

        `needs_answers`: whether a data set must have answers and a verifier.
        """
        if needs_answers and isinstance(self.task, Questions):
            yield from below("task", self.task.lacking())
        if self.task is not None:
            yield from below("task", self.task.mistakes())
        yield from self.form_mistakes()


class Rewarded(Asked):
    """Questions whose completions are rewarded."""

    learned: ClassVar[tuple[str, ...]] = ()  # rewards that a stage of the recipe trains

    # reward -> its weight. A reward is a function of encore/rewards/rules.py, of the task's world,
    # my_module:function, or reward_model
    rewards: dict[str, float] | None = None

    def asked_mistakes(self, needs_answers: bool) -> Iterator[Mistake]:
        """Yield also rewards that the task does not have."""
        mistakes = [*super().asked_mistakes(needs_answers)]
        yield from mistakes
        if mistakes or self.task is None or self.rewards is None:
            return
        if not self.rewards:
            yield "rewards", "must not be empty"
        names = [name for name in self.rewards if name not in self.learned]
        reward_names.check_reward_names(names, self.task.make_world(), self.task.verifies)


JUDGED = ("{prompt}", "{first}", "{second}")  # fields that the question to a judge of replies must have
