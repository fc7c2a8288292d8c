"""A tiny model in a trainer that has not begun, and rollouts made by hand for it."""

import io
from dataclasses import replace
from typing import Any

import torch
from datasets import Dataset
from transformers import Qwen3Config, Qwen3ForCausalLM
from trl import GRPOConfig

from encore import worlds
from encore.learning.minibatch import Minibatch
from encore.learning.samplers import Sampled
from encore.learning.trainer import Method, RolloutTrainer

GROUP, BATCH, PROMPT, TIME = 4, 8, 3, 6
WORLD = worlds.make({"world": "chain"})
TOKENIZER = worlds.tokenizer([WORLD])


def trainer(folder, method: Method | None = None, attention_dropout: float = 0.0, **args: Any) -> Any:
    """A trainer on a model of two thousand parameters, which has not begun to train."""
    torch.manual_seed(0)
    size = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "head_dim": 8}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "initializer_range": 0.3}
    special = {"pad_token_id": TOKENIZER.pad_token_id, "eos_token_id": TOKENIZER.eos_token_id}
    shape = {"vocab_size": len(TOKENIZER), "max_position_embeddings": 32}
    config = Qwen3Config(**shape, **size, **heads, **special, attention_dropout=attention_dropout)
    plain = {"loss_type": "grpo", "num_generations": GROUP, "max_completion_length": TIME, "epsilon": 0.2}
    batches = {"per_device_train_batch_size": BATCH, "pad_to_multiple_of": None}
    cpu = {"use_cpu": True, "bf16": False, "report_to": "none", "gradient_checkpointing": False}
    built: Any = RolloutTrainer(
        method or Method(),
        GRPOConfig(output_dir=str(folder), **{**cpu, **plain, **batches, **args}),
        model=Qwen3ForCausalLM(config),
        reward_funcs=[accuracy, style],
        train_dataset=Dataset.from_dict({"prompt": ["<user>1+2=<assistant>"] * 9}),
        processing_class=TOKENIZER,
    )
    built.model.train()
    built.current_gradient_accumulation_steps = built.args.gradient_accumulation_steps
    built.state.max_steps = 10
    return built


def accuracy(completions, **columns):
    return [0.0] * len(completions)


def style(completions, **columns):
    return [0.0] * len(completions)


def rollout(built: Any, rows: int = BATCH, spread: float = 0.3, seed: int = 0) -> Minibatch:
    """Return a ragged rollout; the old policy is `spread` nats a token away from the new one."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, TIME + 1, (rows,), generator=generator)
    lengths[0] = TIME
    mask = (torch.arange(TIME) < lengths[:, None]).long()  # (batch, time)
    batch = Minibatch(
        torch.randint(4, len(TOKENIZER), (rows, PROMPT), generator=generator),
        torch.ones(rows, PROMPT, dtype=torch.long),
        torch.randint(4, len(TOKENIZER), (rows, TIME), generator=generator) * mask,
        mask,
        advantages=torch.randn(rows, generator=generator),
    )
    with torch.no_grad():
        now = logps(built, batch)
    return replace(batch, old=(now + spread * torch.randn(now.shape, generator=generator)) * mask)


def logps(built: Any, batch: Minibatch) -> torch.Tensor:
    """Return the log-probabilities of the policy now, (batch, time)."""
    return built.parts.policy.logps(built.model, batch).logp


def gradient(built: Any, loss: torch.Tensor) -> torch.Tensor:
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(built.model.parameters()))])


def scored(built: Any, batch: Minibatch, rewards: list[list[float]]) -> list[dict[str, Any]]:
    """Have the next rollouts be `batch`, with these rewards (rows, functions); returns their prompts."""
    pairs = zip(batch.completion_ids, batch.completion_mask.bool(), strict=True)
    ids = [row[keep].tolist() for row, keep in pairs]
    built.parts.rollouts.sampler.sample = lambda prompts, cap: Sampled(batch.prompt_ids.tolist(), ids)
    built.parts.policy.sampled = lambda tokens, sampled: (batch.old, batch.ref)
    columns = [list(column) for column in zip(*rewards, strict=True)]
    built.reward_funcs = [lambda values=values, **_: values for values in columns]
    return [{"prompt": "", "question": "1+2=", "answer": "3", "difficulty": 2} for _ in rewards]


def made(built: Any, batch: Minibatch, rewards: list[list[float]]) -> Minibatch:
    """Return a rollout with these tokens, log-probabilities and rewards as the trainer makes it."""
    return built.parts.rollouts.round(scored(built, batch, rewards))[0]


def resumed(built: Any, other: Any) -> None:
    """Give `other` what the parts of `built` hold, by way of a file."""
    built._tr_loss, built._globalstep_last_logged = torch.tensor(0.0), 0  # train() sets them
    file = io.BytesIO()
    torch.save({name: part.state() for name, part in built.held().items()}, file)
    file.seek(0)
    states = torch.load(file, weights_only=True)
    for name, part in other.held().items():
        part.restore(states[name])
