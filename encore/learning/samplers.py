"""Samplers of a rollout's completions: TRL's (transformers or vLLM), our decoder, or either with a tool."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from encore.data.token_ids import prompt_ids
from encore.models import lora
from encore.sampling.decoding import sample
from encore.sampling.rounded import rounded
from encore.sampling.tools import ToolInWorld
from encore.sampling.turns import CALLS, EPISODE, TURNS, Talk, converse

OWN = "own_ids"  # the column that marks the policy's tokens
TokenLists = list[list[int]]
Logps = list[list[float]] | None


@dataclass(frozen=True)
class Sampled:
    """The completions of a list of prompts."""

    prompts: TokenLists  # token ids
    completions: TokenLists  # token ids, the end of sequence included
    logps: Logps = None  # log-probabilities of each completion's tokens; None if the sampler reports none
    exact: bool = False  # whether `logps` equal the policy's log-probabilities up to rounding
    own: TokenLists | None = None  # 1 at the policy's tokens, 0 at a tool's; None if all are the policy's
    columns: dict[str, list[Any]] = field(default_factory=dict)  # further columns, for rewards and records

    @property
    def said(self) -> TokenLists:
        """The policy's own tokens of each completion."""
        return self.columns.get(OWN, self.completions)


class Draw(Protocol):
    """An object that draws a completion of each context."""

    exact: bool  # whether the log-probabilities equal the policy's up to rounding

    def draw(
        self, contexts: TokenLists, cap: int, also: Sequence[int] = (), alike: int = 1
    ) -> tuple[TokenLists, Logps]:
        """Return token ids of at most `cap` tokens, and their log-probabilities.

        A completion ends with an end of sequence or with a token of `also`. `alike` is how many contexts in a
        row belong to one prompt.
        """


class TrlSampler:
    """The sampling of TRL's GRPOTrainer: `generate` of transformers, or vLLM with the policy's weights."""

    exact = False

    def __init__(self, trainer: Any):
        self.trainer = trainer
        self.ends = list(trainer.eos_token_ids)
        self.asked: tuple[int, list[int]] = (trainer.max_completion_length, [])

    def draw(
        self, contexts: TokenLists, cap: int, also: Sequence[int] = (), alike: int = 1
    ) -> tuple[TokenLists, Logps]:
        if self.asked != (cap, [*also]):
            self.asked = (cap, [*also])
            self.ask(cap, [*also])
        return self.generated(contexts, alike)

    def generated(self, contexts: TokenLists, alike: int) -> tuple[TokenLists, Logps]:
        """Return what `draw` returns, by the present settings."""
        return self.trainer._generate_single_turn(contexts, None, {}, alike)

    def ask(self, cap: int, also: list[int]) -> None:
        """Limit completions to `cap` tokens from now on, and also end them at the tokens of `also`."""
        trainer, ends = self.trainer, [*self.ends, *also]
        trainer.max_completion_length, trainer.eos_token_ids = cap, ends
        if trainer.use_vllm:
            trainer.vllm_generation.max_completion_length = cap
            options = trainer.args.generation_kwargs or {}  # vLLM knows the ends that the checkpoint names
            stops = [*options.get("stop_token_ids", []), *also]
            trainer.vllm_generation.generation_kwargs = options | ({"stop_token_ids": stops} if stops else {})
        else:
            trainer.generation_config.max_new_tokens, trainer.generation_config.eos_token_id = cap, ends
            trainer.generation_kwargs |= {"max_new_tokens": cap, "eos_token_id": ends}


class ServerSampler(TrlSampler):
    """The sampling of a vLLM server that gets new weights from `load` alone.

    TRL sends the weights before it asks. Here a thread asks while other weights are learned.
    """

    def load(self) -> None:
        """Send the policy's weights to the server, which must not be sampling."""
        self.trainer.vllm_generation.sync_weights()

    def generated(self, contexts: TokenLists, alike: int) -> tuple[TokenLists, Logps]:
        _, ids, likeliest, _ = self.trainer.vllm_generation.generate(contexts, None, alike)
        return ids, [[best[0] for best in row] for row in likeliest]


class LeanSampler:
    """A sampler that uses our decoder of small models."""

    def __init__(self, trainer: Any, model: Any = None, precision: str | None = None):
        """Sample from `model` or, if it is None, from the trainer's policy.

        With `precision` sample from a copy in this precision, which encore/sampling/rounded.py makes.
        """
        self.trainer, self.model, self.precision = trainer, model, precision
        self.exact = precision is None
        self.copies: dict[int, Any] = {}  # the copy of the policy, by the optimizer step at which it was made

    def draw(
        self, contexts: TokenLists, cap: int, also: Sequence[int] = (), alike: int = 1
    ) -> tuple[TokenLists, Logps]:
        trainer = self.trainer
        policy = self._copied(lora.below(trainer.accelerator.unwrap_model(self.model or trainer.model)))
        ids, logps = sample(policy, contexts, cap, trainer.temperature, [*trainer.eos_token_ids, *also])
        return ids, [row[: len(completion)] for row, completion in zip(logps.tolist(), ids, strict=True)]

    def _copied(self, policy: Any) -> Any:
        """Return the policy, or its copy in the precision of the sampler."""
        if self.precision is None:
            return policy
        step = self.trainer.state.global_step
        if step not in self.copies:
            self.copies = {step: rounded(policy, self.precision)}
        return self.copies[step]


class Sampler:
    """A sampler of a completion of each prompt."""

    ahead = 0  # number of rollouts that are sampled ahead of the updates
    staleness = 0  # number of rollouts that the policy has learned from since it sampled the present one

    def __init__(self, trainer: Any, drawing: Draw):
        self.trainer, self.drawing = trainer, drawing

    @property
    def rounds(self) -> bool:
        """Whether a copy of the policy samples, in a lower precision."""
        return getattr(self.drawing, "precision", None) is not None

    def sample(self, prompts: list[str], cap: int) -> Sampled:
        """Sample completions of at most `cap` tokens; prompts of one group follow each other."""
        return self.completed(self.tokenized(prompts), cap)

    def tokenized(self, prompts: list[str]) -> TokenLists:
        """Return the token ids of prompts."""
        # TRL would put a second BOS before a text that a chat template has made
        return prompt_ids(prompts, self.trainer.processing_class)

    def completed(self, prompts: TokenLists, cap: int) -> Sampled:
        """Sample as `sample` does, from the token ids of prompts."""
        completions, logps = self.drawing.draw(prompts, cap, alike=self.trainer.num_generations)
        return Sampled(prompts, completions, logps, self.drawing.exact)


class ToolSampler(Sampler):
    """A sampler of completions in turns: the policy may call a tool, whose results are inserted.

    The loss, ratios, KL, entropies, lengths and rewards see the policy's own tokens alone, unless
    `learn_results`.
    """

    def __init__(self, trainer: Any, drawing: Draw, tool: ToolInWorld, learn_results: bool):
        super().__init__(trainer, drawing)
        self.tool, self.learn_results = tool, learn_results

    def completed(self, prompts: TokenLists, cap: int) -> Sampled:
        tokenizer = self.trainer.processing_class
        talks = converse(prompts, cap, self.drawing.draw, self.tool, tokenizer)
        # if results are learned, no log-probabilities are passed on: the sampler reports none for results
        known = bool(talks[0].logps) and not self.learn_results
        return Sampled(
            prompts,
            [talk.ids for talk in talks],
            [talk.logps for talk in talks] if known else None,
            self.drawing.exact,
            [talk.own for talk in talks],
            {
                OWN: [talk.said() for talk in talks],
                TURNS: [talk.turns(tokenizer) for talk in talks],
                **{name: [getattr(talk, name) for talk in talks] for name in CALLS},
                **_of_episodes(talks),
            },
        )


def _of_episodes(talks: Sequence[Talk]) -> dict[str, list[Any]]:
    """Return the columns of EPISODE; {} if no world has rewarded a call or shown its state."""
    columns = {name: [getattr(talk, name) for talk in talks] for name in EPISODE}
    values = [value for rows in columns.values() for row in rows for value in row]
    return {} if all(value is None for value in values) else columns
