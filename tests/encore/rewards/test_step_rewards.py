"""Which token ends a step, and what the step is worth."""

import random

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from encore import worlds
from encore.errors import UserError
from encore.rewards import step_rewards


def byte_level(texts: list[str], size: int, words: bool = True) -> PreTrainedTokenizerFast:
    """As of GPT-2 and Qwen: BPE on bytes."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=words)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet))
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<eos>", clean_up_tokenization_spaces=False
    )


def sentence_piece(texts: list[str], size: int) -> PreTrainedTokenizerFast:
    """As of Llama: spaces are part of tokens, and the first one is not decoded."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size))
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<eos>", clean_up_tokenization_spaces=False
    )


CHAIN = worlds.make({"world": "chain", "terms": [2, 6]})
PROBLEMS = worlds.sample(CHAIN, 40, 0, "train")
DOCUMENTS = [
    CHAIN.document(p, kind, random.Random(i)) for i, p in enumerate(PROBLEMS) for kind in CHAIN.kinds
]
SPACED = [text.replace(",", " , é 🙂 ").replace("=", " =") for text in DOCUMENTS]
TOKENIZERS = {
    "characters": worlds.tokenizer([CHAIN]),
    "bytes": byte_level(DOCUMENTS, 330),
    "more bytes": byte_level(SPACED, 300),
    "pieces": sentence_piece(SPACED, 120),
}


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("texts", [DOCUMENTS[::3], SPACED[::5]], ids=["documents", "spaced"])
def test_a_step_ends_at_the_token_with_its_last_character(name, texts):
    tokenizer = TOKENIZERS[name]
    if texts[0] in SPACED and name == "characters":
        return  # not in its vocabulary
    read = step_rewards.reader(CHAIN, tokenizer)
    for text in texts:
        ids = [*tokenizer(text)["input_ids"], tokenizer.eos_token_id]
        completion = tokenizer.decode(ids, skip_special_tokens=True)
        steps = read(PROBLEMS[0], completion, ids, 0.5)
        assert [reward for _, reward in steps] == [*CHAIN.steps(PROBLEMS[0], completion), 0.5]
        assert steps[-1][0] == len(ids) - 1
        ends = CHAIN.step_ends(PROBLEMS[0], completion)
        for (token, _), end in zip(steps, ends, strict=False):
            long, short = (tokenizer.decode(ids[:n], skip_special_tokens=True) for n in (token + 1, token))
            assert completion[:end] == long[:end]
            assert completion[:end] != short[:end]


def test_special_tokens_that_are_written_are_told_from_the_one_that_ends():
    """As a model writes them that has not learnt not to: in samples on disk and in evaluations."""
    tokenizer, text = TOKENIZERS["characters"], "<think>1+1=2,<pad>2+2=4"
    ids = [*tokenizer(text)["input_ids"], tokenizer.eos_token_id]
    assert tokenizer.pad_token_id in ids
    places = [
        place for place, _ in step_rewards.reader(CHAIN, tokenizer, special=True)(PROBLEMS[0], text, ids, 0.0)
    ]
    assert places == [5, 12, 13]
    cut = step_rewards.reader(CHAIN, tokenizer, special=True)(PROBLEMS[0], text, ids[:-1], 0.0)
    assert [place for place, _ in cut] == [5, 12, 12]


def test_a_step_that_the_problem_has_begun_is_none_of_the_completion():
    tokenizer, problem = TOKENIZERS["characters"], worlds.Problem("1+1+2=", "4", 3, "<think>1+1=3,")
    read = step_rewards.reader(CHAIN, tokenizer)
    for completion, steps in (
        ("3+2=5", [(4, 1.0), (4, 0.0)]),
        ("wait1+1=2,2+2=4", [(5, 1.0), (11, 1.0), (11, 0.0)]),
    ):
        assert read(problem, completion, tokenizer(completion)["input_ids"], 0.0) == steps


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("Two and two.\n\nThat is four. \nSo 4.", ["Two and two.", "Two and two.\n\nThat is four."]),
        ("So 4.", []),
        ("\n So 4. \n\n", []),
        ("", []),
    ],
)
def test_lines_are_the_steps_of_a_data_set(text, steps):
    """The last one is the whole."""
    ends = step_rewards.step_ends(None, worlds.Problem("q", "4", 1), text)
    assert [text[:end] for end in ends] == steps


def test_a_completion_of_a_data_set_is_read_by_its_lines():
    tokenizer, text = TOKENIZERS["bytes"], "1+1=2\n2+2=4\n4"
    ids = [*tokenizer(text)["input_ids"], tokenizer.eos_token_id]
    places = step_rewards.placer(None, tokenizer)(PROBLEMS[0], text, ids)
    assert places[-1] == len(ids) - 1
    assert [tokenizer.decode(ids[: place + 1]) for place in places[:-1]] == ["1+1=2", "1+1=2\n2+2=4"]


def test_two_steps_in_one_token():
    """A coarse tokenizer may merge across steps: both then end at that token."""
    tokenizer = byte_level(["1+1=2,2+2=4"] * 9, 400, words=False)
    ids = tokenizer("1+1=2,2+2=4")["input_ids"]
    assert len(ids) == 1
    steps = step_rewards.reader(CHAIN, tokenizer)(PROBLEMS[0], "1+1=2,2+2=4", ids, 1.0)
    assert [end for end, _ in steps] == [0, 0, 0]


def test_a_text_that_the_tokens_do_not_spell_is_told():
    tokenizer = TOKENIZERS["characters"]
    with pytest.raises(UserError, match=r"cannot tell which tokens of .* make up the steps"):
        step_rewards.reader(CHAIN, tokenizer)(
            PROBLEMS[0], "3+5=8,8+1=9", tokenizer("3+5=8")["input_ids"], 1.0
        )
