"""Batches of an evaluation are as large as a GPU's memory has room for, or a constant part of a CPU's."""

import jobs
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lm_eval.api.instance import Instance
from transformers import GPTNeoXConfig, LlamaConfig, Qwen3Config

from encore.models import language_model
from encore.recipe.machine import Engine, FolderModel
from encore.sampling import engine, hf, lean, memory
from encore.stages.policy import load_policy

PYTHIA = GPTNeoXConfig(
    vocab_size=50304, hidden_size=2560, num_hidden_layers=32, num_attention_heads=32, intermediate_size=10240
)
QWEN = Qwen3Config(hidden_size=4096, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8)
GIB = 2**30


def test_512_rows_at_28_billion_parameters_need_190_gb_of_cache():
    cache = 2 * 32 * 2560 * 4 * 580  # keys and values, layers, width, float32, tokens
    assert 512 * cache / 1e9 == pytest.approx(190, rel=0.03)
    assert memory.row_bytes(PYTHIA, 580, 4) > cache
    assert memory.rows_at_once(PYTHIA, 580, 4, 60 * GIB) == 64
    assert memory.rows_at_once(PYTHIA, 580, 2, 60 * GIB) == 128


def test_heads_that_share_keys_take_less():
    shared = memory.row_bytes(QWEN, 1000, 2)
    alone = memory.row_bytes(Qwen3Config(**{**QWEN.to_dict(), "num_key_value_heads": 32}), 1000, 2)
    assert alone - shared == 1000 * 2 * 36 * 24 * 128 * 2


@given(width=st.integers(1, 65536), free=st.integers(0, 2**40), itemsize=st.sampled_from([2, 4]))
def test_it_fits_and_twice_as_many_do_not(width, free, itemsize):
    rows = memory.rows_at_once(QWEN, width, itemsize, free)
    row = memory.row_bytes(QWEN, width, itemsize)
    assert rows in {2**n for n in range(10)}
    assert rows == 1 or rows * row <= memory.SHARE * free
    assert rows == memory.MOST or 2 * rows * row > memory.SHARE * free


def test_on_a_cpu_the_batch_depends_on_the_shape_alone():
    assert memory.free_bytes(torch.device("cpu")) is None
    tiny = Qwen3Config(
        hidden_size=64, num_hidden_layers=2, num_key_value_heads=2, head_dim=16, intermediate_size=256
    )
    assert memory.rows_at_once(tiny, 256, 4, None) == memory.MOST


def test_long_prompts_of_a_small_model_fit_a_laptop():
    """Two hundred prompts of 1,100 tokens, five shots of GSM8K, took 22 GB with 135M parameters."""
    smollm = LlamaConfig(
        vocab_size=49152, hidden_size=576, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3
    )
    assert memory.rows_at_once(smollm, 1356, 4, None) * memory.row_bytes(smollm, 1356, 4) < 8 * GIB
    assert memory.rows_at_once(smollm, 96, 4, None) >= 256  # a short chat goes on in large batches


@pytest.mark.parametrize("backend", ["hf", "lean"])
@pytest.mark.parametrize(("given", "most"), [(None, 2), (3, 3)])
def test_both_samplers_keep_to_it(checkpoint, monkeypatch, backend, given, most):
    """Seven prompts where memory has room for three rows, so for two; or as many as the recipe says."""
    config = Engine(backend=backend, **({"batch_size": given} if given else {}))
    lm = engine.load(language_model.locate(checkpoint), config, 0, lambda done, total: None)
    prompt, sizes = "<user>3+4=<assistant>", []
    row = memory.row_bytes(lm.model.config, len(lm.tok_encode(prompt)) + 8, 4)
    monkeypatch.setattr(hf, "free_bytes", lambda device: int(3.5 * row / memory.SHARE))
    plain, drawn = lm._model_generate, lean.sample
    monkeypatch.setattr(
        lm, "_model_generate", lambda context, **rest: sizes.append(len(context)) or plain(context, **rest)
    )
    monkeypatch.setattr(
        lean, "sample", lambda model, batch, *rest: sizes.append(len(batch)) or drawn(model, batch, *rest)
    )
    options = {"until": [], "do_sample": False, "temperature": 0.0, "max_gen_toks": 8}
    asked = [Instance("generate_until", {}, (prompt, options), 0) for _ in range(7)]
    assert len(lm.generate_until(asked)) == 7
    assert max(sizes) == most


@given(width=st.integers(1, 65536), free=st.none() | st.integers(0, 2**40))
def test_the_logits_of_scored_texts_fit_and_twice_as_many_do_not(width, free):
    rows = memory.scored_at_once(QWEN.vocab_size, width, free)
    row = width * QWEN.vocab_size * 8  # the logits and their log-softmax, in float32
    room = memory.SCORED if free is None else memory.SHARE * free
    assert rows in {2**n for n in range(10)}
    assert rows == 1 or rows * row <= room
    assert rows == memory.MOST or 2 * rows * row > room


def test_512_scored_texts_of_a_published_model_would_take_26_gb_and_are_split(checkpoint, monkeypatch):
    assert pytest.approx(26, rel=0.02) == 512 * 128 * 49152 * 8 / 1e9
    assert memory.scored_at_once(49152, 128, None) == 16
    lm = engine.load(language_model.locate(checkpoint), Engine(), 0, lambda done, total: None)
    texts = [(f"<user>{n}+4=<assistant>", "7") for n in range(7)]
    asked = [Instance("loglikelihood", {}, text, 0) for text in texts]
    whole, sizes, call = lm.loglikelihood(asked), [], lm._model_call
    monkeypatch.setattr(
        lm, "_model_call", lambda batch, **rest: sizes.append(len(batch)) or call(batch, **rest)
    )
    row = len(lm.tok_encode("".join(texts[0]))) * lm.model.config.vocab_size * 8
    monkeypatch.setattr(memory, "SCORED", int(3.5 * row))
    split = lm.loglikelihood(asked)
    assert max(sizes) == 2
    assert [score for score, _ in split] == pytest.approx([score for score, _ in whole], abs=1e-5)


@pytest.mark.parametrize("saved", [None, "bfloat16"])
@pytest.mark.parametrize(("asked", "computed"), [({}, "float32"), ({"dtype": "bfloat16"}, "bfloat16")])
def test_what_it_is_computed_in_is_what_the_recipe_says(checkpoint, tmp_path, saved, asked, computed):
    """Whatever the weights were saved in: those of the Hub and those of a stage are measured alike."""
    source = language_model.locate(checkpoint)
    key = {"saved_dtype": saved} if saved else {}
    load_policy(jobs.stage("grpo", {"model": {"path": source.place}, **key}), {}).save(tmp_path)
    final = tmp_path / "final"
    there = language_model.load(language_model.locate(FolderModel(path=str(final))), dtype="auto")
    assert there.dtype == getattr(torch, saved or "float32")
    lm = engine.load(language_model.locate(FolderModel(path=str(final))), Engine(**asked), 0, print)
    assert lm.model.dtype == getattr(torch, computed)
    assert engine.vllm_arguments(source, Engine(**asked), 0)["dtype"] == computed


def test_on_a_gpu_too(monkeypatch):
    """There `auto` measured a published model in bfloat16, and what was trained from it in float32."""
    asked = []
    monkeypatch.setattr(language_model, "device", lambda: "cuda")
    monkeypatch.setattr(
        language_model, "load", lambda source, dtype: asked.append(dtype) or torch.nn.Module()
    )
    monkeypatch.setattr(torch.nn.Module, "to", lambda self, device: self)
    monkeypatch.setattr(language_model, "load_tokenizer", lambda source: None)
    monkeypatch.setattr(engine, "HuggingFaceSampler", lambda *arguments: None)
    source = language_model.Source("org/model", "0" * 40, "hub:org/model@0")
    for config in ({}, {"dtype": "bfloat16"}):
        engine.load(source, Engine(**config), 0, print)
    assert asked == ["float32", "bfloat16"]
