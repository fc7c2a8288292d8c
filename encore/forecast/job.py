"""A job of a plan: what one stage or evaluation holds in memory, generates and learns from."""

from dataclasses import dataclass

from encore.forecast.model_size import Model


@dataclass(frozen=True)
class Generation:
    """Completions that are drawn. Lengths in tokens."""

    completions: float  # in all
    rollout: float  # at a time, on all GPUs together
    cap: int  # in the mean over the run, where it rises
    mean: float
    prompt: float
    engine: str  # colocate | server | vllm (alone on its GPUs) | hf
    width: int = 1  # GPUs that hold one copy of the model: tensor parallelism
    share: float = 0.9  # of a GPU's memory, of an engine of vLLM's
    read: float = 0.0  # tokens that are read and not answered: what a judge is shown
    bytes_a_weight: int = 2
    longest_prompt: int = 512
    longest: int = 0  # the cap at its highest; 0: as `cap`
    sleeps: bool = False  # the engine gives its memory back while the trainer works
    shared: float = 1.0  # completions for which a prompt is read once

    @property
    def full(self) -> int:
        """Tokens of the longest prompt and completion."""
        return self.longest_prompt + (self.longest or self.cap)


@dataclass(frozen=True)
class Training:
    """Sequences that are learnt from. Lengths in tokens."""

    steps: int  # of the optimizer
    batch: float  # sequences of a step, on all GPUs together
    rows: int  # sequences of a micro-batch, of one GPU
    mean: float
    longest: int
    computed: float  # positions of the longest sequence; of a prompt that several share, a part is counted
    checkpointing: bool = False
    half: bool = False  # computed in bfloat16
    bytes_a_weight: int = 4  # that is trained
    optimizer: float = 8.0  # bytes of its state a trained number
    lora: int | None = None  # rank of the adapters
    nf4: bool = False  # the weights below the adapters have four bits
    scored: float = (
        0.0  # forward passes of the policy over a sequence beside those of training, per step on it
    )
    padded: bool = False  # several rows at once need a mask of tokens x tokens; rows of a rollout need none


@dataclass(frozen=True)
class Job:
    name: str
    kind: str  # of the stage, or "eval"
    gpus: int  # that train, or on which the policy generates
    policy: Model | None = None  # None: nothing is computed by a model
    server: int = 0  # further GPUs, of a vLLM server
    shard: bool = False
    generation: Generation | None = None
    training: Training | None = None
    reference: Model | None = None
    critic: Model | None = None
    rewards: tuple[Model, ...] = ()  # reward models and their members
    judges: tuple[tuple[Model, float], ...] = ()  # models that compare replies, and the tokens they are shown
    saved: int = 0  # bytes of a number of the weights that are kept
    stretched: bool = False  # the stage sets how many positions the model has, or needs few
    unknown: tuple[str, ...] = ()  # what had to be assumed for want of a source

    @property
    def all_gpus(self) -> int:
        return self.gpus + self.server
