"""A job of a plan: what a stage or evaluation holds in memory, generates and learns from."""

from dataclasses import dataclass

from encore.forecast.architecture import Model


@dataclass(frozen=True)
class Generation:
    """The completions that are drawn. Lengths are in tokens."""

    completions: float  # number of all completions
    rollout: float  # number at a time, on all GPUs together
    cap: int  # tokens; the mean over the run if the cap rises
    mean: float
    prompt: float
    engine: str  # colocate | server | vllm (which has its GPUs alone) | hf
    width: int = 1  # GPUs that hold one copy of the model: tensor parallelism
    share: float = 0.9  # share of a GPU's memory that a vLLM engine takes
    read: float = 0.0  # tokens that are read without an answer, such as the texts that a judge sees
    bytes_a_weight: int = 2
    longest_prompt: int = 512
    longest: int = 0  # tokens of the highest cap; 0 if it is the same as `cap`
    sleeps: bool = False  # whether the engine gives its memory back while the trainer works
    ahead: bool = False  # whether the engine samples the next rollout while the trainer learns
    shared: float = 1.0  # number of completions for which a prompt is read once

    @property
    def full(self) -> int:
        """The tokens of the longest prompt and completion."""
        return self.longest_prompt + (self.longest or self.cap)


@dataclass(frozen=True)
class Training:
    """The sequences that are learnt from. Lengths are in tokens."""

    steps: int  # number of optimizer steps
    batch: float  # sequences of a step, on all GPUs together
    rows: int  # sequences of a micro-batch, on one GPU
    mean: float
    longest: int
    computed: float  # positions of the longest sequence; a prompt shared by several counts in part
    checkpointing: bool = False
    half: bool = False  # whether computation is in bfloat16
    bytes_a_weight: int = 4  # bytes of a trained weight
    optimizer: float = 8.0  # bytes of the optimizer's state for a trained number
    lora: int | None = None  # rank of the adapters
    nf4: bool = False  # whether the weights below the adapters have four bits
    scored: float = 0.0  # further forward passes of the policy, without gradient, per sequence and step
    rounds: float = 1.0  # rollouts that are sampled and scored for each that is learnt from
    # whether policy and reference also read each prompt with another completion, without gradient
    mismatched: bool = False
    synced: bool = False  # whether the reference follows the policy
    padding: float = 1.0  # positions that the model runs over for each real token
    padded: bool = False  # whether rows of a batch are padded to one length, with a mask of tokens x tokens


@dataclass(frozen=True)
class Job:
    name: str
    kind: str  # the stage's kind, or "eval"
    gpus: int  # GPUs that train, or on which the policy generates
    policy: Model | None = None  # None if no model computes anything
    server: int = 0  # further GPUs, for a vLLM server
    shard: bool = False
    generation: Generation | None = None
    training: Training | None = None
    reference: Model | None = None
    critic: Model | None = None
    rewards: tuple[Model, ...] = ()  # the members of reward models
    judges: tuple[tuple[Model, float], ...] = ()  # models that compare replies, and the tokens they are shown
    saved: int = 0  # bytes of a saved weight
    stretched: bool = False  # whether the stage sets the model's number of positions, or needs few of them
    unknown: tuple[str, ...] = ()  # assumptions that were made because no source gives the value

    @property
    def all_gpus(self) -> int:
        return self.gpus + self.server
