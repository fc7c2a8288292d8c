"""What a CPU gets of bf16 and gradient checkpointing: what a stage asks for, and nothing unasked."""

import jobs
import pytest
from stage_runs import GRPO
from trl import GRPOConfig

from encore.errors import UserError
from encore.stages import rollout_args
from encore.stages.policy import loading_options
from encore.stages.trainer_config import arguments

ASKED = {"bf16": True, "gradient_checkpointing": True}


def of(args: dict, folder):
    stage = jobs.stage("grpo", {"args": args})
    return arguments(GRPOConfig, stage, folder, 0, **rollout_args.defaults_of(stage.args))


def test_what_only_costs_time_on_a_cpu_is_off_unless_asked_for(tmp_path):
    plain, asked = of(GRPO["args"], tmp_path), of(GRPO["args"] | ASKED, tmp_path)
    assert (plain.bf16, plain.gradient_checkpointing, plain.use_cpu) == (False, False, True)
    assert (asked.bf16, asked.gradient_checkpointing, asked.use_cpu) == (True, True, True)


def test_models_are_loaded_with_ligers_kernels_and_the_trainer_adds_none(tmp_path):
    """Trainers would also replace the model's forward pass, which TRL has by then given its fused head."""
    for asked in (True, False):
        args = of(GRPO["args"] | {"use_liger_kernel": asked}, tmp_path)
        stage = jobs.stage("grpo", {"args": {"use_liger_kernel": asked}})
        assert (args.use_liger_kernel, loading_options(stage, args)) == (False, {"liger": asked})


def test_a_gpu_without_bf16_is_refused_in_one_line(tmp_path, monkeypatch):
    """A T4; transformers takes bf16 that is emulated, and says nothing."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda including_emulation=True: including_emulation)
    monkeypatch.setattr("torch.cuda.set_device", lambda device: None)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "Tesla T4")
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda: (7, 5))
    for args in (GRPO["args"], GRPO["args"] | {"bf16": True}):
        with pytest.raises(UserError, match=r"args\.bf16: true, and Tesla T4 has no bfloat16 .* 7\.5"):
            of(args, tmp_path)
    assert not of(GRPO["args"] | {"bf16": False}, tmp_path).bf16


def test_a_cache_of_one_precision(tmp_path):
    """By default there is one where it works; asked for where it does not, it is refused in one line."""
    plain, asked = of(GRPO["args"], tmp_path), of(GRPO["args"] | ASKED, tmp_path)
    assert (plain.cache_implementation, asked.cache_implementation) == ("static", None)
    rollout_args.check_cache(plain)
    rollout_args.check_cache(asked)
    static = of(GRPO["args"] | ASKED | {"cache_implementation": "static"}, tmp_path)
    with pytest.raises(UserError, match=r"args\.cache_implementation: static holds .* set bf16 to false"):
        rollout_args.check_cache(static)
    static.model_init_kwargs = {"dtype": "bfloat16"}
    rollout_args.check_cache(static)
