"""Watches the stage `grpo` at work: what it was given at each optimizer step, and the gradient it made of it.

The real stage runs in this process on a float64 model of a few hundred parameters. Only the sampling is
scripted, so that a rollout holds ragged, truncated and identical completions: everything after it is the
stage's own. A micro-batch is known by the token ids of its rows; what the references need besides (rewards,
group, where the steps end) belongs to the text of a completion and is looked up by it.
"""

import gc
import hashlib
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}

import jobs
import torch
from transformers import PrinterCallback, TrainerCallback

from encore.learning.minibatch import Minibatch
from encore.worlds.protocol import Problem

Parameters = dict[str, torch.Tensor]
GROUP, PROMPTS, CAP = 4, 4, 22  # completions a prompt, prompts a rollout, tokens a completion at most
TASK = {"world": "chain", "terms": [2, 3]}
TEMPLATE = "<user>{question}<assistant>"

# micro-batch size, gradient accumulation, micro-batches a rollout, epochs over a rollout -> updates a rollout
LAYOUTS: dict[str, dict[str, int]] = {
    "one-update": {"size": 16, "accumulate": 1, "slices": 1, "epochs": 1},
    "accumulated": {"size": 4, "accumulate": 4, "slices": 4, "epochs": 1},
    "minibatches": {"size": 4, "accumulate": 1, "slices": 4, "epochs": 1},
    "windows": {"size": 4, "accumulate": 2, "slices": 4, "epochs": 1},
    "epochs": {"size": 4, "accumulate": 2, "slices": 4, "epochs": 2},
    "one-batch-twice": {"size": 16, "accumulate": 1, "slices": 1, "epochs": 2},
}


class Enough(Exception):
    """Ends the stage once training is done: what it saves afterwards is not under test here."""


@dataclass
class Update:
    """One optimizer step. Row indices are into `Watch.rollouts[rollout]`."""

    parameters: Parameters  # of the policy, before the step
    rollout: int
    slices: list[Minibatch] = field(default_factory=list)  # the micro-batches, as given
    loss: float = 0.0
    gradient: torch.Tensor | None = None  # (parameters,)


@dataclass
class Rollout:
    """What was sampled with `parameters`; rows of a group follow each other."""

    step: int
    parameters: Parameters
    prompts: list[list[int]] = field(default_factory=list)
    completions: list[list[int]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    rewards: list[list[float]] = field(default_factory=list)  # a number for each function of `Watch.weights`
    own: list[list[bool]] = field(default_factory=list)  # which tokens are the policy's; empty: all


@dataclass
class Watch:
    """A finished run."""

    trainer: Any
    weights: dict[str, float]
    rollouts: list[Rollout]
    updates: list[Update]
    logged: list[float]  # the loss of each step as the trainer logs it
    records: list[list[dict[str, Any]]] = field(default_factory=list)  # of each round, the lines of its log


def arguments(layout: str, **args: Any) -> dict[str, Any]:
    """The stage's `args` for a layout; two rollouts long. `args` go over the plain GRPO of DeepSeekMath."""
    shape = LAYOUTS[layout]
    updates = shape["slices"] * shape["epochs"] // shape["accumulate"]
    return {
        "loss_type": "grpo",
        "beta": 0.0,
        "use_bias_correction_kl": False,
        "scale_rewards": "group",
        "num_generations": GROUP,
        "num_iterations": shape["epochs"],
        "per_device_train_batch_size": shape["size"],
        "gradient_accumulation_steps": shape["accumulate"],
        "steps_per_generation": shape["slices"],
        "epsilon": 0.2,
        "temperature": 1.0,
        "top_p": 1.0,
        "mask_truncated_completions": False,
        "importance_sampling_level": "token",
        "lr_scheduler_type": "constant",
        "learning_rate": 0.03,  # of Adam: ratios leave the clip range after a step or two
        "max_grad_norm": 0.0,
        "max_completion_length": CAP,
        "vllm_importance_sampling_correction": False,
        "pad_to_multiple_of": None,
        "max_steps": 2 * updates,
        "save_strategy": "no",
        **args,
    }


def watch(folder: Path, config: dict[str, Any], script: Callable[[Watch], None] | None = None) -> Watch:
    """Run the stage on `config` (its `args`, and any of its own keys) and keep what it did.

    `script` replaces the scripted sampling of the `recorder` by another.
    """
    from encore.stages import grpo

    config = {
        "task": TASK,
        "template": TEMPLATE,
        "problems": 16,
        "model": {"path": str(model(folder, config.get("task", TASK)))},
        "rewards": {"accuracy": 1.0, "format": 0.5},
        **config,
    }
    config["args"] = {**config["args"], "model_init_kwargs": {"dtype": "float64"}}
    weights = {"accuracy": 0.0, **config["rewards"]}

    def record(trainer: Any) -> Watch:
        recorded = recorder(trainer, weights)
        if script:
            script(recorded)
        return recorded

    seen = trained(grpo, config, {}, folder, record)
    seen.logged.extend(row["loss"] for row in seen.trainer.state.log_history if "loss" in row)
    return seen


def trained(
    stage: Any,
    config: dict[str, Any],
    inputs: dict[str, Path],
    folder: Path,
    record: Callable[[Any], Any],
) -> Any:
    """Train in a stage, a module; what `record` makes of its trainer before the first step."""
    held: list[Any] = []

    def fit(trainer: Any, progress: Any, keep: Any = None) -> None:
        trainer.remove_callback(PrinterCallback)
        held.append(record(trainer))
        trainer.train()
        raise Enough

    with patch("encore.stages.policy.fit", fit), quick(), suppress(Enough):
        jobs.run(stage, config, inputs, folder / "work", seed=3)
    return held[0]


@contextmanager
def quick() -> Iterator[None]:
    """Tiny passes are slower on two threads; and the trainer's search for garbage need not see all of TRL."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        torch.set_num_threads(threads)


def model(folder: Path, task: dict[str, Any] | None = None) -> Path:
    """A tiny model with the world's tokenizer, saved in float64."""
    place = folder / "model"
    if place.exists():
        return place
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from encore import worlds
    from encore.worlds.text import tokenizer

    words = tokenizer([worlds.make(task or TASK)])
    torch.manual_seed(0)
    size = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "head_dim": 8}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    special = {"pad_token_id": words.pad_token_id, "eos_token_id": words.eos_token_id, "bos_token_id": None}
    shape = Qwen3Config(
        vocab_size=len(words),
        max_position_embeddings=64,
        initializer_range=0.3,
        tie_word_embeddings=False,
        **size,
        **heads,
        **special,
    )
    built = Qwen3ForCausalLM(shape).double()
    built.save_pretrained(place)
    words.save_pretrained(place)
    return place


def recorder(trainer: Any, weights: dict[str, float]) -> Watch:
    """Script the trainer's sampling, move its reference model off the policy, and record."""
    seen = Watch(trainer, weights, [], [], [])
    policy = trainer.model
    if (reference := trainer.parts.policy.reference) is not None:
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for weight in reference.model.parameters():
                weight += 0.1 * torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
    scorer = trainer.parts.rollouts.scorer
    score = scorer.score
    compute, train = trainer.compute_loss, trainer.training_step
    current: list[Update] = []

    def parameters() -> Parameters:
        return {name: weight.detach().clone() for name, weight in policy.named_parameters()}

    def sample(prompt_ids: list[list[int]], *args: Any, **kwargs: Any) -> Any:
        step = trainer.state.global_step
        if not seen.rollouts or seen.rollouts[-1].step != step:  # else a further round of dynamic sampling
            seen.rollouts.append(Rollout(step, parameters()))
        ids = [
            completion(trainer.processing_class, prompt, len(seen.rollouts), row)
            for row, prompt in enumerate(prompt_ids)
        ]
        seen.rollouts[-1].prompts += [list(prompt) for prompt in prompt_ids]
        seen.rollouts[-1].completions += ids
        return [list(row) for row in ids], None

    def scored(*given: Any) -> Any:
        scores = score(*given)
        now = seen.rollouts[-1]
        seen.records.append(scores.records)
        now.texts += scores.texts
        now.rewards += scores.rewards.double().tolist()
        now.problems += [Problem(row["question"], row["answer"], row["difficulty"]) for row in scores.rows]
        return scores

    def loss_of(model: Any, inputs: Minibatch, *args: Any, **kwargs: Any) -> Any:
        if not current:
            current.append(Update(parameters(), len(seen.rollouts) - 1))
        current[0].slices.append(inputs)
        return compute(model, inputs, *args, **kwargs)

    def step(*args: Any, **kwargs: Any) -> torch.Tensor:
        loss = train(*args, **kwargs)
        current[0].loss += loss.item()
        return loss

    class Gradient(TrainerCallback):
        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            update = current.pop()
            update.gradient = flat([weight.grad for weight in policy.parameters()], policy)
            seen.updates.append(update)

    trainer._generate_single_turn = sample
    scorer.score = scored
    trainer.compute_loss, trainer.training_step = loss_of, step
    trainer.add_callback(Gradient())
    return seen


def flat(tensors: list[torch.Tensor | None], policy: Any) -> torch.Tensor:
    """Gradients of all parameters as one vector; zero where there is none."""
    pairs = zip(tensors, policy.parameters(), strict=True)
    return torch.cat([(torch.zeros_like(w) if t is None else t).flatten().clone() for t, w in pairs])


def completion(tokenizer: Any, prompt: list[int], rollout: int, row: int) -> list[int]:
    """A scripted completion of the world's documents; EOS where it fits the cap.

    The first group of a rollout is one completion four times (no variance), the last has no right one; each
    other has one that is right, one that is wrong and one that is often cut off.
    """
    from encore import worlds

    world = worlds.make(TASK)
    question = tokenizer.decode(prompt).removeprefix("<user>").removesuffix("<assistant>")
    terms = [int(term) for term in question.rstrip("=").split("+")]
    problem = Problem(question, str(sum(terms)), len(terms))
    group, place = divmod(row, GROUP)
    seed = hashlib.blake2b(repr((question, rollout, group and place)).encode(), digest_size=8).digest()
    rng = random.Random(seed)
    last = rng.choice(["direct", "untagged", "recheck"])
    kinds = [("chain", {}), ("chain_error", {}), ("filler", {"mean": 3.0}), (last, {})]
    kind, dials = kinds[place if group else 0]
    if group == PROMPTS - 1:
        kind, dials = ("direct", {"right": 0.0}) if place == 1 else ("chain_error", {})
    ids = tokenizer(world.document(problem, kind, rng, **dials))["input_ids"]
    return ids[:CAP] if len(ids) >= CAP else [*ids, tokenizer.eos_token_id]
