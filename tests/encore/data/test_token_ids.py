"""Replies are tokenised apart from their prompts, and end where they came to their end."""

from encore import worlds
from encore.data.token_ids import reply_ids, tokenised

TOKENIZER = worlds.tokenizer([worlds.make({"world": "sort"})])
END = TOKENIZER.eos_token_id


def test_a_reply_that_was_cut_has_no_end():
    three, five = (TOKENIZER(text)["input_ids"] for text in ("3", "5"))
    assert reply_ids(["3", "5"], [False, True], TOKENIZER) == [[*three, END], five]
    assert reply_ids([], [], TOKENIZER) == []


def test_the_prompt_precedes_each_response():
    row = {"prompt": "5,3=", "responses": ["3,5", ""], "truncated": [False, True]}
    prompt, reply = (TOKENIZER(text)["input_ids"] for text in ("5,3=", "3,5"))
    assert tokenised([row], TOKENIZER) == [[[*prompt, *reply, END], prompt]]
