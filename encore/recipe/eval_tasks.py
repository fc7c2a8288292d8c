"""The tasks of an evaluation: their questions, how completions are drawn, and how they are scored."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, PrivateAttr, Tag

from encore.recipe import lm_eval_tasks
from encore.recipe.base import Mistake, Model, Name, Positive, Some, below
from encore.recipe.form import Chat, Posed, placed
from encore.recipe.machine import Source
from encore.recipe.metric_names import AMONG, SELECTORS
from encore.recipe.sensitivity import OWN
from encore.recipe.task import (
    JUDGED,
    AGym,
    AnEnvironment,
    AWorld,
    Comparisons,
    DataSet,
    GymTask,
    Questions,
    kind_of,
)
from encore.recipe.tool import Tool

SAMPLING = ("samples", "temperature", "top_p", "max_gen_toks", "k")
OF_LM_EVAL = ("filter", "metric", "fewshot")
# score -> the model of `models` that computes it
ROLES = dict.fromkeys(SELECTORS, "proxy") | dict.fromkeys(("kl", "forward_kl", "perplexity"), "reference")

# fmt: off
Score = Literal[
    "gold", "judge", "proxy", "proxy_product", "proxy_min", "trace", "kl", "forward_kl", "perplexity",
    "language_consistency", "readability", "unrepaired", "carries", "lost", "other_rule", "refused",
    "visible", "special_cased", "verification", "sound_checks", "backtracking", "subgoals",
    "backward_chaining", "idling",
]
# fmt: on


class Judge(Model):
    """The language model that says whether a reply or the data set's own reply is better."""

    model: Source
    question: str  # a text with {prompt}, {first} and {second}; the judge sees each pair in both orders

    def mistakes(self) -> Iterator[Mistake]:
        """Yield a mistake unless the question has {prompt}, {first} and {second} exactly once each."""
        for place in JUDGED:
            if self.question.count(place) != 1:
                yield "question", f"expected {place} exactly once"


def _kind(value: Any) -> str:
    """Return the tag of the class that a task has. A data set with the key `chosen` has pairs of replies."""
    if (kind := kind_of(value)) != "a data set":
        return kind
    is_pair = "chosen" in value if isinstance(value, Mapping) else isinstance(value, Comparisons)
    return "pairs" if is_pair else "questions"


AskedTask = Annotated[
    AWorld
    | AGym
    | AnEnvironment
    | Annotated[Questions, Tag("questions")]
    | Annotated[Comparisons, Tag("pairs")],
    Discriminator(_kind),
]


def data_set(task: Mapping[str, Any]) -> Questions | Comparisons:
    """Return the typed data set of a task, from the mapping that an evaluation's job gets."""
    return (Comparisons if _kind(task) == "pairs" else Questions).model_validate(task)


class EvalTask(Posed):
    """A task of an evaluation: `samples` completions of each item, drawn at one temperature and top-p.

    A task of lm-eval that scores likelihoods draws no completions.
    """

    task: AskedTask | None = None
    # The name of a task of lm-eval, with its own prompts and scoring, instead of task. If the task generates,
    # it has the keys of sampling below; if it scores likelihoods, it has none of them: evals/benchmarks.py.
    lm_eval: str | None = None
    filter: str | None = (
        None  # the filter of an lm_eval task that reads the answer; needed if the task has several
    )
    # the metric of an lm_eval task that becomes `score`; needed if the task has several
    metric: str | None = None
    # number of worked examples before a question of an lm_eval task (with chat, each is a turn); default: the
    # task's own
    fewshot: Annotated[int, Field(ge=0, le=1000)] | None = None
    # A published protocol by its name (encore/recipe/protocols.yaml), which sets the keys that the task
    # leaves out.
    protocol: str | None = None
    # Further templates, by name: a base model is asked with the task's own template and with each of these,
    # and measured with its best one.
    templates: Annotated[dict[Name, str], Field(min_length=1)] = {}
    checkpoints: Some[str] | None = None  # checkpoints that are asked the task; default: all
    tool: Tool | None = None  # a tool that the policy may call, as in stage grpo
    items: Positive | None = None  # number of items, the first ones; only a task of lm-eval may omit it: all
    # number of items to leave out at the start, such as those that a corpus has leaked
    skip: Annotated[int, Field(ge=0)] = 0
    samples: Positive | None = None  # number of completions of each item
    temperature: Annotated[float, Field(ge=0, le=100)] = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    max_gen_toks: Positive | None = None
    k: Some[Positive] = ()  # the k of pass@k, maj@k and best of k
    score: Some[Score] = ()  # scores besides the verifier's: evals/scores.py
    judge: Judge | None = None  # the language model of score judge

    _task_name: str = PrivateAttr("")

    @property
    def name(self) -> str:
        """The name of the task among the tasks of its evaluation."""
        return self._task_name

    @property
    def is_verified(self) -> bool:
        """Whether right answers can be distinguished from wrong ones."""
        return self.task is None or self.task.is_verified

    @property
    def data_set(self) -> dict[str, str] | None:
        """The data set of the questions on the Hub: `id`, `task_id` (its subset) and, if pinned, `revision`.

        It is None for a world, a gym, a file, and for a task of lm-eval without a data set of the Hub.
        """
        if self.lm_eval is not None:
            place = lm_eval_tasks.data_set(self.lm_eval)
            return None if place is None else {"id": place[0], "task_id": place[1]}
        if not isinstance(self.task, DataSet) or self.task.hub is None:
            return None
        return {
            "id": self.task.hub,
            "task_id": self.task.subset or "default",
            "revision": str(self.task.revision),
        }

    def changed(self, **keys: Any) -> Self:
        """Return the task with other values of these keys; None removes a key."""
        merged = {**self.model_dump(exclude_unset=True), **keys}
        task = self.model_validate({key: value for key, value in merged.items() if value is not None})
        task._task_name = self._task_name
        return task

    def named(self, name: str) -> Self:
        """Return the task under another name."""
        task = self.model_copy()
        task._task_name = name
        return task

    def generation(self) -> dict[str, Any]:
        """Return the `generation_kwargs` for lm-eval. They turn off top-k, which transformers may turn on."""
        greedy = {"do_sample": False, "temperature": 0.0}
        sampled = {"do_sample": True, "temperature": self.temperature, "top_p": self.top_p, "top_k": 0}
        return {**(sampled if self.temperature else greedy), "max_gen_toks": self.max_gen_toks}

    def mistakes(self) -> Iterator[Mistake]:
        """Yield the mistakes of keys that contradict each other."""
        if (self.task is None) == (self.lm_eval is None):
            yield "", 'expected one of "task" (a world or dataset) and "lm_eval" (the name of a task)'
            return
        draws = self.task is not None or bool({*SAMPLING} & self.model_fields_set)
        needed = (*(SAMPLING if draws else ()), *(("items",) if self.task else ()))
        for key in needed:
            if key not in self.model_fields_set:
                yield key, "missing"
        if self.task is None:
            yield from self._of_lm_eval()
        else:
            yield from self._of_task(self.task)
        if draws:
            yield from self._sampled()

    def _of_lm_eval(self) -> Iterator[Mistake]:
        """Yield the keys that a task of lm-eval sets itself, and a recipe must not set."""
        name = f"lm-eval's {self.lm_eval} has its own"
        if self.template is not None:
            yield "template", f"{name} prompt; leave it out"
        if self.skip:
            yield "skip", f"{name} items; leave it out"
        if isinstance(self.chat, Chat):
            yield "chat", f"{name} prompt; expected true"
        if self.tool is not None:
            yield "tool", f"lm-eval's {self.lm_eval} asks for one reply; leave it out"
        if self.score or self.judge:
            yield "score", f"{name} scoring; leave it out"
        if self.templates:
            yield "templates", f"{name} prompt; leave it out"

    def _of_task(self, task: AskedTask) -> Iterator[Mistake]:
        """Yield mistakes of a task of a world or data set: missing keys, and keys of lm-eval's tasks."""
        for key in OF_LM_EVAL:
            if getattr(self, key) is not None:
                yield key, "a key of lm-eval's own tasks, which `lm_eval` names; leave it out"
        if self.template is None and self.chat is None:
            yield "template", "missing"
        yield from self.form_mistakes()
        if isinstance(task, Questions) and (task.is_verified or not self.score):
            yield from below("task", task.lacking())
        yield from self._judged(task)
        yield from below("", self._scored(task))
        for name, template in self.templates.items():
            if name == OWN:
                yield f"templates.{OWN}", "that is the task's own template; call this one something else"
            yield from placed(f"templates.{name}", template)
        if self.templates and not task.is_verified:
            yield "templates", "nothing verifies the answers, so none of them is the best; leave it out"

    def _sampled(self) -> Iterator[Mistake]:
        """Yield mistakes in sampling: fewer samples than a k, or several samples at temperature 0."""
        if self.samples is None:
            return
        if (most := max(self.k, default=0)) > self.samples:
            yield "k", f"{most} is more than samples: {self.samples}; pass@k needs k samples"
        if not self.temperature and self.samples > 1:
            yield "samples", f"temperature 0 gives {self.samples} equal samples; expected 1"

    def _judged(self, task: AskedTask) -> Iterator[Mistake]:
        """Yield mistakes of score `judge`: the key `judge` or the replies to compare with are missing.

        The key `judge` without the score is a mistake too.
        """
        if ("judge" in self.score) != (self.judge is not None):
            key, hint = ("judge", "score: [judge]") if self.judge is None else ("score", "judge")
            yield key, f"missing or without judge; it goes with {hint}"
        if self.judge is None:
            return
        yield from below("judge", self.judge.mistakes())
        if not isinstance(task, Comparisons) and not (isinstance(task, Questions) and task.answer):
            words = "a judge compares replies with those of a data set; name their column: answer, or chosen"
            yield "task", f"{words} and rejected"

    def _scored(self, task: AskedTask) -> Iterator[Mistake]:
        """Yield scores that the task cannot have, or that contradict the way it samples."""
        world = task.make_world()
        for score in self.score:
            if score in ROLES or score == "judge":
                continue
            stepless = score == "trace" and isinstance(task, GymTask)
            if world is None or stepless or (score != "trace" and score not in world.rewards):
                where = f"world {world.name}" if world else "a Hub dataset"
                yield "score", f"{where} has no {score} score; leave {score} out"
        for part, whole in AMONG.items():
            if part in self.score and whole not in self.score:
                yield "score", f"{part} is over the answers of {whole}; add {whole}"
        if self.tool:
            yield from below("tool", self.tool.mistakes(getattr(task, "world", None)))
        if self.tool and (scored := [score for score in self.score if score in ROLES]):
            yield "score", f"{scored[0]} would count what the tool says as the policy's; leave it out"
        if "kl" in self.score and (self.temperature, self.top_p) != (1.0, 1.0):
            yield (
                "score",
                "kl is of the policy's own samples; expected temperature 1 and top_p 1, "
                f"got {self.temperature:g} and {self.top_p:g}",
            )
