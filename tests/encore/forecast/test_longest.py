"""A stage on its longest rows is still a stage: what is kept of it, what is replaced, and by which rows."""

import json

import pytest
from stage_runs import GRPO, TASK, TEMPLATE, preferences_product, rows_product

from encore import worlds
from encore.data import demonstrations, preferences
from encore.errors import UserError
from encore.forecast import longest, stand_ins
from encore.models import language_model
from encore.recipe.kinds import read_stage
from encore.recipe.shape import Shape
from encore.recipe.trl_fields import fields

MODEL = {"hidden_size": 32, "layers": 1, "head_dim": 32, "max_position_embeddings": 64}
ROW = {"question": "q", "answer": "1", "difficulty": 0}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    tokenizer = worlds.tokenizer([worlds.make(TASK)])
    policy = language_model.build(Shape(**MODEL), tokenizer, 0)
    folder = tmp_path_factory.mktemp("model")
    language_model.save(policy, tokenizer, folder / "final", policy.generation_config)
    return {"path": str(folder / "final")}


def of(config, inputs, folder):
    found = longest.of_stage_kind(config, inputs, 0, folder)
    assert found
    return found


def test_prompts_are_the_longest_and_completions_run_to_the_cap(model, tmp_path):
    config = {"run": "grpo", "model": model, **GRPO, "sampler": "lean", "dynamic_sampling": {"max_rounds": 3}}
    config["args"] = {**GRPO["args"], "mask_truncated_completions": True}
    found = of(config, {}, tmp_path)
    read_stage(found.config | {"task": {"world": "sort"}}).check_rules()
    args = found.config["args"]
    assert args["generation_kwargs"] == {"min_new_tokens": 12}
    assert args["max_completion_length"] == 12
    assert not args["mask_truncated_completions"]
    assert {key: args[key] for key in GRPO["args"]} == GRPO["args"]
    assert not {"sampler", "dynamic_sampling", "problems"} & {*found.config}
    lines = (tmp_path / "longest.jsonl").read_text().splitlines()
    assert len(lines) == longest.ROWS
    question = json.loads(lines[0])["question"]
    assert question.count("+") == TASK["terms"][1] - 1
    assert found.tokens == "a prompt of 8 tokens and a completion of 12"


def test_of_vllm_it_asks_in_its_own_words_and_keeps_what_else_was_asked(model, tmp_path):
    args = {**GRPO["args"], "use_vllm": True, "generation_kwargs": {"stop_token_ids": [7]}}
    found = of({"run": "grpo", "model": model, **GRPO, "args": args}, {}, tmp_path)
    assert found.config["args"]["generation_kwargs"] == {"stop_token_ids": [7], "min_tokens": 12}


def test_what_a_tool_may_say_comes_on_top(model, tmp_path):
    tool = {"name": "calculator", "calls": 2, "longest": 3, "result": ["=", "="]}
    config = {"run": "grpo", "model": model, **GRPO, "tool": tool, "learn_results": True}
    found = of(config, {}, tmp_path)
    read_stage(found.config | {"task": {"world": "sort"}}).check_rules()
    assert found.config["args"]["max_completion_length"] == 12 + 2 * (1 + 3 + 1)
    assert not {"tool", "learn_results"} & {*found.config}


def test_of_several_domains_and_caps_the_longest(model, tmp_path):
    args = {key: value for key, value in GRPO["args"].items() if key != "max_completion_length"}
    part = {"task": TASK, "template": TEMPLATE, "problems": 9, "share": 0.5, "rewards": {"accuracy": 1.0}}
    longer = {**part, "template": "<user>{question}<user><assistant>", "rewards": {"reward_model": 1.0}}
    config = {"run": "grpo", "model": model, "domains": {"one": part, "two": longer}, "args": args}
    config["caps"] = {"0": 8, "8": 20}
    found = of(config, {"reward_model": tmp_path}, tmp_path)
    read_stage({**found.config, "needs": {"reward_model": ""}}).check_rules()
    assert found.config["template"] == longer["template"]
    assert found.config["rewards"] == {"random": 1.0, "reward_model": 1.0}
    assert found.config["args"]["max_completion_length"] == 20
    assert not {"domains", "caps"} & {*found.config}
    assert found.tokens == "a prompt of 9 tokens and a completion of 20"


def test_of_demonstrations_the_longest_that_is_learnt(model, tmp_path):
    rows = [{**ROW, "prompt": "<user>1", "completion": "+1" * n} for n in (2, 9, 5)]
    data = rows_product(tmp_path / "data", rows)
    config = {"run": "sft", "model": model, "problems": 3, "args": {"max_length": 15, "learning_rate": 1.0}}
    found = of(config, {"data": data}, tmp_path)
    learnt = demonstrations.load(found.inputs["data"])
    assert len(learnt) == longest.ROWS
    assert learnt[0]["completion"] == "+1" * 5  # 9 would be left out
    assert found.tokens == "a demonstration of 13 tokens"
    assert found.config == {key: value for key, value in config.items() if key != "problems"}
    with pytest.raises(UserError, match=r"args\.max_length: 3, and none of 3 rows is as short"):
        of({**config, "args": {"max_length": 3}}, {"data": data}, tmp_path)


def test_without_a_length_the_class_of_the_arguments_has_one(model, tmp_path):
    """As the stage itself will leave out what is longer."""
    assert fields("trl.trainer.sft_config.SFTConfig")["max_length"].default == "1024"
    rows = [{**ROW, "prompt": "<user>1", "completion": "+1" * n} for n in (5, 600)]
    data = rows_product(tmp_path / "data", rows)
    found = of({"run": "sft", "model": model, "args": {}}, {"data": data}, tmp_path)
    assert demonstrations.load(found.inputs["data"])[0]["completion"] == "+1" * 5


@pytest.mark.parametrize("kind", ["dpo", "reward_model"])
def test_of_comparisons_the_longest(model, tmp_path, kind):
    rows = [
        {
            **ROW,
            "prompt": "<user>1",
            "responses": ["+1" * n, "1"],
            "ranking": [0, 1],
            "scores": [1.0, 0.0],
            "split": "train",
            "truncated": [False, False],
        }
        for n in (2, 5, 3)
    ]
    data = preferences_product(tmp_path / "data", rows)
    config = {"run": kind, "model": model, "args": {"max_length": 48}}
    config |= {"problems": 3} if kind == "reward_model" else {}
    found = of(config, {"data": data}, tmp_path)
    learnt = preferences.load(found.inputs["data"])
    assert {row["responses"][0] for row in learnt} == {"+1" * 5}
    assert {row["split"] for row in learnt} == {"train", "validation"}
    assert "problems" not in found.config


def test_a_base_model_has_no_longer_form(tmp_path):
    assert longest.of_stage_kind({"run": "pretrain"}, {}, 0, tmp_path) is None


@pytest.mark.parametrize(
    ("kind", "failure", "emptied"),
    [
        ("rejection_sampling", "0 of 64 completions kept: 3 ended", True),
        ("label", "health check pairs: 0 empty responses", True),
        ("label", "keep: right: none of 3 prompts has a completion to keep", True),
        ("label", "labeller.agreement: expected more", False),
        ("sample", "0 of 64 completions kept", False),
        ("rejection_sampling", "model.path: no folder x", False),
    ],
)
def test_what_is_no_want_of_right_replies_has_no_stand_in(kind, failure, emptied):
    assert stand_ins.emptied(kind, failure) == emptied
