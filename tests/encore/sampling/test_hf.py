"""The sampler against plain transformers: the same tokens, the model's own distribution, exact endings."""

from collections import Counter

import numpy as np
import pytest
import torch
from lm_eval.api.instance import Instance
from scipy.stats import chisquare
from transformers import GenerationConfig

from encore.errors import UserError
from encore.models import language_model
from encore.recipe.machine import Engine
from encore.sampling import engine, hf

PROMPTS = ["<user>3+4=<assistant>", "<user>1+2+3+4+5=<assistant>", "<user>9+9+9=<assistant>"]
GREEDY = {"until": [], "do_sample": False, "temperature": 0.0, "max_gen_toks": 40}
SAMPLED = {"until": [], "do_sample": True, "temperature": 1.0, "top_p": 1.0, "top_k": 0}


@pytest.fixture
def lm(checkpoint):
    torch.manual_seed(0)
    source = language_model.locate(checkpoint)
    return engine.load(source, Engine(batch_size=2), 0, lambda done, total: None)


@pytest.fixture
def lean(checkpoint):
    torch.manual_seed(0)
    config = Engine(batch_size=1000, backend="lean")
    return engine.load(language_model.locate(checkpoint), config, 0, lambda done, total: None)


def draw(lm, prompts, options):
    return lm.generate_until([Instance("generate_until", {}, (text, options), 0) for text in prompts])


@pytest.mark.parametrize("first_round", [1, 7, 64])
def test_greedy_tokens_are_those_of_plain_transformers(lm, monkeypatch, first_round):
    """Neither the padding, nor the batches, nor the rounds change what the model says."""
    monkeypatch.setattr(hf, "FIRST_ROUND", first_round)
    said = draw(lm, PROMPTS, GREEDY)
    for text, completion in zip(PROMPTS, said, strict=True):
        prompt = lm.tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
        row = lm.model.generate(prompt, do_sample=False, max_new_tokens=40)[0, prompt.shape[1] :].tolist()
        ended = lm.tokenizer.eos_token_id in row
        assert completion == lm.tokenizer.decode(row[: len(row) - ended])
        assert (completion.tokens, completion.truncated) == (len(row), not ended)


@pytest.mark.parametrize(("cap", "rounds"), [(4, 1), (40, 4)])
def test_prompts_that_are_longer_than_the_cap_are_read_once(lm, monkeypatch, cap, rounds):
    """GSM8K's five shots were read four times for 256 tokens."""
    calls, plain = [], lm._continue
    monkeypatch.setattr(hf, "FIRST_ROUND", 5)
    monkeypatch.setattr(lm, "given", 1000)
    monkeypatch.setattr(lm, "_continue", lambda *args: calls.append(args) or plain(*args))
    draw(lm, PROMPTS, {**GREEDY, "max_gen_toks": cap})
    assert len(calls) == rounds


def test_lean_greedy_tokens_are_those_of_transformers(lm, lean):
    for one, other in zip(draw(lean, PROMPTS, GREEDY), draw(lm, PROMPTS, GREEDY), strict=True):
        assert (one, one.tokens, one.truncated) == (other, other.tokens, other.truncated)
        assert (list(one.ids), list(one.context)) == (list(other.ids), list(other.context))


def test_lean_refuses_what_it_would_ignore(lean):
    for change in ({"top_p": 0.5}, {"until": ["1"]}):
        with pytest.raises(UserError, match=r"evals\.backend: lean supports neither"):
            draw(lean, PROMPTS, {**SAMPLED, "max_gen_toks": 5, **change})


@pytest.mark.parametrize(
    ("engine", "temperature", "top_p"),
    [("lm", 1.0, 1.0), ("lm", 0.5, 1.0), ("lm", 1.0, 0.5), ("lean", 1.0, 1.0), ("lean", 0.5, 1.0)],
)
def test_first_tokens_follow_the_models_distribution(request, engine, temperature, top_p):
    lm = request.getfixturevalue(engine)
    lm.given = 1000  # rows a batch
    count = 3000
    options = {**SAMPLED, "temperature": temperature, "top_p": top_p, "max_gen_toks": 1}
    seen = Counter(draw(lm, PROMPTS[:1] * count, options))
    with torch.no_grad():
        logits = lm.model(**lm.tokenizer(PROMPTS[0], return_tensors="pt")).logits[0, -1] / temperature
    chances = logits.double().softmax(0).numpy()
    order = np.argsort(-chances)
    kept = order[: 1 + int((chances[order].cumsum() < top_p).sum())] if top_p < 1 else order
    names = ["" if i == lm.tokenizer.eos_token_id else lm.tokenizer.decode([i]) for i in kept]
    assert set(seen) <= set(names)
    expected = chances[kept] / chances[kept].sum() * count
    assert chisquare([seen[name] for name in names], expected).pvalue > 1e-3


def test_endings(lm):
    words = lm.tokenizer
    ids = words("<think>1+1=2</think><answer>2</answer>", add_special_tokens=False)["input_ids"]
    end, pad = words.eos_token_id, words.pad_token_id
    ended = lm._completion([*ids, end, pad, pad], [])
    assert ended == "<think>1+1=2</think><answer>2</answer>"  # the tags stay
    assert (ended.tokens, ended.truncated) == (len(ids) + 1, False)
    cut = lm._completion(ids, [])
    assert (cut, cut.tokens, cut.truncated) == (ended, len(ids), True)
    stopped = lm._completion(ids, ["</think>"])
    assert (stopped, stopped.tokens, stopped.truncated) == ("<think>1+1=2", 6, False)
    assert lm._completion([end], []).tokens == 1


def test_stop_strings_end_a_completion(lm):
    options = {**SAMPLED, "until": ["1", "2"], "max_gen_toks": 40}
    said = draw(lm, PROMPTS[:1] * 20, options)
    assert not any("1" in text or "2" in text for text in said)
    assert not all(text.truncated for text in said)


def test_the_cap_holds_and_nothing_is_added_to_the_prompt(lm):
    said = draw(lm, PROMPTS * 10, {**SAMPLED, "max_gen_toks": 5})
    assert max(text.tokens for text in said) == 5
    assert any(text.truncated for text in said)
    ids = lm.tok_encode(PROMPTS[0])
    assert lm.tokenizer.convert_ids_to_tokens(ids) == ["<user>", "3", "+", "4", "=", "<assistant>"]


def test_a_checkpoints_own_decoding_defaults_are_not_used(checkpoint):
    source = language_model.locate(checkpoint)
    model, words = language_model.load(source), language_model.load_tokenizer(source)
    model.generation_config = GenerationConfig(
        eos_token_id=[words.eos_token_id, 7], top_k=1, repetition_penalty=5.0, pad_token_id=words.pad_token_id
    )
    lm = hf.HuggingFaceSampler(model, words, 8, lambda done, total: None)
    assert len(set(draw(lm, PROMPTS[:1] * 8, {**SAMPLED, "max_gen_toks": 10}))) > 1
    assert lm.ends == {words.eos_token_id, 7}
