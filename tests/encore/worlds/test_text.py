"""The tokenizer: lossless on world text, the same after saving, and a chat template that TRL can train on."""

import random
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from encore.errors import UserError
from encore.worlds import WORLDS, corpus, make, prompt, tokenizer

ALL = [make({"world": name}) for name in WORLDS]
TOKENIZER = tokenizer(ALL)
TEMPLATE = "<user>{question}<assistant>"
TURNS = [{"role": "user", "content": "3+5="}, {"role": "assistant", "content": "<answer>8</answer>"}]


@pytest.fixture(scope="module")
def reloaded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    TOKENIZER.save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder)


@given(st.lists(st.sampled_from(["<user>", "<assistant>", *{t for w in ALL for t in w.vocabulary}])))
def test_decoding_undoes_encoding(tokens):
    text = "".join(tokens)
    ids = TOKENIZER(text)["input_ids"]
    assert TOKENIZER.decode(ids) == TOKENIZER.decode(ids, skip_special_tokens=True) == text
    assert TOKENIZER.unk_token_id not in ids
    assert len(ids) == len(tokens)  # no two tokens together spell a third


def test_special_tokens_are_distinct_and_none_is_added():
    ids = [TOKENIZER.pad_token_id, TOKENIZER.eos_token_id, TOKENIZER.bos_token_id, TOKENIZER.unk_token_id]
    assert len({*ids}) == 4
    assert TOKENIZER.tokenize("<think>3wait</think>") == ["<think>", "3", "wait", "</think>"]
    assert TOKENIZER("3")["input_ids"] == [TOKENIZER.convert_tokens_to_ids("3")]
    assert not {"<think>", "<user>", "wait"} & {*TOKENIZER.all_special_tokens}
    assert TOKENIZER("é")["input_ids"] == [TOKENIZER.unk_token_id]
    assert TOKENIZER.decode(TOKENIZER("8<eos><pad>")["input_ids"], skip_special_tokens=True) == "8"


def test_a_longer_token_wins_over_its_beginning():
    assert tokenizer([SimpleNamespace(vocabulary=("a", "no", "now", "w"))]).tokenize("nownoa") == [
        "now",
        "no",
        "a",
    ]


def test_padding_is_on_the_left():
    batch = TOKENIZER(["3+5=", "3"], padding=True)
    assert batch["attention_mask"] == [[1, 1, 1, 1], [0, 0, 0, 1]]
    assert batch["input_ids"][1][:3] == [TOKENIZER.pad_token_id] * 3


def test_a_saved_tokenizer_is_the_same(reloaded):
    texts = ["".join(t) for w in ALL for t in corpus(w, dict.fromkeys(w.kinds, 1), 100, 0, TEMPLATE)]
    assert reloaded(texts)["input_ids"] == TOKENIZER(texts)["input_ids"]
    assert reloaded.batch_decode(reloaded(texts)["input_ids"], skip_special_tokens=True) == texts
    assert len(reloaded) == len(TOKENIZER) == reloaded.vocab_size
    for name in ("padding_side", "model_max_length", "pad_token", "eos_token", "bos_token", "chat_template"):
        assert getattr(reloaded, name) == getattr(TOKENIZER, name)


def test_the_vocabulary_does_not_depend_on_dials_or_order():
    assert tokenizer(ALL[::-1]).get_vocab() == TOKENIZER.get_vocab()
    plain, signed = (tokenizer([make({"world": "chain", "operators": o})]) for o in ("+", "+-"))
    assert plain.get_vocab() == signed.get_vocab()


def test_the_chat_template_writes_turns_and_marks_replies(reloaded):
    assert (
        reloaded.apply_chat_template(TURNS, tokenize=False) == "<user>3+5=<assistant><answer>8</answer><eos>"
    )
    opened = reloaded.apply_chat_template(TURNS[:1], tokenize=False, add_generation_prompt=True)
    assert opened == prompt(TEMPLATE, "3+5=")
    marked = reloaded.apply_chat_template(TURNS, return_dict=True, return_assistant_tokens_mask=True)
    reply = [i for i, m in zip(marked["input_ids"], marked["assistant_masks"], strict=True) if m]
    assert reloaded.decode(reply) == "<answer>8</answer><eos>"


def test_5k_documents_are_tokenized_in_a_second():
    texts = ["".join(t) for t in corpus(make({"world": "chain"}), {"chain": 1}, 5_000, 0, TEMPLATE)]
    start = time.process_time()
    TOKENIZER(texts)
    assert time.process_time() - start < 1


def test_a_prompt_has_its_question_once():
    rng = random.Random(0)
    question = ALL[0].problem(rng).question
    assert prompt("a {b} {question} {{c}}", question) == f"a {{b}} {question} {{{{c}}}}"
    for template in ("no question", "{question}{question}"):
        with pytest.raises(UserError, match="exactly once"):
            prompt(template, question)
