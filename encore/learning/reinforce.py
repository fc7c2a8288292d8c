"""REINFORCE from first principles: `run_policy_gradient` of Stanford CS336 (spring 2025), lecture 17.

    each epoch (outer loop):
        every few epochs, freeze the reference: pi_ref = pi
        sample y ~ pi(.|x), some responses to each of a few prompts x
        reward them, R(x, y), and turn the rewards of a prompt's responses into deltas
        freeze pi_old = pi
        each inner step:
            Adam on loss(log pi(y|x), log pi_old(y|x), delta) + kl_coefficient * KL(pi, pi_ref)

The code is written to be read: one process, no micro-batches. In shapes, `batch` is prompts x responses,
where the responses to a prompt follow each other; `time` is the length of a row of prompt and response
without its first token, which nothing predicts.
"""

import copy
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from transformers import GenerationConfig

from encore.data.token_ids import end_ids, prompt_ids
from encore.errors import UserError
from encore.learning.completions import Record, by_correctness
from encore.models.packing import IGNORED, collate, document
from encore.objectives.advantages import DELTAS
from encore.objectives.averages import token_mean
from encore.objectives.clip import cut_by_clip
from encore.objectives.kl import ESTIMATORS, entropy, exact_kl, kl, kl_penalty
from encore.objectives.losses import policy_gradient
from encore.objectives.ratios import token_ratios
from encore.recipe.grpo_args import PolicyGradientArgs
from encore.rewards.rules import Reward

Row = dict[str, Any]


@dataclass(frozen=True)
class Rollout:
    """The responses of an epoch, with their rewards."""

    problems: list[Row]  # the problem of each response
    texts: list[str]
    responses: list[list[int]]  # token ids, the end-of-sequence token included
    values: dict[str, list[float]]  # reward function -> its value of each response
    rewards: torch.Tensor  # (prompts, responses), weighted sums of the values
    deltas: torch.Tensor  # (batch,)
    ids: torch.Tensor  # (batch, time + 1), padded on the right
    mask: torch.Tensor  # (batch, time), 1 at the tokens of responses


def train(
    model: Any,
    tokenizer: Any,
    problems: Sequence[Row],
    functions: Mapping[str, Reward],
    weights: Mapping[str, float],
    args: PolicyGradientArgs,
    seed: int,
    report: Callable[[Row, Rollout], None],
) -> None:
    """Train `model` in place; `report` receives the log entry and the rollout of each epoch.

    `problems` are rows of encore.data.prompts. The same seed gives the same bits. Raises UserError at a loss
    or gradient that is not finite.
    """
    torch.manual_seed(seed)
    order = random.Random(seed)
    model.eval()  # no dropout, so that the ratio is 1 before the first update
    # a checkpoint's own defaults (top_k, repetition_penalty, …) would change the policy that samples
    model.generation_config = GenerationConfig(
        eos_token_id=end_ids(model.generation_config, tokenizer), pad_token_id=tokenizer.pad_token_id
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=args.learning_rate)
    tokens = 0
    for epoch in range(args.epochs):
        if epoch % args.reference_epochs == 0:
            reference = copy.deepcopy(model)
        done = epoch * args.inner_steps
        chosen = order.sample(range(len(problems)), args.prompts_per_epoch)
        rollout = roll_out(model, tokenizer, [problems[i] for i in chosen], functions, weights, args, done)
        with torch.no_grad():
            log_pi = distribution(model, rollout.ids, args.temperature)  # (batch, time, vocabulary)
            log_ref = distribution(reference, rollout.ids, args.temperature)
        measured = before(rollout, log_pi, log_ref)
        old, ref = of_tokens(log_pi, rollout.ids), of_tokens(log_ref, rollout.ids)  # (batch, time)
        changes = [
            _update(model, optimizer, rollout, old, ref, args, done + step + 1)
            for step in range(args.inner_steps)
        ]
        tokens += int((rollout.ids != tokenizer.pad_token_id).sum())
        entry = {
            "step": done + args.inner_steps,
            **measured,
            **{name: sum(c[name] for c in changes) / len(changes) for name in changes[0]},
            "ratio/deviation": max(change["ratio/deviation"] for change in changes),
            "samples": (epoch + 1) * len(rollout.texts),
            "num_tokens": tokens,
        }
        report(entry, rollout)


def roll_out(
    model: Any,
    tokenizer: Any,
    problems: list[Row],
    functions: Mapping[str, Reward],
    weights: Mapping[str, float],
    args: PolicyGradientArgs,
    step: int,
) -> Rollout:
    """Sample `num_generations` responses to each problem and score them; `step` counts updates so far."""
    ends = end_ids(model.generation_config, tokenizer)
    responses = sample(model, tokenizer, [row["prompt"] for row in problems], args)
    texts = [tokenizer.decode(ids[:-1] if ids[-1] in ends else ids) for ids in responses]
    rows = [row for row in problems for _ in range(args.num_generations)]
    prompts = [row["prompt"] for row in rows]
    columns = {key: [row[key] for row in rows] for key in rows[0] if key != "prompt"}
    values = {
        name: function(
            prompts=prompts,
            completions=texts,
            completion_ids=responses,
            trainer_state=SimpleNamespace(global_step=step),
            **columns,
        )
        for name, function in functions.items()
    }
    totals = [sum(weights[name] * values[name][i] for name in functions) for i in range(len(rows))]
    rewards = torch.tensor(totals).view(-1, args.num_generations)
    documents = [document(*pair) for pair in zip(prompt_ids(prompts, tokenizer), responses, strict=True)]
    packed = collate(documents, tokenizer.pad_token_id)
    return Rollout(
        rows,
        texts,
        responses,
        values,
        rewards,
        DELTAS[args.delta](rewards).flatten().to(model.device),
        packed["input_ids"].to(model.device),
        (packed["labels"][:, 1:] != IGNORED).float().to(model.device),
    )


@torch.no_grad()
def sample(model: Any, tokenizer: Any, prompts: list[str], args: PolicyGradientArgs) -> list[list[int]]:
    """Return the token ids of each response, cut after its end of sequence, in the order of `prompts`."""
    batch = tokenizer.pad(
        {"input_ids": prompt_ids(prompts, tokenizer)}, padding_side="left", return_tensors="pt"
    ).to(model.device)
    rows = model.generate(
        input_ids=batch["input_ids"],
        attention_mask=batch["attention_mask"],
        do_sample=True,
        temperature=args.temperature,
        top_k=0,
        top_p=1.0,
        max_new_tokens=args.max_completion_length,
        num_return_sequences=args.num_generations,
    )
    ends = {*end_ids(model.generation_config, tokenizer)}
    responses = rows[:, batch["input_ids"].shape[1] :].tolist()
    cuts = [next((i + 1 for i, token in enumerate(row) if token in ends), len(row)) for row in responses]
    return [row[:cut] for row, cut in zip(responses, cuts, strict=True)]


def distribution(model: Any, ids: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return the log-probabilities of every next token: (batch, time + 1) -> (batch, time, vocabulary).

    There is no attention mask: a causal model's real tokens never see the padding after them.
    """
    return torch.log_softmax(model(input_ids=ids).logits[:, :-1].float() / temperature, dim=-1)


def of_tokens(log_pi: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Return the log-probabilities of the tokens in `ids`: (batch, time, vocabulary) -> (batch, time)."""
    return log_pi.gather(-1, ids[:, 1:, None]).squeeze(-1)


def before(rollout: Rollout, log_pi: torch.Tensor, log_ref: torch.Tensor) -> dict[str, float]:
    """Return the metrics of a rollout before its first update; KL and entropy in nats per token."""
    mask, size = rollout.mask, rollout.rewards.shape[1]
    pi, ref = of_tokens(log_pi, rollout.ids), of_tokens(log_ref, rollout.ids)
    spread = rollout.rewards.std(dim=1) if size > 1 else torch.zeros(len(rollout.rewards))
    rows: list[Record] = [
        {"tokens": len(ids), "rewards": {"accuracy": accuracy}}
        for ids, accuracy in zip(rollout.responses, rollout.values["accuracy"], strict=True)
    ]
    return {
        "reward": float(rollout.rewards.mean()),
        "reward_std": float(spread.mean()),
        "frac_reward_zero_std": float((spread == 0).float().mean()),
        **{f"rewards/{name}/mean": sum(values) / len(values) for name, values in rollout.values.items()},
        **by_correctness(rows, size),
        "completions/mean_length": float(mask.sum(dim=1).mean()),
        "advantage/abs": float(rollout.deltas.abs().mean()),
        "entropy": float(token_mean(entropy(log_pi), mask)),
        **{f"kl/{name}": float(token_mean(kl(pi, ref, name), mask)) for name in ESTIMATORS},
        "kl/exact": float(token_mean(exact_kl(log_pi, log_ref), mask)),
    }


def _update(
    model: Any,
    optimizer: torch.optim.Optimizer,
    rollout: Rollout,
    old: torch.Tensor,
    ref: torch.Tensor,
    args: PolicyGradientArgs,
    step: int,
) -> dict[str, float]:
    """Make an inner step and return its metrics. `old`, `ref`: (batch, time), constants."""
    mask = rollout.mask
    log_probs = of_tokens(distribution(model, rollout.ids, args.temperature), rollout.ids)
    loss = policy_gradient(log_probs, old, rollout.deltas, args.loss, args.epsilon, args.log_ratio, mask)
    if args.kl_coefficient:
        loss = loss + args.kl_coefficient * kl_penalty(log_probs, ref, args.kl_estimator, mask)
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
    metrics = {"loss": loss.item(), "grad_norm": norm.item()}
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise UserError(
                f"step {step}: {name} is {value}, training cannot go on; a lower learning_rate often helps"
            )
    optimizer.step()
    ratio = token_ratios(log_probs.detach(), old)
    metrics["ratio/deviation"] = float(((ratio - 1).abs() * mask).max())
    metrics["ratio/token_std"] = float(ratio[mask > 0].std())
    if args.loss == "clipped":
        ratio = token_ratios(log_probs.detach(), old, args.log_ratio)
        cut = cut_by_clip(ratio, rollout.deltas[:, None], args.epsilon, args.epsilon)
        metrics["clip_fraction"] = float(token_mean(cut.float(), mask))
    return metrics
