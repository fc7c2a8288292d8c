"""The common part of stages of all kinds, and parts that several kinds have."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from encore.errors import UserError
from encore.recipe.args import DrawingArgs
from encore.recipe.base import AboveZero, Machine, Mistake, Model, Positive, Seed, Some, below
from encore.recipe.form import Formed
from encore.recipe.machine import Engine, Resources, Source, check_one
from encore.recipe.task import Asked
from encore.runtime.gpus import SHARDED, SPREAD


class Lora(Model):
    """The adapters of the policy, which are trained instead of its weights and added to them at the end."""

    rank: Positive
    alpha: AboveZero  # the adapters' product is multiplied by alpha/rank
    targets: Some[str] | None = None  # linear layers such as q_proj; default: all but the head
    # QLoRA: in training, the weights below the adapters have 4 bits, and so has a reference loaded from
    # elsewhere, but not a reward model. The product is dequantized in saved_dtype; default: the dtype of
    # args.model_init_kwargs, otherwise float32
    quantized: Literal["nf4"] | None = None


# role -> what the stage in this role must make, unless the kind of the stage with the role says otherwise
PLAYED_BY = {
    "demonstrations": "demonstrations",
    "reward_model": "a reward model",
    "safety_model": "a reward model",
    "proxy": "a reward model",
}
Rule = Callable[[Any], Iterator[Mistake]]


def rule(check: Rule) -> Rule:
    """Mark a method of a stage as a rule, which yields the mistakes of keys that contradict each other."""
    vars(check)["is_rule"] = True
    return check


class Stage(Model):
    """A stage of any kind.

    A field is None if the recipe does not set it and there is no sensible default. The class variables say
    which keys a stage must have once the layers of scale and arm are merged; its rules say which keys
    contradict each other.
    """

    required: ClassVar[tuple[str, ...]] = ()  # keys that must be given
    # fields of `args` that must be given; of a tuple, one of them: they define the objective, in which papers
    # differ from each other and from TRL's defaults
    written_out: ClassVar[tuple[str | tuple[str, ...], ...]] = ()
    # key -> the keys in `required` and `written_out` that need not be given beside it
    stands_for: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    product: ClassVar[str] = "a model"  # the product of this kind; `made` is the product of one stage
    # role -> what a stage must make to fill it; default: a model, or what the role's name says
    takes: ClassVar[Mapping[str, str]] = {}
    rules: ClassVar[tuple[Rule, ...]] = ()

    run: str
    needs: dict[Any, str] = {}  # role -> the stage that fills it: `stage`, `recipe/stage` or `stage@arm`
    version: Positive = 1  # a number to raise if the stage is to run again after a change of code
    seed: Seed | None = None  # seed of a pinned stage, which makes one model for all seeds of a run
    threads: Positive = 1  # number of threads; part of the lineage, because it decides the order of sums
    # whether torch and vLLM compute the same numbers in each run on the same GPU, which is slower
    deterministic: bool = False
    resources: Annotated[Resources, Machine()] = Resources()

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Collect the rules of the class and its bases; a rule replaces the base's rule of the same name."""
        marked = (
            name
            for each in reversed(cls.__mro__)
            for name, class_rules in vars(each).items()
            if hasattr(class_rules, "is_rule")
        )
        cls.rules = tuple(getattr(cls, name) for name in dict.fromkeys(marked))

    def unsound(self) -> Iterator[Mistake]:
        """Yield the mistakes within a task, a form, rewards or documents.

        The rules of the stage assume that there are no such mistakes.
        """
        yield from ()

    def broken(self) -> Iterator[Mistake]:
        """Yield the mistakes of `unsound` or, if it has none, of the rules, base classes first."""
        mistakes = [*below("", self.unsound())]
        yield from mistakes
        for check in () if mistakes else self.rules:
            yield from below("", check(self))

    def incomplete(self) -> Iterator[Mistake]:
        """Yield the first missing key or else the first field of `written_out` left to a default."""
        stood_for = {name for key in self.model_fields_set for name in self.stands_for.get(key, ())}
        for key in self.required:
            if key not in stood_for and not _is_said(self, key):
                yield key, "missing"
                return
        args: Any = getattr(self, "args", None)
        for names in self.written_out:
            alternatives = [names] if isinstance(names, str) else [*names]
            if not {*args.model_fields_set, *stood_for} & {*alternatives}:
                default = type(args).model_fields[alternatives[0]].default
                words = f"missing; it defines the objective, and TRL's default {default!r} would be used"
                yield f"args.{' or '.join(alternatives)}", f"{words} silently; write it out"
                return

    def check_rules(self, path: str = "", where: str = "", whole: bool = False) -> None:
        """Raise UserError with what `broken` yields, in lines that begin with `path` and end with `where`.

        `whole`: also with what `incomplete` yields; if a key is missing, the rules are not applied.
        """
        lacking = [*self.incomplete()] if whole else []
        missing = any(words == "missing" for _, words in lacking)
        mistakes = [*lacking, *(() if missing else self.broken())]
        if mistakes:
            at = ((".".join(filter(None, (path, key))), words) for key, words in mistakes)
            raise UserError("\n".join(f"{place}: {words}{where}" for place, words in at))

    @property
    def made(self) -> str:
        """The kind of the stage's product: "a model", "a reward model", "samples", "preferences" etc."""
        return self.product

    @classmethod
    def played_by(cls, role: str) -> str:
        """Return the kinds of product that can fill a role of the stage, such as "samples or preferences"."""
        return cls.takes.get(role, PLAYED_BY.get(role, "a model"))

    @property
    def parts(self) -> Mapping[str, Formed]:
        """The parts that ask questions, by name: domains, further sources, or "" for the stage itself."""
        return {"": self} if isinstance(self, Formed) else {}

    @property
    def by_chat(self) -> bool:
        """Whether a part of the stage uses the chat template of the policy's tokenizer."""
        return any(part.chat is not None for part in self.parts.values())

    @property
    def serving(self) -> int:
        """The number of GPUs of the stage's vLLM server."""
        return 0

    @property
    def training_nodes(self) -> int:
        """The number of machines that train: all but the last, if a vLLM server has the last of several."""
        nodes = self.resources.nodes
        return nodes - 1 if nodes > 1 and self.serving else nodes

    @property
    def marks(self) -> range:
        """The steps after which the model is measured while the stage trains."""
        return range(0)

    @rule
    def _one_machine(self) -> Iterator[Mistake]:
        """Yield mistakes: more GPUs than a machine has, or several machines for a stage that runs on one."""
        nodes, gpus = self.resources.nodes, self.resources.gpu
        if nodes == 1:
            check_one(gpus, self.serving)
        elif self.run not in SPREAD:
            others = ", ".join(SPREAD)
            yield "resources.nodes", f"{nodes}; stage {self.run} runs on one, like all stages but {others}"

    @rule
    def _no_shards(self) -> Iterator[Mistake]:
        """Yield a mistake for `shard` if the stage never spreads its weights."""
        how, gpus = self.resources.shard, self.resources.gpu
        if how and (self.run not in SHARDED or gpus < 2):
            kinds = ", ".join(SHARDED)
            words = f"{how} needs a stage {kinds} on several GPUs, not {self.run} on {gpus}"
            yield "resources.shard", words


def _is_said(stage: Stage, key: str) -> bool:
    """Return whether a stage sets a key, such as args.learning_rate."""
    value: Any = stage
    for part in key.split("."):
        if part not in (value if isinstance(value, dict) else value.model_fields_set):
            return False
        value = value[part] if isinstance(value, dict) else getattr(value, part)
    return True


class FromPolicy(Stage):
    """A stage that starts from a model, which another stage, the Hub or a folder provides."""

    model: Source | None = None

    @rule
    def _one_start(self) -> Iterator[Mistake]:
        """Yield a mistake unless the stage starts from exactly one model."""
        if ("policy" in self.needs) == (self.model is not None):
            number = "both are" if self.model else "neither is"
            yield "", f"it starts from either needs.policy or model; {number} given"


class Asking(FromPolicy, Asked):
    """A stage that asks the policy the questions of a task."""

    needs_answers: ClassVar[bool] = True  # whether the questions of a data set need answers and a verifier

    def unsound(self) -> Iterator[Mistake]:
        """Yield the mistakes within the task and the form."""
        yield from self.asked_mistakes(self.needs_answers)


class Drawing(Asking, Engine):
    """A stage that draws completions of the policy, with the engines that evaluations use too."""

    stands_for = {"chat": ("template",)}

    args: DrawingArgs
    longest_prompt: Positive | None = None  # tokens of the longest prompt; longer prompts are left out
