"""TRL's LM head with narrow buffers: the same bits, in each of our trainers."""

import io
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM, Trainer, TrainingArguments
from transformers.trainer_callback import CallbackHandler, TrainerState
from trl import DPOTrainer
from trl.trainer import utils

from encore.learning.dpo import DPO
from encore.learning.fit import fit
from encore.learning.sft import SFT
from encore.learning.tiles import WIDTHS, narrow_tiles
from encore.learning.trainer import RolloutTrainer
from encore.runtime.progress import Progress

VOCABULARY = 13


def widths() -> list[int]:
    """The widths that TRL would read now."""
    return [getattr(module, name) for module, name in WIDTHS]


TRL_WIDTHS = widths()


@pytest.fixture
def model() -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "head_dim": 16}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    built = Qwen3ForCausalLM(Qwen3Config(vocab_size=VOCABULARY, max_position_embeddings=64, **size, **heads))
    utils.add_fused_lm_head(built, temperature=0.7, outputs=("log_probs", "entropy"))
    return built


def test_values_and_gradients_are_the_same_bits(model):
    ids = torch.randint(1, VOCABULARY, (9, 40), generator=torch.Generator().manual_seed(1))
    width = []

    def passes() -> list[torch.Tensor]:
        model.zero_grad()
        width.append(widths())
        outputs = model(input_ids=ids, labels=ids, fused_lm_head=True)
        (outputs.log_probs.square().sum() + outputs.entropy.sum()).backward()
        return [outputs.log_probs, outputs.entropy, *(p.grad.clone() for p in model.parameters())]

    plain = passes()
    with narrow_tiles(model):
        narrow = passes()
    assert width == [TRL_WIDTHS, [VOCABULARY] * len(WIDTHS)]
    assert all(torch.equal(*pair) for pair in zip(plain, narrow, strict=True))


def test_the_width_comes_back_after_an_error(model):
    with pytest.raises(ValueError, match="mid-training"), narrow_tiles(model):
        raise ValueError("mid-training")
    assert widths() == TRL_WIDTHS


def test_a_large_vocabulary_and_a_model_without_a_head_keep_trl_s_width():
    large = SimpleNamespace(get_output_embeddings=lambda: torch.nn.Linear(2, max(TRL_WIDTHS) + 1))
    for model in (large, SimpleNamespace(get_output_embeddings=lambda: None)):
        with narrow_tiles(model):
            assert widths() == TRL_WIDTHS


@pytest.mark.parametrize("kind", [RolloutTrainer, SFT, DPO])
def test_our_trainers_train_with_it(kind, model, tmp_path, monkeypatch):
    width = []

    def train(self, resume_from_checkpoint=None):
        width.append(widths())
        self.state = TrainerState(global_step=1, max_steps=1)

    monkeypatch.setattr(Trainer, "train", train)
    trainer: Any = kind.__new__(kind)
    trainer.model, trainer.begin_anew = model, lambda: None
    trainer.args = TrainingArguments(output_dir=str(tmp_path), use_cpu=True, report_to="none")
    trainer.accelerator = SimpleNamespace(wait_for_everyone=lambda: None, state=SimpleNamespace())
    trainer.callback_handler = CallbackHandler([], model, None, None, None)
    fit(trainer, Progress("r/s", io.StringIO()))
    assert width == [[VOCABULARY] * len(WIDTHS)]


def test_the_reference_of_dpo_is_read_with_it(model, tmp_path, monkeypatch):
    monkeypatch.setattr(DPOTrainer, "_precompute_ref_logps", lambda *_: widths())
    trainer = DPO.__new__(DPO)
    trainer.model, trainer.args = model, SimpleNamespace(output_dir=str(tmp_path))
    assert trainer._precompute_ref_logps(SimpleNamespace(column_names=[]), "train", 8) == [VOCABULARY] * len(
        WIDTHS
    )
