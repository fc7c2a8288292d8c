"""What ends a reply, and whether a verifier tells one gold answer from another, found before a stage runs."""

import json

import pytest
import true_tokenizers
from stage_runs import TASK, TEMPLATE

from encore import worlds
from encore.forecast import probes
from encore.models import language_model
from encore.recipe.shape import Shape
from encore.rewards import rules
from encore.runtime import reward_checks

MODEL = {"hidden_size": 32, "layers": 1, "head_dim": 32, "max_position_embeddings": 64}
CONFIG = {"run": "grpo", "task": TASK, "template": TEMPLATE, "rewards": {"accuracy": 1.0}}


@pytest.fixture
def policy(tmp_path):
    """A folder with a model, and a function that changes one of its JSON files."""
    tokenizer = worlds.tokenizer([worlds.make(TASK)])
    model = language_model.build(Shape(**MODEL), tokenizer, 0)
    folder = tmp_path / "model"
    language_model.save(model, tokenizer, folder, model.generation_config)

    def change(file, **values):
        path = folder / file
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return folder, change


def found(folder):
    config = {**CONFIG, "model": {"path": str(folder)}}
    return {one["check"]: one for one in probes.of_stage(config, {}, 0)}


def test_a_sound_policy_and_verifier(policy):
    checks = found(policy[0])
    assert [*checks] == ["ends", "gold_of_next"]
    assert all(one["ok"] for one in checks.values())
    assert checks["ends"]["message"] == "replies end with '<eos>' (1)"


def test_an_end_that_generation_does_not_know(policy):
    folder, change = policy
    change("generation_config.json", eos_token_id=[2])
    wrong = found(folder)["ends"]
    assert (wrong["ok"], wrong["severity"]) == (False, "error")
    assert "the tokenizer ends texts with '<eos>' (1)" in wrong["message"]
    assert "replies with [2]" in wrong["message"]


def test_an_end_among_several(policy):
    folder, change = policy
    change("generation_config.json", eos_token_id=[2, 1])
    assert found(folder)["ends"]["ok"]


def test_an_end_that_the_model_has_no_token_for(policy):
    folder, change = policy
    change("generation_config.json", eos_token_id=[1, 151_645])
    assert "end 151645 is no token of the model" in found(folder)["ends"]["message"]


def test_a_tokenizer_without_an_end(policy):
    folder, change = policy
    change("tokenizer_config.json", eos_token=None, pad_token="<eos>")
    assert "names no end of sequence" in found(folder)["ends"]["message"]


def test_a_checkpoint_without_a_generation_config(policy):
    folder, _ = policy
    (folder / "generation_config.json").unlink()
    assert found(folder)["ends"]["ok"]


@pytest.mark.parametrize("kind", true_tokenizers.MADE)
def test_ends_of_published_models_are_sound(tmp_path, kind):
    metrics = true_tokenizers.checkpoint(kind, tmp_path)
    model = {"path": str(metrics.parent / "final")}
    (by_template,) = probes.of_stage({"run": "sft", "model": model, "template": "{question}"}, {}, 0)
    assert by_template["ok"], by_template["message"]


def test_a_base_model_that_is_put_by_chat_ends_with_the_turn_too(tmp_path):
    metrics = true_tokenizers.checkpoint("qwen2-base", tmp_path)
    config = {"run": "sft", "model": {"path": str(metrics.parent / "final")}, "chat": True}
    (ends,) = probes.of_stage(config, {}, 0)
    assert ends["ok"]
    assert "'<|im_end|>'" in ends["message"]
    assert "'<|endoftext|>'" in ends["message"]
    assert "the end of a turn among them" in ends["message"]


def test_each_domain_has_its_own_verifier(policy):
    part = {key: CONFIG[key] for key in ("task", "template", "rewards")}
    free = {**part, "task": {"file": "requests.jsonl", "question": "q"}}
    config = {"run": "grpo", "model": {"path": str(policy[0])}, "domains": {"sums": part, "free": free}}
    assert [one["check"] for one in probes.of_stage(config, {}, 0)] == ["ends", "gold_of_next/sums"]


def test_a_verifier_that_pays_for_another_answer():
    rows = [
        {"prompt": q, "question": q, "answer": a}
        for q, a in (("1+1", "2"), ("2+2", "4"), ("3+1", "4"), ("1+2", "3"))
    ]
    (accuracy,) = rules.build(["accuracy"], None)
    good = reward_checks.crossed(accuracy, rows)
    assert good["ok"]
    assert good["message"].startswith("3 of 3 gold answers")  # of two equal ones nothing can be said
    blind = reward_checks.crossed(lambda completions, **columns: [1.0] * len(completions), rows)
    assert (blind["ok"], blind["severity"]) == (False, "error")
    assert "'3' is paid for '1+1', whose answer is '2'" in blind["message"]


def test_two_ways_to_write_an_answer_are_a_warning():
    answers = [str(number) for number in range(60)] + ["1/2", "0.5"]
    rows = [{"prompt": "x", "question": "x", "answer": answer} for answer in answers]
    (accuracy,) = rules.build(["accuracy"], None)
    check = reward_checks.crossed(accuracy, rows)
    assert (check["ok"], check["severity"]) == (False, "warning")
    assert "'1/2' is paid for" in check["message"]


def test_one_answer_alone_says_nothing():
    row = {"prompt": "x", "question": "x", "answer": "1"}
    assert reward_checks.crossed(lambda completions, **columns: [1.0], [row])["ok"]
