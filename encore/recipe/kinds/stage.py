"""What stages of all kinds have in common, and the parts that several kinds have."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, ValidatorFunctionWrapHandler, WrapValidator

from encore.errors import UserError
from encore.recipe.args import DrawingArgs
from encore.recipe.base import (
    AboveZero,
    HubName,
    Machine,
    Model,
    PartOfAll,
    Positive,
    Revision,
    Said,
    Seed,
    Some,
    refuse,
)
from encore.recipe.checks import machines
from encore.recipe.mistakes import shown
from encore.runtime.gpus import SHARDED, SPREAD

Dtype = Literal["float32", "bfloat16", "float16"]
Backend = Literal["hf", "lean", "vllm"]  # lean: encore/sampling/lean.py, for small models
Weights = dict[str, float]
Mixture = Annotated[dict[str, Any], Field(min_length=1)]  # kinds of document that the world can write
RawTask = dict[str, Any]  # a world or a data set; checks/tasks.py reads it

Around = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...], Field(strict=False, min_length=2, max_length=2)
]


class Resources(Model):
    """What a job is run on."""

    gpu: Annotated[int, Field(ge=0)] = 0
    mem_mb: Positive | None = None  # of a node
    # minutes of the whole; a job asks for two days at most, the next one goes on
    runtime: Positive | None = None
    # machines of one Slurm job that `gpu` lie on, as many on each; of several, a vLLM server has the last for
    # itself
    nodes: Positive = 1
    # of a stage on several GPUs: weights, gradients and optimizer are spread over them, by FSDP2
    shard: Literal["fsdp"] | None = None


class Tool(Model):
    """What the policy may call: encore/sampling/tools.py."""

    name: Literal["calculator", "python"]  # python: in the sandbox
    calls: Positive  # answered in one completion; further ones are not
    longest: Positive  # tokens of a result; what is longer is cut
    call: Around | None = None  # the texts around a call; the second is one token
    result: Around | None = None  # and around its result


class Lora(Model):
    """Adapters of the policy, trained in place of its weights and added to them at the end."""

    rank: Positive
    alpha: AboveZero  # the adapters' product is multiplied by alpha/rank
    targets: Some[str] | None = None  # linear layers such as q_proj; default: all but the head
    # QLoRA: in training, the weights below the adapters have 4 bits. A reference loaded from elsewhere has
    # too, a reward model has not. The product is dequantized, in saved_dtype; default: the dtype of
    # args.model_init_kwargs, else float32
    quantized: Literal["nf4"] | None = None


class BackendArgs(Model):
    """vLLM's engine arguments that say how it uses its GPUs.

    Others would load code, upload or write elsewhere.
    """

    tensor_parallel_size: Positive | None = None
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] | None = None
    max_model_len: Positive | None = None
    max_num_seqs: Positive | None = None
    max_num_batched_tokens: Positive | None = None
    enforce_eager: bool | None = None
    enable_prefix_caching: bool | None = None


class Chat(Model):
    """What the chat template of the model's tokenizer, in place of `template`, says beside the question.

    Rewards and verifiers read a reply with its prefill.
    """

    system: Said | None = None
    user: str | None = None  # a text with {question}; default: the question alone
    prefill: Said | None = None  # how every reply begins, such as "<think>\n"


def _true_or_mapping(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    if isinstance(value, Mapping):
        if not value:
            refuse("must not be empty")
        return handler(value)
    if value is not True:
        refuse(f"expected true or a mapping, got {shown(value)}")
    return value


TrueOrChat = Annotated[Chat, WrapValidator(_true_or_mapping)] | Literal[True]


class CorpusPart(Model):
    """A further task of a corpus, with its share of the documents."""

    task: RawTask
    template: str
    mixture: Mixture
    share: PartOfAll


class Corpus(Model):
    """How many documents, and the share of each kind of document."""

    documents: Positive | None = None  # of all tasks together
    mixture: Mixture | None = None
    also: Some[CorpusPart] | None = None


class HubModel(Model):
    """A model of the Hub, at a commit."""

    hub: HubName
    revision: Revision


class FolderModel(Model):
    """A model in a folder."""

    path: str


def _source(value: Any) -> str:
    folder = isinstance(value, FolderModel) or (isinstance(value, Mapping) and "path" in value)
    return "a folder" if folder else "a Hub model"


Source = Annotated[
    Annotated[HubModel, Tag("a Hub model")] | Annotated[FolderModel, Tag("a folder")], Discriminator(_source)
]


Mistake = tuple[str, str]  # the key, "" for the stage itself, and what is wrong with it
Rule = Callable[[Any], Iterator[Mistake]]


def rule(check: Rule) -> Rule:
    """Mark a method of a stage that yields the mistakes of keys which do not go together."""
    vars(check)["is_rule"] = True
    return check


class Stage(Model):
    """A stage of any kind.

    A field that no default fits is None where the recipe does not say it. The class variables say what a
    stage must have once scale and arm are laid over it, its rules which of its keys go together.
    """

    required: ClassVar[tuple[str, ...]] = ()  # keys
    # fields of `args` that must be given, of a tuple one of them: they define the objective, in which papers
    # differ from each other and from TRL's defaults
    written_out: ClassVar[tuple[str | tuple[str, ...], ...]] = ()
    # key -> those among `required` and `written_out` that are not missing where it is given
    stands_for: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    product: ClassVar[str] = "a model"
    # role -> what a stage must make to play it; default: a model, or what the role's name says
    takes: ClassVar[Mapping[str, str]] = {}
    # what a data set as its `task` must have: a name of schema.yaml's $defs
    data_set: ClassVar[str] = "task-hub"
    rules: ClassVar[tuple[Rule, ...]] = ()

    run: str
    version: Positive = 1  # raise it to have the stage run again after a change of code
    seed: Seed | None = None  # pins the stage: one model for all seeds of a run
    threads: Positive = 1  # part of the lineage, because it decides the order of sums
    resources: Annotated[Resources, Machine()] = Resources()

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Gather the rules of the class and its bases; a rule of the same name replaces that of a base."""
        marked = (
            name
            for each in reversed(cls.__mro__)
            for name, own in vars(each).items()
            if hasattr(own, "is_rule")
        )
        cls.rules = tuple(getattr(cls, name) for name in dict.fromkeys(marked))

    def broken(self) -> Iterator[Mistake]:
        """Yield the mistakes that the rules find, those of a base class first."""
        for check in self.rules:
            try:
                yield from check(self)
            except UserError as error:  # of a function that the stage's job calls too
                for line in error.lines:
                    key, _, words = line.partition(": ")
                    yield key, words

    def check(self, path: str = "", where: str = "") -> None:
        """Raise UserError with what `broken` finds: lines that begin with `path` and end with `where`."""
        found = [(".".join(filter(None, (path, key))), words) for key, words in self.broken()]
        if found:
            raise UserError("\n".join(f"{at}: {words}{where}" for at, words in found))

    @property
    def serving(self) -> int:
        """The GPUs of the stage's vLLM server."""
        return 0

    @rule
    def _one_machine(self) -> Iterator[Mistake]:
        """Yield what no machine, or not the number of machines that is asked for, can give."""
        nodes, gpus = self.resources.nodes, self.resources.gpu
        if nodes == 1:
            machines.check_one(gpus, self.serving)
        elif self.run not in SPREAD:
            others = ", ".join(SPREAD)
            yield "resources.nodes", f"{nodes}; stage {self.run} is run on one, as all but {others}"

    @rule
    def _no_shards(self) -> Iterator[Mistake]:
        """Yield `shard` of a stage whose weights nothing spreads."""
        how, gpus = self.resources.shard, self.resources.gpu
        if how and (self.run not in SHARDED or gpus < 2):
            kinds = ", ".join(SHARDED)
            words = f"{how} is of stages {kinds} on several GPUs, not of {self.run} on {gpus}"
            yield "resources.shard", words


class FromPolicy(Stage):
    """A stage that starts from a model: a stage's, or one of the Hub or a folder."""

    needs: dict[Any, str] = {}
    model: Source | None = None

    @rule
    def _one_start(self) -> Iterator[Mistake]:
        """Yield a stage that starts from two models, or from none."""
        if ("policy" in self.needs) == (self.model is not None):
            both = "both are" if self.model else "neither is"
            yield "", f"it starts from one of needs.policy and model; {both} given"


class Asking(FromPolicy):
    """A stage that asks the policy the questions of a task."""

    task: RawTask | None = None
    template: str | None = None
    chat: TrueOrChat | None = None
    problems: Positive | None = None  # distinct training problems


class Drawing(Asking):
    """A stage that draws completions of the policy, by an engine of evaluations."""

    stands_for = {"chat": ("template",)}

    args: DrawingArgs
    longest_prompt: Positive | None = None  # in tokens; longer prompts are left out
    backend: Backend | None = None  # these four as in evals
    backend_args: BackendArgs | None = None
    dtype: Dtype | None = None
    batch_size: Positive | None = None
