"""What the vLLM engine within a stage's own process is told beyond what TRL tells it (stand-in for vLLM)."""

import os
from types import SimpleNamespace
from typing import Any

import pytest
from trl.generation import vllm_generation

from encore.errors import UserError
from encore.stages import colocated


@pytest.fixture(autouse=True)
def port(monkeypatch):
    """What is set here ends with the test."""
    monkeypatch.setenv("MASTER_ADDR", "here")
    monkeypatch.setenv("MASTER_PORT", "1")


@pytest.fixture
def engines(monkeypatch):
    """The options of every engine that was made."""
    made: list[dict[str, Any]] = []
    monkeypatch.setattr(vllm_generation, "LLM", lambda **options: made.append(options), raising=False)
    return made


def asked(**given: Any) -> SimpleNamespace:
    """A stage's arguments."""
    usual = {"use_vllm": True, "vllm_mode": "colocate", "seed": 3, "bf16": False, "fp16": False}
    return SimpleNamespace(**usual | {"model_init_kwargs": None} | given)


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        ({}, "float32"),  # of which vLLM itself would make bfloat16
        ({"bf16": True}, "bfloat16"),
        ({"fp16": True}, "float16"),
        ({"model_init_kwargs": {"dtype": "bfloat16"}}, "bfloat16"),
    ],
)
def test_it_computes_as_the_policy_does(engines, given, dtype):
    with colocated.engine(asked(**given)):
        vllm_generation.LLM(model="here", seed=0)
    assert engines[0]["dtype"] == dtype
    assert engines[0]["model"] == "here"


def test_no_two_stages_and_no_two_engines_of_one_draw_by_the_same_numbers(engines):
    for seed in (3, 4):
        with colocated.engine(asked(seed=seed)):
            for group in (0, 1):  # what TRL gives
                vllm_generation.LLM(seed=group)
    assert len({one["seed"] for one in engines}) == 4
    assert max(one["seed"] for one in engines) < 2**32  # as numpy needs


def test_two_stages_at_once_meet_at_different_ports(engines, monkeypatch):
    with colocated.engine(asked()):
        assert os.environ["MASTER_PORT"] == "1"  # torchrun's stays
    ports = set()
    for _ in range(2):
        monkeypatch.delenv("MASTER_PORT")
        with colocated.engine(asked()):
            ports.add(os.environ["MASTER_PORT"])
    assert len(ports | {"29500"}) == 3


def test_what_does_not_start_is_told_in_one_line(monkeypatch):
    def broken(**_: Any) -> None:
        raise ValueError("1 validation error for ModelConfig\n  Value error, no such thing")

    monkeypatch.setattr(vllm_generation, "LLM", broken, raising=False)
    says = r"^args\.use_vllm: vLLM does not start: 1 validation .* ModelConfig Value error, no such thing$"
    with colocated.engine(asked()), pytest.raises(UserError, match=says):
        vllm_generation.LLM(seed=0)
    assert vllm_generation.LLM is broken  # after the block


@pytest.mark.parametrize("given", [{"use_vllm": False}, {"vllm_mode": "server"}])
def test_nothing_changes_without_one(given, monkeypatch):
    monkeypatch.delattr(vllm_generation, "LLM", raising=False)  # as where vLLM is not installed
    with colocated.engine(asked(**given)):
        assert not hasattr(vllm_generation, "LLM")
