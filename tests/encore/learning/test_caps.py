"""The cap reaches whatever samples the completions."""

from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import hand_made
import pytest

from encore.learning.rollouts import Options
from encore.learning.trainer import Method


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    method = Method(Options(caps={0: hand_made.TIME, 4: 2 * hand_made.TIME}))
    options = {"loss_type": "dr_grpo", "scale_rewards": "none"}
    return hand_made.trainer(tmp_path_factory.mktemp("trainer"), method, **options)


def test_the_cap_in_force_is_set_before_a_rollout(built, monkeypatch):
    monkeypatch.setattr(built, "_generate_single_turn", lambda ids, *_: ([[5, 5] for _ in ids], None))
    rows = [{"prompt": "<user>1+2=<assistant>"}] * hand_made.BATCH
    for step, cap in ((0, 6), (3, 6), (4, 12), (9, 12)):
        built.state.global_step = step
        built._prepare_inputs(rows)
        assert built.max_completion_length == cap
        assert built.generation_config.max_new_tokens == built.generation_kwargs["max_new_tokens"] == cap


def test_dr_grpo_divides_by_the_cap_in_force(built):
    losses = []
    for step in (0, 4):
        built.state.global_step = step
        losses.append(built._compute_loss(built.model, hand_made.rollout(built)).item())
    assert losses[0] == pytest.approx(2 * losses[1], rel=1e-5)


def test_vllm_is_told_the_cap(built, monkeypatch):
    monkeypatch.setattr(built, "use_vllm", True)
    monkeypatch.setattr(built, "vllm_generation", SimpleNamespace(max_completion_length=6), raising=False)
    built.parts.rollouts.sampler.drawing.ask(12, [])
    assert built.vllm_generation.max_completion_length == 12
    # TRL reads it anew for each rollout
    place = find_spec("trl.generation.vllm_generation").origin
    source = Path(place).read_text().partition("    def generate(")[2]
    assert "max_completion_length = self.max_completion_length" in source
