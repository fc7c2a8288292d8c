"""A tiny model in a trainer that has not begun, and rollouts made by hand for it."""

import io
from typing import Any

import torch
from datasets import Dataset
from transformers import Qwen3Config, Qwen3ForCausalLM
from trl import GRPOConfig, GRPOTrainer

from encore import worlds
from encore.learning.grpo import GRPO
from encore.learning.grpo_objective import OLD, Extension

GROUP, BATCH, PROMPT, TIME = 4, 8, 3, 6
WORLD = worlds.make({"world": "chain"})
TOKENIZER = worlds.tokenizer([WORLD])


def trainer(folder, extension: Extension | None = None, attention_dropout: float = 0.0, **args: Any) -> Any:
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
    built = GRPO(
        model=Qwen3ForCausalLM(config),
        args=GRPOConfig(output_dir=str(folder), **{**cpu, **plain, **batches, **args}),
        reward_funcs=[accuracy, style],
        train_dataset=Dataset.from_dict({"prompt": ["<user>1+2=<assistant>"] * 9}),
        processing_class=TOKENIZER,
    )
    built.model.train()
    built.current_gradient_accumulation_steps = built.args.gradient_accumulation_steps
    built.state.max_steps = 10
    built.extension = extension or Extension()
    return built


def accuracy(completions, **columns):
    return [0.0] * len(completions)


def style(completions, **columns):
    return [0.0] * len(completions)


def rollout(built: Any, rows: int = BATCH, spread: float = 0.3, seed: int = 0) -> dict[str, Any]:
    """A batch as TRL makes it, ragged; the old policy is `spread` nats a token away from the new one."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, TIME + 1, (rows,), generator=generator)
    lengths[0] = TIME
    mask = (torch.arange(TIME) < lengths[:, None]).long()  # (batch, time)
    batch = {
        "prompt_ids": torch.randint(4, len(TOKENIZER), (rows, PROMPT), generator=generator),
        "prompt_mask": torch.ones(rows, PROMPT, dtype=torch.long),
        "completion_ids": torch.randint(4, len(TOKENIZER), (rows, TIME), generator=generator) * mask,
        "completion_mask": mask,
        "advantages": torch.randn(rows, generator=generator),
        "num_items_in_batch": mask.sum(),
    }
    with torch.no_grad():
        now = logps(built, batch)
    batch[OLD] = (now + spread * torch.randn(now.shape, generator=generator)) * mask
    return batch


def logps(built: Any, batch: dict[str, Any]) -> torch.Tensor:
    """(batch, time), of the policy now."""
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    return built._get_per_token_logps_and_entropies(built.model, ids, mask, TIME)[0]


def gradient(built: Any, loss: torch.Tensor) -> torch.Tensor:
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(built.model.parameters()))])


def scored(monkeypatch, batch: dict[str, Any], rewards: list[list[float]], texts: list[str] | None = None):
    """Have TRL's rollout be `batch`, with these rewards (rows, functions)."""
    texts = texts or [""] * len(rewards)
    rows = [{"question": "1+2=", "answer": "3", "difficulty": 2} for _ in rewards]

    def generate(self, inputs):
        pairs = zip(batch["completion_ids"], batch["completion_mask"].bool(), strict=True)
        ids = [row[keep].tolist() for row, keep in pairs]
        self._calculate_rewards(rows, [""] * len(rows), texts, ids)
        self._metrics["train"]["completions/clipped_ratio"].append(0.0)
        return dict(batch)

    monkeypatch.setattr(GRPOTrainer, "_calculate_rewards", lambda *args: torch.tensor(rewards))
    monkeypatch.setattr(GRPOTrainer, "_generate_and_score_completions", generate)
    return rows


def held(built: Any) -> dict[str, Any]:
    """Its state, by way of a file."""
    built._tr_loss, built._globalstep_last_logged = torch.tensor(0.0), 0  # train() sets them
    file = io.BytesIO()
    torch.save(built.held_state(), file)
    file.seek(0)
    return torch.load(file, weights_only=True)
