"""Training prompts that stand in an evaluation's data set."""

import json

import datasets

from encore.data import prompts
from encore.data.decontamination import contaminated
from encore.recipe.task import Questions

ASKED = "How many of the sixteen eggs that her ducks lay each day does Janet sell at the market?"
OTHER = "How many of the nine apples on the shelf by the door of the shop are ripe and red?"


def test_thirteen_words_in_a_row_whatever_their_case_and_signs():
    same = "Tell me: HOW many, of the sixteen eggs that her ducks lay each day, does he eat?"
    twelve = "Say how many of the sixteen eggs that her ducks lay each evening he eats in all."
    assert contaminated([same, twelve, OTHER], [ASKED]) == [0]


def test_a_short_question_is_compared_as_a_whole():
    assert contaminated(["What is 1 + 1?", "what is 1+1", "What is 1 + 1 + 1?", ""], ["What is 1+1?"]) == [
        0,
        1,
    ]
    assert contaminated([ASKED, "?!"], ["", "..."]) == []


def test_a_phrase_that_many_prompts_have_is_ignored_but_not_one_prompt_many_times():
    form = "Solve the problem step by step and write the answer on a line of its own: "
    asked = [form + "what is the sum of all odd numbers below one hundred that are no primes?"]
    forms = [f"{form}what is {i} plus {i}?" for i in range(11)]
    assert contaminated(forms, asked) == []
    assert contaminated(forms[:10], asked) == [*range(10)]
    assert contaminated([*asked * 20, *forms], asked) == [*range(20)]


def test_prompts_are_left_out_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    path = tmp_path / "held.jsonl"
    path.write_text(json.dumps({"q": ASKED}) + "\n")
    rows = datasets.Dataset.from_dict({"question": [OTHER, ASKED], "prompt": ["a", "b"]})
    kept, (check,) = prompts.clean(rows, {"heldout": Questions(file=str(path), question="q")})
    assert kept["prompt"][:] == ["a"]
    assert check["message"] == "1 of 2 prompts share 13 words in a row with heldout: left out"
    assert (check["value"], check["ok"]) == (1, True)
