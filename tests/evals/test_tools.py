"""An evaluation of a policy that may call a tool: of several turns, and of its own tokens alone."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from evaluated import parse
from scripted import Scripted
from transformers import Qwen3Config, Qwen3ForCausalLM

from encore import worlds
from encore.models.language_model import Source
from encore.recipe.eval_tasks import EvalTask
from encore.recipe.machine import Engine
from encore.recipe.tool import Tool
from encore.sampling import engine
from encore.sampling.completion import answered
from encore.sampling.tools import ToolInWorld
from encore.sampling.turns import converse
from evals import harness

TOOL = {"name": "calculator", "calls": 2, "longest": 4}
TASK: dict[str, Any] = {
    "task": {"world": "products"},
    "template": "<user>{question}<assistant>",
    "tool": TOOL,
    "items": 4,
    "samples": 4,
    "temperature": 1.0,
    "top_p": 1.0,
    "max_gen_toks": 24,
    "k": [1],
}
WORDS = worlds.tokenizer([worlds.make(TASK["task"])])


def task() -> EvalTask:
    (parsed,) = parse({"tasks": {"heldout": TASK}})
    return parsed


@pytest.fixture(scope="module")
def babbler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random model: one token in thirty ends a call."""
    folder = tmp_path_factory.mktemp("babbler")
    torch.manual_seed(0)
    special = {"pad_token_id": WORDS.pad_token_id, "eos_token_id": WORDS.eos_token_id, "bos_token_id": None}
    shape = Qwen3Config(
        vocab_size=len(WORDS),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=96,
        **special,
    )
    Qwen3ForCausalLM(shape).save_pretrained(folder)
    WORDS.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("backend", ["lean", "hf"])
def test_calls_are_answered_and_do_not_count(backend: str, babbler: Path):
    source = Source(str(babbler), None, "")
    lm = engine.load(source, Engine(backend=backend, batch_size=5), 0, lambda done, total: None)
    rows = harness.sample(task(), lm, seed=0)
    for row in rows:
        for text, turns, calls, tokens in zip(
            *(row[key] for key in ("completions", "turns", "calls", "tokens")), strict=True
        ):
            assert "".join(turns).removesuffix("<eos>") == text
            assert calls <= TOOL["calls"]
            assert len(turns) == 2 * calls + 1
            assert tokens == len(WORDS("".join(turns[::2]))["input_ids"]) <= TASK["max_gen_toks"]
            assert text.said == "".join(turns[::2]).removesuffix("<eos>")
            assert all(turn == "<result>error</result>" for turn in turns[1::2])
        assert row["malformed"] == row["calls"]
    assert max(calls for row in rows for calls in row["calls"]) == TOOL["calls"]
    assert not all(truncated for row in rows for truncated in row["truncated"])
    again = harness.sample(task(), lm, seed=0)
    assert [row["completions"] for row in again] == [row["completions"] for row in rows]


@pytest.fixture
def vllm_sampler(monkeypatch: pytest.MonkeyPatch):
    """The sampler over stand-ins of vLLM and of lm-eval's model of it, which need not be installed."""
    stand_in = SimpleNamespace(SamplingParams=lambda **asked: SimpleNamespace(**asked))
    monkeypatch.setitem(sys.modules, "vllm", stand_in)
    monkeypatch.setitem(sys.modules, "lm_eval.models.vllm_causallms", SimpleNamespace(VLLM=object))
    monkeypatch.setitem(sys.modules, "encore.sampling.vllm", None)
    del sys.modules["encore.sampling.vllm"]  # put back as it was when the test ends
    return importlib.import_module("encore.sampling.vllm").VLLMSampler


def test_vllm_is_stopped_at_a_call_and_at_its_own_ends(vllm_sampler):
    close, eos = WORDS.convert_tokens_to_ids("</tool>"), WORDS.eos_token_id
    asked, says = [], iter(["<tool>3*4</tool>", "<answer>12</answer><eos>"])

    def generate(requests, generate, sampling_params):
        asked.append((requests, sampling_params.max_tokens, sampling_params.stop_token_ids))
        ids = WORDS(next(says))["input_ids"]
        said = SimpleNamespace(token_ids=ids, finish_reason="stop", stop_reason=ids[-1])
        return [SimpleNamespace(outputs=[said]) for _ in requests]

    sampler = vllm_sampler.__new__(vllm_sampler)
    sampler.tokenizer, sampler.ends, sampler.max_length = WORDS, [7], 64
    sampler.report, sampler._model_generate = lambda done, total: None, generate
    sampler.modify_gen_kwargs = lambda options, eos: ({}, [], 24)
    sampler.tool = ToolInWorld(Tool.model_validate(TOOL))
    request = SimpleNamespace(args=("<user>3*4=<assistant>", {}))
    (completion,) = sampler.generate_until([request])
    prompt = WORDS("<user>3*4=<assistant>")["input_ids"]
    called = WORDS("<tool>3*4</tool><result>12</result>")["input_ids"]
    assert asked == [([prompt], 24, [7, close]), ([[*prompt, *called]], 19, [7, close])]
    assert completion == "<tool>3*4</tool><result>12</result><answer>12</answer>"
    assert (completion.said, completion.tokens) == ("<tool>3*4</tool><answer>12</answer>", 10)
    assert not completion.truncated
    assert completion.ids[-1] == eos


def test_what_a_tool_says_is_no_answer():
    """The verifier and the vote read the policy's own words."""
    tool = Tool.model_validate({**TOOL, "longest": 40, "result": ["<answer>", "</answer>"]})
    assert tool

    def say(prompt: str, n: int) -> str:
        a, b = prompt.removeprefix("<user>").partition("=")[0].partition("+")[0].split("*")
        spoken = iter([f"<tool>{a}*{b}</tool>", "<eos>"])

        def draw(contexts, cap, also):
            return [WORDS(next(spoken))["input_ids"] for _ in contexts], None

        (talk,) = converse([[5]], 40, draw, ToolInWorld(tool), WORDS)
        return answered(talk, [WORDS.eos_token_id], [5], WORDS)

    class Calling(Scripted):
        def generate_until(self, requests, disable_tqdm=False):
            return [say(request.args[0], 0) for request in requests]

    rows = harness.sample(task(), Calling(say), seed=0)
    assert all("<answer>" in text for row in rows for text in row["completions"])
    assert not any(right for row in rows for right in row["correct"])
    assert {vote for row in rows for vote in row["votes"]} == {None}
    assert {calls for row in rows for calls in row["calls"]} == {1}
