r"""On-policy distillation: at each token the policy learns the teacher's whole next-token distribution.

The loss of an optimizer step is a mean over the tokens of its completions, which the policy itself has
sampled, or for a share of the rollouts the teacher (Agarwal et al. 2024, arXiv 2306.13649, Eq. 2 and Alg. 1):

    D(\pi_teacher(. | x, y_<t), \pi(. | x, y_<t)), with D a generalized Jensen-Shannon divergence

No gradient flows through the sampling. TRL's function computes D from hidden states and heads, so that the
logits of a large vocabulary never exist all at once. A teacher with hindsight reads another prompt than the
policy (`hindsight.py`), and x is then the prompt of each.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from trl.kernels.chunked_divergence import ChunkedDivergenceFunction
from trl.models.utils import _ForwardRedirection

from encore.learning.hindsight import Hindsight
from encore.learning.measures import Measures
from encore.learning.minibatch import Minibatch
from encore.learning.reference import beside
from encore.learning.rollouts import Rollouts
from encore.learning.samplers import Draw, LeanSampler, Logps, TokenLists
from encore.models import lora
from encore.models.packing import longest_first, to_the_left
from encore.recipe.portion import piece_rows


@dataclass(frozen=True)
class Teacher:
    """A teacher, and how the policy learns from it."""

    model: Any
    interpolation: float  # 0 for KL(teacher || policy), 1 for KL(policy || teacher), between them JSD
    on_policy: float = 1.0  # share of the rollouts that the policy samples
    hindsight: Hindsight | None = None  # what the teacher is shown; None if it reads the policy's prompts


class EitherSampler:
    """A sampler that is the policy in a share of the rollouts, and the teacher in the others."""

    exact = False

    def __init__(self, trainer: Any, teacher: Teacher):
        self.trainer, self.on_policy = trainer, teacher.on_policy
        self.policy, self.teacher = LeanSampler(trainer), LeanSampler(trainer, teacher.model)

    def draw(
        self, contexts: TokenLists, cap: int, also: Sequence[int] = (), alike: int = 1
    ) -> tuple[TokenLists, Logps]:
        """Return what `Draw.draw` returns. The seed and the number of the rollout decide who samples."""
        trainer = self.trainer
        chance = random.Random(f"{trainer.args.seed} {trainer.parts.rollouts.rounds}").random()
        drawing: Draw = self.policy if chance < self.on_policy else self.teacher
        return drawing.draw(contexts, cap, also, alike)


class Distillation:
    """The loss of a trainer whose policy learns from a teacher."""

    def __init__(self, teacher: Teacher, trainer: Any, rollouts: Rollouts, measures: Measures):
        self.trainer, self.rollouts, self.measures = trainer, rollouts, measures
        self.interpolation = teacher.interpolation
        # runs a function of the bare policy through the forward pass of its wrapper
        self.redirected = _ForwardRedirection()
        self.reference = beside(teacher.model, trainer, fused_head=False)

    def loss(self, model: Any, minibatch: Minibatch) -> Tensor:
        """Return the part, (), that a micro-batch adds to the loss of an optimizer step."""
        policy = self.trainer.accelerator.unwrap_model(model)
        divergence, entropy = self.redirected(model, policy, self.summed, policy, minibatch)
        step_tokens = self.rollouts.step_tokens()
        assert step_tokens is not None  # it is None for other losses than a mean over tokens
        self.measure(divergence, entropy, minibatch)
        return divergence / step_tokens.clamp(min=1)

    def measure(self, divergence: Tensor, entropy: Tensor, minibatch: Minibatch) -> None:
        """Add the means over a micro-batch's tokens, on all processes; both tensors, (), are sums."""
        sums = torch.stack([divergence.detach(), entropy, minibatch.loss_mask.sum()])
        *totals, tokens = self.trainer.accelerator.reduce(sums, reduction="sum")
        for name, total in zip(("divergence", "entropy"), totals, strict=True):
            self.measures.add(name, (total / tokens.clamp(min=1)).item())

    def summed(self, policy: Any, minibatch: Minibatch) -> tuple[Tensor, Tensor]:
        """Return the sums over all tokens in the loss of divergence and policy's entropy, each () in nats.

        Rows of like length run together, without the padding on the left.
        """
        ids, lengths, learned = _in_line(minibatch, minibatch.prompt_ids, minibatch.prompt_mask)
        taught_ids, taught_lengths, taught_learned = ids, lengths, learned
        prompts, mask = minibatch.taught_prompt_ids, minibatch.taught_prompt_mask
        if prompts is not None and mask is not None:
            taught_ids, taught_lengths, taught_learned = _in_line(minibatch, prompts, mask)
        sums = []
        for piece in longest_first(lengths, piece_rows(len(ids))):
            width, taught_width = (max(2, int(of[piece].max())) for of in (lengths, taught_lengths))
            shown, predicted = taught_ids[piece, :taught_width], taught_learned[piece, 1:taught_width]
            with torch.no_grad():
                taught = self.states(self.reference.model, shown, predicted)
            states = self.states(policy, ids[piece, :width], learned[piece, 1:width])
            sums.append(self.apart(policy, states, taught))
        divergences, entropies = zip(*sums, strict=True)
        return torch.stack(divergences).sum(), torch.stack(entropies).sum()

    def states(self, model: Any, tokens: Tensor, predicted: Tensor) -> Tensor:
        """Return the hidden states, (n, hidden), from which a model predicts the n tokens in the loss.

        `tokens`: (rows, width). `predicted`: (rows, width - 1) of bool, for the tokens from 1 on.
        """
        with self.trainer.accelerator.autocast():
            outputs = lora.below(model).base_model(input_ids=tokens, use_cache=False)
        states: Tensor = outputs.last_hidden_state[:, :-1][predicted]
        return states

    def apart(self, policy: Any, states: Tensor, taught: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sums of divergence and policy's entropy, from hidden states of policy and teacher."""
        weight, bias, *of_policy = _head(policy)
        of_teacher = _head(self.reference.model)
        divergence, entropy = ChunkedDivergenceFunction.apply(
            *(states, weight, bias, taught, *of_teacher[:2]),
            *(self.interpolation, self.trainer.temperature, *of_policy, *of_teacher[2:]),
        )
        return divergence.sum(), entropy.sum()


def _in_line(minibatch: Minibatch, prompt_ids: Tensor, prompt_mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return completions after their prompts, (B, P + T), with padding on the right, and each text's length.

    The third tensor, (B, P + T) of bool, marks the tokens in the loss.
    """
    ids = torch.cat([prompt_ids, minibatch.completion_ids], dim=1)
    mask = torch.cat([prompt_mask, minibatch.completion_mask], dim=1)
    learned = torch.cat([torch.zeros_like(prompt_mask), minibatch.loss_mask], dim=1)
    left, lengths = to_the_left(ids, mask)
    return left, lengths, to_the_left(learned, mask)[0].bool()


def _head(model: Any) -> tuple[Tensor, Tensor | None, float, float | None]:
    """Return the weight and bias of a model's head, and the scale and the soft cap of its logits."""
    head, config = lora.below(model).get_output_embeddings(), model.config.get_text_config()
    return head.weight, head.bias, _scale(config), getattr(config, "final_logit_softcapping", None)


def _scale(config: Any) -> float:
    """Return the factor of a model's logits, by whichever name its family has for it, as TRL does."""
    for name in ("logit_scale", "output_multiplier", "lm_head_multiplier"):
        if (scale := getattr(config, name, None)) is not None:
            return scale
    scaling = getattr(config, "logits_scaling", None)
    if scaling is None:
        return 1.0
    return scaling if config.model_type == "hyperclovax" else 1 / scaling
