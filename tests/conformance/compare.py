"""Puts what the stage did beside what a reference says: value and gradient of each optimizer step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import observe
import references
import torch
from observe import GROUP, Rollout, Update, Watch
from references import Array, Sample

TOLERANCE = 1e-5  # relative; TRL's kernel of log-probabilities computes in float32
# of a rollout, given the earlier ones: (groups, G), or of each group those of each row's tokens
Advantages = Callable[["Scored", Sequence["Scored"]], Sequence[Any] | Array]


@dataclass(frozen=True)
class Scored:
    """What a rollout's advantages may depend on. Rows of a group follow each other."""

    rewards: Array  # (groups, G): weighted sums
    correct: Array  # (groups, G): accuracy rewards
    steps: list[list[tuple[int, float]]]  # of each row: last token of a step, its reward
    lengths: list[int]


@dataclass(frozen=True)
class Case:
    """An objective: how the stage is configured, and what its paper says it is."""

    objective: Callable[[Sequence[Sample]], torch.Tensor]
    advantages: Advantages
    args: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=dict)
    scale: float = 1.0  # the stage's loss is so many times the paper's, a constant
    per_slice: bool = False  # the equation holds for each micro-batch; a step takes their mean

    def watch(self, folder: Path, layout: str) -> Watch:
        return observe.watch(folder, {"args": observe.arguments(layout, **self.args), **self.keys})


class Reader:
    """Log-probabilities of whole completions, by a plain forward pass of one unpadded row in float64."""

    def __init__(self, folder: Path, temperature: float = 1.0):
        from transformers import Qwen3ForCausalLM

        self.model: Any = Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float64)
        self.pad, self.temperature = self.model.config.pad_token_id, temperature

    def load(self, parameters: observe.Parameters) -> None:
        self.model.load_state_dict(parameters)
        self.model.zero_grad()

    def read(self, prompt: list[int], completion: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Log-probabilities of a completion's tokens, and the entropies of their distributions: (T,) each."""
        every = self.every(prompt, completion)
        tokens = torch.tensor(completion)[:, None]
        return every.gather(1, tokens)[:, 0], -(every.exp() * every).sum(-1).detach()

    def every(self, prompt: list[int], completion: list[int]) -> torch.Tensor:
        """Log-probabilities of every token of the vocabulary at each place of a completion: (T, V)."""
        ids = torch.tensor([prompt + completion])
        logits = self.model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1]
        logps: torch.Tensor = (logits / self.temperature).log_softmax(-1)
        return logps

    @torch.no_grad()
    def fixed(self, parameters: observe.Parameters, rows: list[tuple]) -> dict[tuple, torch.Tensor]:
        self.load(parameters)
        return {row: self.read([*row[0]], [*row[1]])[0] for row in dict.fromkeys(rows)}

    def gradient(self) -> torch.Tensor:
        return observe.flat([weight.grad for weight in self.model.parameters()], self.model)


@dataclass
class Outcome:
    """Loss and gradient of a step: the stage's and the reference's."""

    loss: float
    expected_loss: float
    gradient: torch.Tensor
    expected: torch.Tensor

    @cached_property
    def value_error(self) -> float:
        """Relative, but to no less than 0.1: a loss is a mean of terms of order 1 that may cancel."""
        return abs(self.loss - self.expected_loss) / max(abs(self.expected_loss), 0.1)

    @cached_property
    def gradient_error(self) -> float:
        """|g - e| / |e|"""
        return ((self.gradient - self.expected).norm() / self.expected.norm().clamp(min=1e-6)).item()

    @cached_property
    def factor(self) -> float:
        """The c for which c e is nearest to g."""
        return (self.gradient @ self.expected / self.expected.square().sum().clamp(min=1e-12)).item()


def worst(outcomes: Sequence[Outcome]) -> float:
    """The largest error of value or gradient over the steps."""
    return max(max(one.value_error, one.gradient_error) for one in outcomes)


def compare(case: Case, seen: Watch, folder: Path) -> list[Outcome]:
    """One outcome a step of the run."""
    reader = Reader(folder / "model", seen.trainer.args.temperature)
    with observe.quick():
        rollouts = [Held(case, seen, index, reader) for index in range(len(seen.rollouts))]
        return [outcome(case, update, rollouts[update.rollout], reader) for update in seen.updates]


class Held:
    """A rollout with all that does not change from step to step. A row is known by its tokens."""

    def __init__(self, case: Case, seen: Watch, index: int, reader: Reader):
        rollout = seen.rollouts[index]
        tokenizer = seen.trainer.processing_class
        self.eos = tokenizer.eos_token_id
        self.masks = bool(seen.trainer.args.mask_truncated_completions)
        self.rows = keys(rollout)
        scored = [score(past, seen.weights, tokenizer) for past in seen.rollouts[: index + 1]]
        flat = [torch.as_tensor(a) for group in case.advantages(scored[-1], scored[:-1]) for a in group]
        self.advantage = dict(zip(self.rows, flat, strict=True))
        self.group = {row: at // GROUP for at, row in enumerate(self.rows)}
        self.own = dict(zip(self.rows, map(torch.tensor, rollout.own), strict=False))
        self.old = reader.fixed(rollout.parameters, self.rows)
        reference = seen.trainer.parts.policy.reference
        weights = dict(reference.model.named_parameters()) if reference else None
        self.reference = reader.fixed(weights, self.rows) if weights else {}

    def sample(self, row: tuple, noise: torch.Tensor | None, reader: Reader) -> Sample:
        """`noise`: what the stage says it has added to the old log-probabilities, (width of the batch,)"""
        logp, entropy = reader.read([*row[0]], [*row[1]])
        old = self.old[row] if noise is None else self.old[row] + noise[: len(logp)]
        masked = self.masks and row[1][-1] != self.eos
        reference = self.reference.get(row)
        if row in self.own:  # nothing else of the completion is in the equation
            own = self.own[row]
            logp, old, reference = (None if x is None else x[own] for x in (logp, old, reference))
            entropy = entropy[own]
        return Sample(logp, old, reference, self.advantage[row], masked, self.group[row], entropy)


def keys(rollout: Rollout) -> list[tuple]:
    return [(tuple(p), tuple(c)) for p, c in zip(rollout.prompts, rollout.completions, strict=True)]


def outcome(case: Case, update: Update, rollout: Held, reader: Reader) -> Outcome:
    reader.load(update.parameters)
    slices = []
    for part in update.slices:
        pairs = zip(part.prompt_ids.tolist(), part.completion_ids.tolist(), strict=True)
        rows = [tuple(tuple(token for token in ids if token != reader.pad) for ids in pair) for pair in pairs]
        noises = [None] * len(rows) if part.noise is None else part.noise
        slices.append([rollout.sample(*each, reader) for each in zip(rows, noises, strict=True)])
    parts = slices if case.per_slice else [[sample for part in slices for sample in part]]
    loss = -case.scale * references.mean_of(case.objective, parts)
    if loss.requires_grad:
        loss.backward()
    assert update.gradient is not None
    return Outcome(update.loss, loss.item(), update.gradient, reader.gradient())


def score(rollout: Rollout, weights: dict[str, float], tokenizer: Any) -> Scored:
    rewards = np.array(rollout.rewards)  # (rows, functions)
    names = [*weights]
    totals = (rewards * np.array([weights[name] for name in names])).sum(axis=1)
    correct = rewards[:, names.index("accuracy")]
    return Scored(
        totals.reshape(-1, GROUP),
        correct.reshape(-1, GROUP),
        [steps(rollout, row, tokenizer, correct[row]) for row in range(len(totals))],
        [len(ids) for ids in rollout.completions],
    )


def steps(rollout: Rollout, row: int, tokenizer: Any, correct: float) -> list[tuple[int, float]]:
    """The steps of the scratchpad by the world's verifier, and the answer, which ends with the completion.

    A step ends at its last token that is no dot.
    """
    from encore import worlds

    tokens = tokenizer.convert_ids_to_tokens(rollout.completions[row])
    first = tokens.index("<think>") + 1 if "<think>" in tokens else 0
    ends, last = [], -1
    for place in range(first, len(tokens) + 1):
        token = tokens[place] if place < len(tokens) else "</think>"
        if token in (",", "wait", "</think>", "<answer>", "<eos>"):
            ends += [last] if last >= 0 else []
            last = -1
            if token not in (",", "wait"):
                break
        elif token != ".":
            last = place
    world = worlds.make(observe.TASK)
    verdicts = world.steps(rollout.problems[row], rollout.texts[row])
    assert len(verdicts) == len(ends), rollout.texts[row]
    found = [(end, float(right)) for end, right in zip(ends, verdicts, strict=True)]
    return [*found, (len(tokens) - 1, float(correct))]
