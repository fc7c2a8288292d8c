"""Watches the stage `ppo` at work, and puts what it did beside what the references say.

As `observe` does for grpo: the real stage on a float64 model, with scripted completions.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import observe
import ppo_references as paper
import torch
from compare import Outcome, Reader, keys
from observe import Parameters, Watch

from encore.learning.minibatch import Minibatch
from encore.learning.ptx import PtxLoss

REWARDS = {"accuracy": 1.0, "format": 0.5}
PTX = {
    "coefficient": 0.7,
    "batch_size": 5,
    "task": observe.TASK,
    "template": observe.TEMPLATE,
    "corpus": {"documents": 12, "mixture": {"direct": 0.5, "chain": 0.5}},
}
ARGS: dict[str, Any] = {
    "loss_type": "dapo",
    "scale_rewards": "none",
    "kl_coef": 0.3,
    "gamma": 0.9,
    "lam": 0.8,
    "vf_coef": 0.4,
    "cliprange_value": 0.2,
    "whiten_rewards": False,
    "whiten_advantages": True,
    "critic_learning_rate": 0.02,
    "reshuffle": True,
}
# what differs from ARGS, and keys of the stage
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "ziegler": ({"gamma": 1.0, "lam": 0.95, "whiten_rewards": True, "kl_target": 2.0, "kl_gain": 0.5}, {}),
    "unwhitened": ({"whiten_advantages": False, "cliprange_value": 0.0, "gamma": 1.0, "lam": 1.0}, {}),
    "penalty": ({"missing_eos_penalty": 2.0}, {"critic": "random"}),
    "eos-trick": ({"missing_eos_score": -1.0, "kl_coef": 0.0}, {}),
    "ptx": ({"lam": 0.0}, {"ptx": PTX}),
    "singles": ({"num_generations": 1}, {}),
}


@dataclass
class Seen:
    """A finished run: `observe.Watch`, and the same of the critic."""

    watch: Watch
    critics: list[Parameters] = field(default_factory=list)  # of each rollout, when it was sampled
    kl_coefs: list[float] = field(default_factory=list)  # likewise
    critic_updates: list[tuple[Parameters, torch.Tensor]] = field(default_factory=list)  # before, gradient


def run(folder: Path, case: str, layout: str) -> Seen:
    """Run the stage on a case in a layout of `observe.LAYOUTS`."""
    from encore.stages import ppo

    args, stage = CASES[case]
    given = observe.arguments(layout, **{**ARGS, **args})
    config = {
        "task": observe.TASK,
        "template": observe.TEMPLATE,
        "problems": 16,
        "model": {"path": str(observe.model(folder))},
        "rewards": REWARDS,
        **stage,
        "args": {**given, "model_init_kwargs": {"dtype": "float64"}},
    }
    return observe.trained(ppo, config, {}, folder, recorder)


def recorder(trainer: Any) -> Seen:
    seen = Seen(observe.recorder(trainer, REWARDS))
    learning, estimator = trainer.parts.kept["critic"], trainer.parts.kept["estimator"]
    estimate, make_step = estimator.estimate, learning.step

    def critic() -> Parameters:
        return {name: weight.detach().clone() for name, weight in learning.critic.named_parameters()}

    def estimated(*given: Any) -> Any:
        seen.critics.append(critic())
        seen.kl_coefs.append(estimator.kl_coef)
        return estimate(*given)

    def step() -> None:
        gradients = [weight.grad for weight in learning.critic.parameters()]
        seen.critic_updates.append((critic(), observe.flat(gradients, learning.critic)))
        make_step()

    estimator.estimate, learning.step = estimated, step
    return seen


@dataclass
class Held:
    """A rollout by the references; a row is known by its tokens."""

    old: dict[tuple, Any]
    values: dict[tuple, Any]
    advantages: dict[tuple, Any]
    returns: dict[tuple, Any]
    kl: float


class Critic:
    """Values of whole completions, by a plain forward pass of one unpadded row in float64."""

    def __init__(self, trainer: Any):
        self.model = copy.deepcopy(trainer.parts.kept["critic"].critic)

    def load(self, parameters: Parameters) -> None:
        self.model.load_state_dict(parameters)
        self.model.zero_grad()

    def values(self, row: tuple) -> torch.Tensor:
        """(T,): before each token of the completion."""
        prompt, completion = row
        ids = torch.tensor([[*prompt, *completion]])
        hidden = self.model.backbone(input_ids=ids, use_cache=False).last_hidden_state[0]
        return (hidden @ self.model.head.weight[0])[len(prompt) - 1 : -1]

    def gradient(self) -> torch.Tensor:
        return observe.flat([weight.grad for weight in self.model.parameters()], self.model)


def hold(seen: Seen, index: int, reader: Reader, critic: Critic) -> Held:
    rollout, args = seen.watch.rollouts[index], seen.watch.trainer.parts.kept["estimator"].args
    policy = seen.watch.trainer.parts.policy
    rows, end = keys(rollout), seen.watch.trainer.processing_class.eos_token_id
    old = reader.fixed(rollout.parameters, rows)
    reference = reader.fixed(dict(policy.reference.model.named_parameters()), rows)
    critic.load(seen.critics[index])
    with torch.no_grad():
        values = {row: critic.values(row).numpy() for row in rows}
    names = ["accuracy", "format"]
    episodes = [
        paper.Episode(
            old[row].numpy(),
            reference[row].numpy(),
            values[row],
            sum(REWARDS[name] * reward for name, reward in zip(names, given, strict=True)),
            row[1][-1] == end,
        )
        for row, given in zip(rows, rollout.rewards, strict=True)
    ]
    how = paper.Settings(
        seen.kl_coefs[index],
        args.gamma,
        args.lam,
        args.whiten_rewards,
        args.whiten_advantages,
        args.missing_eos_penalty,
        args.missing_eos_score,
    )
    advantages, returns = paper.learning_signal(episodes, how)
    by_row = [dict(zip(rows, found, strict=True)) for found in (advantages, returns)]
    return Held(
        {row: tensor.numpy() for row, tensor in old.items()}, values, *by_row, paper.sequence_kl(episodes)
    )


def outcomes(seen: Seen, folder: Path) -> tuple[list[Outcome], list[Outcome], list[Held]]:
    """Of each step: loss and gradient of the policy; the same of the critic's part. And the rollouts."""
    reader = Reader(folder / "model", seen.watch.trainer.args.temperature)
    critic = Critic(seen.watch.trainer)
    args = seen.watch.trainer.parts.kept["estimator"].args
    extra = [loss.__self__ for loss in seen.watch.trainer.parts.extra_losses]
    ptx = next((one.ptx for one in extra if isinstance(one, PtxLoss)), None)
    done, policy, value = 0, [], []
    with observe.quick():
        held = [hold(seen, i, reader, critic) for i in range(len(seen.watch.rollouts))]
        for update, (before, gradient) in zip(seen.watch.updates, seen.critic_updates, strict=True):
            rollout = held[update.rollout]
            rows = [row for part in update.slices for row in rows_of(part, reader.pad)]
            reader.load(update.parameters)
            critic.load(before)
            logps = [reader.read([*row[0]], [*row[1]])[0] for row in rows]
            loss = paper.policy_loss(
                logps, [rollout.old[r] for r in rows], [rollout.advantages[r] for r in rows], args.epsilon
            )
            if ptx:
                numbers = range(done, done + len(update.slices))
                pretraining = [nll(ptx.batch(number), reader) for number in numbers]
                loss = loss + ptx.coefficient * torch.stack(pretraining).mean()
            done += len(update.slices)
            values = paper.value_loss(
                [critic.values(r) for r in rows],
                [rollout.values[r] for r in rows],
                [rollout.returns[r] for r in rows],
                args.cliprange_value,
            )
            total = loss + args.vf_coef * values
            total.backward()
            assert update.gradient is not None
            policy.append(Outcome(update.loss, total.item(), update.gradient, reader.gradient()))
            value.append(Outcome(update.loss, total.item(), gradient, critic.gradient()))
    return policy, value, held


def rows_of(part: Minibatch, pad: int) -> list[tuple]:
    pairs = zip(part.prompt_ids.tolist(), part.completion_ids.tolist(), strict=True)
    return [tuple(tuple(token for token in ids if token != pad) for ids in pair) for pair in pairs]


def nll(documents: dict[str, torch.Tensor], reader: Reader) -> torch.Tensor:
    """The mean of -log pi over the tokens of these documents that carry a loss."""
    terms = []
    for ids, labels in zip(documents["input_ids"], documents["labels"], strict=True):
        length = int((labels != -100).nonzero()[-1]) + 1
        start = int((labels != -100).nonzero()[0])
        terms.append(reader.read(ids[:start].tolist(), ids[start:length].tolist())[0])
    return -torch.cat(terms).mean()


Run = Callable[[str, str], Seen]
