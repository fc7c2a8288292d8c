"""One prompt, the same tokens: in training, sampling, evaluation, reward models; true kinds of tokenizers."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import typed
from lm_eval.api.instance import Instance
from transformers import AutoTokenizer
from true_tokenizers import KINDS, MADE, checkpoint, llama, qwen2

from encore.data import forms
from encore.data.token_ids import end_ids, following_ids, prompt_ids, tokenised
from encore.labels import model_judges
from encore.learning import dpo, reinforce
from encore.learning.samplers import Sampler
from encore.models import language_model
from encore.models.packing import IGNORED
from encore.models.reward_model import RewardModel
from encore.recipe.machine import Engine
from encore.sampling import engine
from encore.stages import sft

QUESTIONS = ["What is 3 + 4?", " It is 7.\n", "<think>"]
FORMS: dict[str, dict[str, Any]] = {
    "template": {"template": "User: {question}\nAssistant:"},
    "chat": {"chat": True},
    "system": {"chat": {"system": "It is 3.", "user": "{question} What?"}},
}
CASES = [(kind, form) for kind in KINDS for form in FORMS if kind != "gpt-neox" or form == "template"]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def case(request, tmp_path_factory):
    """A checkpoint, its tokenizer, prompts, and the token ids that its own tokenizer gives them."""
    kind, form = request.param
    place = checkpoint(kind, tmp_path_factory.mktemp(kind))
    source, said = language_model.locate(place), FORMS[form]
    words = AutoTokenizer.from_pretrained(source.place)
    assert type(words) is type(MADE[kind]())
    texts = [forms.of(typed.form(said), words).fill(question) for question in QUESTIONS]
    if form == "template":
        return source, texts, words(texts)["input_ids"]
    keys = said["chat"] if form == "system" else {"user": "{question}"}
    system = [{"role": "system", "content": keys["system"]}] if "system" in keys else []
    talks = [[*system, {"role": "user", "content": keys["user"].replace("{question}", q)}] for q in QUESTIONS]
    ids = words.apply_chat_template(talks, add_generation_prompt=True)["input_ids"]
    return source, texts, ids


def drawn_from(words: Any, texts: list[str]) -> list[list[int]]:
    """The prompts that the sampler of a rollout is given."""
    drawing: Any = SimpleNamespace(exact=False, draw=lambda contexts, cap, alike: (contexts, None))
    trainer = SimpleNamespace(processing_class=words, num_generations=1)
    return Sampler(trainer, drawing).sample(texts, 1).prompts


def test_all_paths_have_the_ids_of_the_tokenizer_itself(case):
    source, texts, expected = case
    words = language_model.load_tokenizer(source)
    rows = [{"prompt": text, "responses": ["It"], "truncated": [True]} for text in texts]
    pairs = [dict.fromkeys(("chosen", "rejected"), "It") | {"prompt": text} for text in texts]
    cut = {"chosen_truncated": True, "rejected_truncated": True}
    scored: list[Any] = []
    scorer = RewardModel([], words, [], [], "here")
    scorer.score_ids = scored.extend  # type: ignore[assignment,method-assign]
    scorer.score(texts, [[]] * len(texts))
    learnt = sft.documents([{"prompt": text, "completion": "It"} for text in texts], words, whole=False)
    found = {
        "prompt_ids": prompt_ids(texts, words),
        "grpo and ppo": drawn_from(words, texts),
        "reinforce": seen_by_generate(words, texts),
        "sft": [one["input_ids"][: one["labels"].count(IGNORED)] for one in learnt],
        "dpo": [one["prompt_ids"] for one in dpo.tokenise([pair | cut for pair in pairs], words)],
        "reward model, trained": [one[0][: -len(reply(words))] for one in tokenised(rows, words)],
        "reward model, scoring": scored,
    }
    assert found == dict.fromkeys(found, expected)
    counted = [row | {"tokens": [3, 4]} for row in rows]
    assert model_judges.tokens(counted, words) == sum(2 * len(ids) + 7 for ids in expected)


def test_samplers_and_evaluations_read_the_same_ids(case):
    source, texts, expected = case
    greedy = {"until": [], "do_sample": False, "temperature": 0.0, "max_gen_toks": 2}
    lm = engine.load(source, Engine(batch_size=8), 0, lambda done, total: None)
    said = lm.generate_until([Instance("generate_until", {}, (text, greedy), 0) for text in texts])
    assert [list(one.context) for one in said] == expected
    assert [lm.tok_encode(text) for text in texts] == expected  # of which likelihoods are scored


def seen_by_generate(words: Any, texts: list[str]) -> list[list[int]]:
    """What `reinforce.sample` gives a model to continue."""
    seen: dict[str, Any] = {}

    def generate(**given: Any) -> torch.Tensor:
        seen.update(given)
        return given["input_ids"]

    model = SimpleNamespace(generate=generate, device="cpu", generation_config=None)
    config = SimpleNamespace(temperature=1.0, max_completion_length=1, num_generations=1)
    words.pad_token = words.pad_token or words.eos_token
    reinforce.sample(model, words, texts, config)  # type: ignore[arg-type]
    rows = zip(seen["input_ids"], seen["attention_mask"], strict=True)
    return [ids[mask.bool()].tolist() for ids, mask in rows]


def reply(words: Any) -> list[int]:
    return words("It", add_special_tokens=False)["input_ids"]


def test_bos_is_there_once_and_no_end_follows():
    words = llama()
    bos, end = words.bos_token_id, words.eos_token_id
    plain, complete = prompt_ids(["It is", "<s>[INST] It is"], words)
    assert (plain[0], plain.count(bos)) == (complete[0], complete.count(bos)) == (bos, 1)
    words.add_eos_token = True
    assert words("It is")["input_ids"][-1] == end
    assert prompt_ids(["It is"], words) == [plain]
    assert prompt_ids([], words) == []


def test_what_follows_a_reply_has_no_beginning():
    words = llama()
    whole = words("It</s>\n3", add_special_tokens=False)["input_ids"]
    assert following_ids(["\n3"], words) == [whole[whole.index(words.eos_token_id) + 1 :]]


@pytest.mark.parametrize("given", [None, 5, [7, 5], "own"])
def test_ends_are_those_of_the_generation_config_and_of_the_tokenizer(given):
    words = qwen2()
    own = words.eos_token_id
    ends = own if given == "own" else given
    expected = {own} | ({5, 7} if given == [7, 5] else {5} if given == 5 else set())
    assert end_ids(SimpleNamespace(eos_token_id=ends), words) == sorted(expected)
    assert end_ids(None, words) == [own]
