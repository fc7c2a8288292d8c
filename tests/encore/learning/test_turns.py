"""A trainer's own sampling, turn by turn: it stops at calls for a turn, and is as it was after it."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from encore import worlds
from encore.learning.samplers import OWN, Sampled, ToolSampler, TrlSampler
from encore.learning.scoring import Scorer, every_completion
from encore.recipe.tool import Tool
from encore.sampling.tools import ToolInWorld

WORDS = worlds.tokenizer([worlds.make({"world": "products"})])
CLOSE, EOS = WORDS.convert_tokens_to_ids("</tool>"), WORDS.eos_token_id
TOOL = Tool(name="calculator", calls=1, longest=4)


class Trainer(SimpleNamespace):
    """What TRL's trainer has of sampling; it says one text a turn, and keeps how it was asked."""

    def _generate_single_turn(self, contexts: list[list[int]], *_: Any) -> tuple[list[list[int]], Any]:
        if self.use_vllm:
            given, cap = self.vllm_generation.generation_kwargs, self.vllm_generation.max_completion_length
        else:
            given, cap = self.generation_config.eos_token_id, self.generation_config.max_new_tokens
        self.asked.append((cap, given, list(self.eos_token_ids)))
        ids = WORDS(self.says[len(self.asked) - 1])["input_ids"]
        return [list(ids) for _ in contexts], [[-2.0] * len(ids) for _ in contexts] if self.logps else None


def sample(own: Trainer, learn_results: bool = False) -> Sampled:
    sampler = ToolSampler(own, TrlSampler(own), ToolInWorld(TOOL), learn_results)
    return sampler.sample(["<user>3*4=<assistant>"], own.max_completion_length)


def trainer(use_vllm: bool = False, logps: bool = False) -> Trainer:
    return Trainer(
        use_vllm=use_vllm,
        logps=logps,
        asked=[],
        says=["<tool>3*4</tool>", "<answer>12</answer><eos>"],
        max_completion_length=20,
        eos_token_ids=[EOS],
        args=SimpleNamespace(generation_kwargs={"stop_token_ids": [9]}),
        vllm_generation=SimpleNamespace(generation_kwargs={"stop_token_ids": [9]}, max_completion_length=20),
        generation_config=SimpleNamespace(eos_token_id=[EOS], max_new_tokens=20),
        generation_kwargs={"eos_token_id": [EOS], "max_new_tokens": 20},
        processing_class=WORDS,
    )


def test_a_turn_ends_with_a_call_and_has_what_is_left():
    own = trainer()
    found = sample(own)
    assert own.asked == [(20, [EOS, CLOSE], [EOS, CLOSE]), (15, [EOS], [EOS])]
    said = "<tool>3*4</tool><answer>12</answer><eos>"
    assert [WORDS.decode(ids) for ids in found.said] == [said]
    assert WORDS.decode(found.completions[0]) == said.replace("</tool>", "</tool><result>12</result>")
    assert found.logps is None
    assert (found.columns["calls"], found.columns["malformed"]) == ([1], [0])
    assert found.columns["turns"] == [["<tool>3*4</tool>", "<result>12</result>", "<answer>12</answer><eos>"]]
    own.asked.clear()
    own.max_completion_length = 20
    sample(own)  # and begins anew as it did
    assert own.asked[0] == (20, [EOS, CLOSE], [EOS, CLOSE])


def test_vllm_is_asked_in_its_own_words():
    own = trainer(use_vllm=True)
    sample(own)
    assert [given["stop_token_ids"] for _, given, _ in own.asked] == [[9, CLOSE], [9]]
    assert own.vllm_generation.generation_kwargs == {"stop_token_ids": [9]}


@pytest.mark.parametrize("learned", [False, True])
def test_log_probabilities_of_the_sampler_are_those_of_all_turns(learned: bool):
    found = sample(trainer(logps=True), learned)
    if learned:  # of results it has none
        assert found.logps is None
        return
    assert found.logps is not None
    assert found.own is not None
    assert [logp == -2.0 for logp in found.logps[0]] == [bool(one) for one in found.own[0]]


def test_rewards_read_what_the_policy_said():
    whole, said = "<tool>3*4</tool><result>12</result>", "<tool>3*4</tool>"
    seen: list[list[str]] = []

    def reward(completions, **_):
        seen.append(completions)
        return [0.0]

    own: Any = SimpleNamespace(
        eos_token_ids=[EOS],
        accelerator=SimpleNamespace(device="cpu", process_index=0, gather=lambda x: x),
        processing_class=WORDS,
        reward_funcs=[reward],
        reward_func_names=["reward"],
        reward_weights=torch.ones(1),
        state=SimpleNamespace(global_step=0),
    )
    scorer = Scorer(own, every_completion)
    ids = [WORDS(whole)["input_ids"]]
    for columns in ({}, {OWN: [WORDS(said)["input_ids"]]}):
        sampled = Sampled([[5]], ids, columns=columns)
        scores = scorer.score([{"prompt": "", "question": "3*4="}], sampled, scorer.ended(sampled))
        assert scores.ids == columns.get(OWN, ids)
    assert seen == [[whole], [said]]
