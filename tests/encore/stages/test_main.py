"""The one command of all stages: `python -m encore.stages <kind> …`."""

import gc
import importlib
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import torch
from stage_runs import GRPO, PRETRAIN, command

from encore.errors import UserError
from encore.recipe.kinds import KINDS
from encore.runtime.environment import ALLOCATOR, EXPANDABLE
from encore.stages.__main__ import main, parse

ARGUMENTS = command("pretrain", PRETRAIN)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_a_module_that_runs(kind: str):
    assert callable(importlib.import_module(f"encore.stages.{kind}").run)


def test_an_unknown_kind_is_one_line(capsys: pytest.CaptureFixture[str]):
    assert main(["pretrian"]) == 2
    line = 'error: stage: unknown kind "pretrian"; did you mean "pretrain"?\n'
    assert capsys.readouterr() == (line, line)


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--config", "{", "^--config: not JSON: "),
        ("--config", "[]", "^--config: expected a JSON object$"),
        ("--input", "policy", "^--input policy: expected ROLE=METRICS_JSON$"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(option: str, value: str, says: str):
    with pytest.raises(UserError, match=says):
        parse(["pretrain", *ARGUMENTS, option, value])


@pytest.mark.slow
def test_torch_waits_for_the_environment():
    """torch and the Hugging Face libraries read their variables when they are imported."""
    code = "import sys, encore.stages.__main__; print({'torch', 'transformers', 'trl'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_no_stage_searches_its_imports_for_garbage(
    tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def run(*_):
        raise UserError(f"{gc.get_freeze_count()} objects")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib, "import_module", lambda name: SimpleNamespace(run=run))
    gc.unfreeze()
    assert main(["pretrain", *ARGUMENTS]) == 2
    gc.unfreeze()
    assert int(capsys.readouterr().err.split()[-2]) > 10_000


def seen_by(kind: str, config: dict[str, Any], folder, monkeypatch: pytest.MonkeyPatch, capsys) -> list[str]:
    """What a stage finds when it begins: whether torch is deterministic, and how it takes GPU memory."""

    def run(*_):
        told = torch.are_deterministic_algorithms_enabled(), os.environ.get(ALLOCATOR[0])
        raise UserError(f"{told[0]} {told[1]}")

    monkeypatch.chdir(folder)
    monkeypatch.setattr("encore.stages.__main__.require_vllm", lambda config: None)
    monkeypatch.setattr(importlib, "import_module", lambda name: SimpleNamespace(run=run))
    with mock.patch.dict(os.environ):
        for name in ALLOCATOR:
            os.environ.pop(name, None)
        assert main([kind, *command(kind, config)]) == 2
    return capsys.readouterr().err.split()[1:]


@pytest.mark.parametrize("asked", [True, False])
def test_a_stage_that_is_to_be_deterministic_is_so_from_its_first_line(asked, tmp_path, monkeypatch, capsys):
    config = PRETRAIN | ({"deterministic": True} if asked else {})
    assert seen_by("pretrain", config, tmp_path, monkeypatch, capsys)[0] == str(asked)


@pytest.mark.parametrize(
    ("args", "grows"),
    [
        ({}, True),
        ({"use_vllm": True, "vllm_mode": "server", "vllm_enable_sleep_mode": True}, True),
        ({"use_vllm": True, "vllm_mode": "colocate"}, True),
        ({"use_vllm": True, "vllm_mode": "colocate", "vllm_enable_sleep_mode": True}, False),
        ({"use_vllm": True, "vllm_mode": "colocate", "vllm_tensor_parallel_size": 2}, False),
    ],
)
def test_gpu_memory_grows_where_no_engine_in_the_process_shares_it(
    args, grows, tmp_path, monkeypatch, capsys
):
    config = GRPO | {"args": GRPO["args"] | args}
    allocator = seen_by("grpo", config, tmp_path, monkeypatch, capsys)[1]
    assert allocator == (EXPANDABLE if grows else "None")
