"""A trainer's own sampling, turn by turn: it stops at calls for a turn, and is as it was after it."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from encore import worlds
from encore.learning.turns import OWN, own_part, rollouts
from encore.sampling.tools import Tool

WORDS = worlds.tokenizer([worlds.make({"world": "products"})])
CLOSE, EOS = WORDS.convert_tokens_to_ids("</tool>"), WORDS.eos_token_id
TOOL = Tool("calculator", calls=1, longest=4)


class Trainer(SimpleNamespace):
    """What TRL's trainer has of sampling; it says one text a turn, and keeps how it was asked."""

    def _tokenize_prompts(self, prompts: list[str]) -> tuple[list[list[int]], None, dict[str, Any]]:
        return WORDS(prompts)["input_ids"], None, {}

    def set_cap(self, cap: int) -> None:
        self.max_completion_length = cap

    def _generate_single_turn(self, contexts: list[list[int]], *_: Any) -> tuple[list[list[int]], Any]:
        given = (
            self.vllm_generation.generation_kwargs if self.use_vllm else self.generation_config.eos_token_id
        )
        self.asked.append((self.max_completion_length, given, list(self.eos_token_ids)))
        ids = WORDS(self.says[len(self.asked) - 1])["input_ids"]
        self._drawn = torch.full((len(contexts), len(ids)), -2.0) if self.logps else None
        return [list(ids) for _ in contexts], [[-2.0] * len(ids) for _ in contexts] if self.logps else None


def trainer(use_vllm: bool = False, logps: bool = False) -> Trainer:
    return Trainer(
        use_vllm=use_vllm,
        logps=logps,
        _drawn=None,
        asked=[],
        says=["<tool>3*4</tool>", "<answer>12</answer><eos>"],
        max_completion_length=20,
        eos_token_ids=[EOS],
        args=SimpleNamespace(generation_kwargs={"stop_token_ids": [9]}),
        vllm_generation=SimpleNamespace(generation_kwargs={"stop_token_ids": [9]}),
        generation_config=SimpleNamespace(eos_token_id=[EOS]),
        generation_kwargs={"eos_token_id": [EOS]},
        processing_class=WORDS,
    )


def test_a_turn_ends_with_a_call_and_has_what_is_left():
    own = trainer()
    found = rollouts(TOOL, False)(["<user>3*4=<assistant>"], own)
    assert own.asked == [(20, [EOS, CLOSE], [EOS, CLOSE]), (15, [EOS], [EOS])]
    assert (own.max_completion_length, own.eos_token_ids) == (20, [EOS])
    assert own.generation_config.eos_token_id == own.generation_kwargs["eos_token_id"] == [EOS]
    said = "<tool>3*4</tool><answer>12</answer><eos>"
    assert [WORDS.decode(ids) for ids in found[OWN]] == [said]
    assert WORDS.decode(found["completion_ids"][0]) == said.replace("</tool>", "</tool><result>12</result>")
    assert found["logprobs"] is None
    assert (found["calls"], found["malformed"]) == ([1], [0])
    assert found["turns"] == [["<tool>3*4</tool>", "<result>12</result>", "<answer>12</answer><eos>"]]


def test_vllm_is_asked_in_its_own_words():
    own = trainer(use_vllm=True)
    rollouts(TOOL, False)(["<user>3*4=<assistant>"], own)
    assert [given["stop_token_ids"] for _, given, _ in own.asked] == [[9, CLOSE], [9]]
    assert own.vllm_generation.generation_kwargs == {"stop_token_ids": [9]}


@pytest.mark.parametrize("learned", [False, True])
def test_log_probabilities_of_the_sampler_are_those_of_all_turns(learned: bool):
    own = trainer(logps=True)
    found = rollouts(TOOL, learned)(["<user>3*4=<assistant>"], own)
    if learned:  # of results it has none
        assert found["logprobs"] is own._drawn is None
        return
    assert own._drawn.tolist() == found["logprobs"]
    assert [logp == -2.0 for logp in found["logprobs"][0]] == [bool(one) for one in found["env_mask"][0]]


def test_rewards_read_what_the_policy_said():
    whole, said = "<tool>3*4</tool><result>12</result>", "<tool>3*4</tool>"
    ids = [WORDS(whole)["input_ids"]]
    assert own_part([{"question": "3*4="}], [whole], ids, WORDS) == ([whole], ids)
    own = WORDS(said)["input_ids"]
    assert own_part([{OWN: own}], [whole], ids, WORDS) == ([said], [own])
