"""What a preflight runs in place of a stage or an evaluation, and what it concludes about the whole."""

import pytest

from encore.forecast import trial
from encore.recipe.kinds import read_stage

GRPO = {
    "run": "grpo",
    "problems": 4096,
    "args": {
        "max_steps": 240,
        "per_device_train_batch_size": 64,
        "gradient_accumulation_steps": 1,
        "steps_per_generation": 4,
        "save_steps": 40,
    },
}
SFT = {"run": "sft", "problems": 500, "args": {"num_train_epochs": 2, "per_device_train_batch_size": 16}}
LECTURE = {
    "run": "policy_gradient",
    "args": {
        **{"learning_rate": 1e-3, "epochs": 50, "inner_steps": 10, "prompts_per_epoch": 4},
        **{"num_generations": 2, "delta": "raw", "loss": "naive", "max_completion_length": 8},
    },
}
SAMPLE = {"run": "sample", "problems": 1280, "args": {"num_generations": 4, "max_completion_length": 80}}


def test_of_a_stage_the_number_of_steps_alone_is_changed():
    short = trial.cut_stage(GRPO, 64, 0, from_cut=False)
    args = short.config["args"]
    assert (args.pop("max_steps"), args.pop("logging_steps")) == (2, 1)
    assert args == {key: value for key, value in GRPO["args"].items() if key != "max_steps"}
    assert short.config["problems"] == 4096
    assert short.share == 1.0


def test_each_of_the_steps_samples_its_own_rollout():
    assert trial.cut_stage({**GRPO, "max_staleness": 4}, 64, 0, from_cut=False).config["max_staleness"] == 0
    assert "max_staleness" not in trial.cut_stage(GRPO, 64, 0, from_cut=False).config


def test_a_stage_that_draws_has_as_many_problems_as_later_stages_need():
    rows = trial.rows_needed([read_stage({"run": "reward_model", "global_batch": 64, "args": {}})], 8)
    assert rows == 96
    short = trial.cut_stage(SAMPLE, rows, 1280, from_cut=False)
    assert short.config == {**SAMPLE, "problems": 96}
    assert short.share == 96 / 1280
    whole = trial.cut_stage({**SAMPLE, "problems": 8}, rows, 8, from_cut=False)
    assert (whole.config["problems"], whole.share) == (8, 1.0)


def test_rows_are_for_the_batch_of_all_processes():
    assert trial.rows_needed([read_stage(SFT)], 8) == 1.5 * 8 * 16
    assert trial.rows_needed([], 1) == trial.LEAST_ROWS


def test_a_stage_on_data_that_were_cut_asks_for_no_number_of_rows():
    assert "problems" not in trial.cut_stage(SFT, 64, 0, from_cut=True).config
    assert trial.cut_stage(SFT, 64, 0, from_cut=False).config["problems"] == 500


@pytest.mark.parametrize(
    ("config", "epochs", "steps"),
    [
        (GRPO, 0.01, 240),
        (SFT, 2 / 31, 62),
        (SFT, round(2 / 31, 6), 62),  # as provenance.json has it
        ({**SFT, "args": {}}, 2 / 10, 30),  # SFTConfig's own three epochs
        ({"run": "reward_model", "members": 3, "args": {"max_steps": 240}}, 0.01, 720),
        (LECTURE, 0, 500),
    ],
)
def test_steps_of_the_whole(config, epochs, steps):
    assert trial.steps(read_stage(config), epochs) == steps


def test_a_rollout_is_paid_for_by_the_first_of_its_steps():
    assert trial.seconds_a_step(read_stage(GRPO), 10.0, 2.0) == (10 + 3 * 2) / 4
    once = {**GRPO, "args": GRPO["args"] | {"steps_per_generation": 1}}
    assert trial.seconds_a_step(read_stage(once), 10.0, 2.0) == 2.0  # the first one warms up, too
    assert trial.seconds_a_step(read_stage(SFT), 10.0, 2.0) == 2.0
    whole = {"run": "ppo", "global_batch": 32, "args": {"generation_batch_size": 64, "num_iterations": 4}}
    assert trial.seconds_a_step(read_stage(whole), 10.0, 2.0) == (10 + 7 * 2) / 8


def test_an_evaluation_keeps_its_samples_and_loses_items():
    tasks = {
        "heldout": {"items": 512, "samples": 16, "max_gen_toks": 100, "k": [16]},
        "few": {"items": 30, "samples": 64, "max_gen_toks": 1000, "k": [1]},
        "whole": {"lm_eval": "gsm8k"},
    }
    short = trial.cut_evaluation({"backend": "hf", "tasks": tasks})
    assert {name: task["items"] for name, task in short.config["tasks"].items()} == {
        "heldout": 16,
        "few": 4,
        "whole": 256,
    }
    assert short.config["tasks"]["heldout"]["samples"] == 16
    work = 16 * 16 * 100 + 4 * 64 * 1000
    assert short.share == work / (512 * 16 * 100 + 30 * 64 * 1000)
    assert short.unknown == ("whole",)


def test_loading_is_paid_for_once():
    assert trial.whole_s(10.0, 12.0, 0.1) == 30.0
    assert trial.whole_s(10.0, 9.0, 0.1) == 10.0
    barely = trial.barely({"tasks": {"heldout": {"items": 512, "samples": 16, "max_gen_toks": 100}}})
    assert barely["tasks"]["heldout"] == {"items": 1, "samples": 16, "max_gen_toks": 1}
    assert trial.barely(SAMPLE)["problems"] == 1
    assert trial.barely(SAMPLE)["args"]["max_completion_length"] == 1
