"""Keys of a grpo stage that contradict each other are told before a job starts."""

from typing import Any

import pytest

from encore.errors import UserError
from encore.recipe.kinds import read_stage

TOOL = {"name": "calculator", "calls": 2, "longest": 8}
HUB = {"hub": "a/b", "revision": "a" * 40, "split": "train", "question": "q"}
REPLAY = {"every": 4, "share": 0.1}
SEQUENCE = {"importance_sampling_level": "sequence"}
SERVER = {"use_vllm": True, "vllm_mode": "server"}
ROLLOUTS_OF_TWO = {"steps_per_generation": 2, "gradient_accumulation_steps": 1}  # 4 rollouts
GUESS = {"environment": "guessing:Guess"}
ACTS = {"name": "environment", "calls": 2, "longest": 8}


def stage(args: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    args = {"loss_type": "grpo", "max_steps": 8, **(args or {})}
    plain = {"run": "grpo", "model": {"path": "p"}, "task": {"world": "chain"}, "rewards": {"accuracy": 1.0}}
    return {**plain, **keys, "args": {name: value for name, value in args.items() if value is not None}}


@pytest.mark.parametrize(
    "sound",
    [
        stage(),
        stage(SEQUENCE),
        stage(advantage="process", importance_ratio="sequence_token"),
        stage(advantage="positive", rewards={"accuracy": 1.0, "format": 0.0}),
        stage(advantage="raw", rewards={"accuracy": 1.0, "format": 1.0}),
        stage(advantage="pass_at_k", pass_k=8),
        stage(clip_cov={}, advantage="negative"),
        stage(kl_cov={"share": 0.002, "weight": 0.1}, bottom_entropy_quantile=0.8),
        stage(importance_ratio="none", old_logp_noise=0.0),
        stage(SEQUENCE, old_logp_noise=0.1),
        stage(tool=TOOL, learn_results=True, resources={"gpu": 1}),
        stage(task=GUESS, tool=ACTS, rewards={"environment": 1.0}),
        stage(task=GUESS | {"most": 4}, tool=ACTS, advantage="process"),
        stage(task={"environment": "openenv", "url": "http://a"}, tool=ACTS, rewards={"environment": 1.0}),
        stage({"steps_per_generation": 6, "gradient_accumulation_steps": 4}),
        stage({"loss_type": "dapo", "steps_per_generation": 8, "gradient_accumulation_steps": 4}),
        stage({"loss_type": "cispo", "epsilon_high": 5.0}),
        stage({"shuffle_dataset": False}, replay=REPLAY),
        stage({"top_p": 1.0, "temperature": 0.6, "use_vllm": False}, sampler="lean"),
        stage(max_staleness=0),
        stage(ROLLOUTS_OF_TWO, max_staleness=3, sampler="lean"),
        stage({"use_vllm": True, "vllm_mode": "colocate"}, max_staleness=1, resources={"gpu": 1}, tool=TOOL),
        stage(SERVER, max_staleness=1, resources={"gpu": 1}, vllm_gpus=1),
        stage(max_staleness=1, sampler="lean", replay=REPLAY),
    ],
)
def test_sound(sound):
    read_stage(sound).check_rules()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            stage(advantage="process", rewards={"accuracy": 1.0, "format": 0.5}),
            r"rewards.format: .* weight 0",
        ),
        (stage(advantage="positive", rewards={"format": 0.5}), "positive reads accuracy alone"),
        (
            stage(advantage="above_mean", args={"scale_rewards": "none"}),
            "args.scale_rewards: above_mean divides by the group's",
        ),
        (stage(advantage="weighted", rewards={"format": 0.5}), "weighted reads accuracy alone"),
        (stage(advantage="pass_at_k"), "pass_k: it is the k of advantage pass_at_k; give both"),
        (stage(pass_k=2), "pass_k: it is the k of advantage pass_at_k; give both or neither"),
        (stage(advantage="pass_at_k", pass_k=9), "pass_k: 9 of the 8 responses .* cannot be chosen"),
        (stage(clip_cov={"low": 2.0, "high": 1.0}), r"clip_cov.low: 2.0 is not below clip_cov.high 1.0"),
        (stage(clip_cov={}, kl_cov={}), "kl_cov: clip_cov holds back the same tokens"),
        (stage(SEQUENCE, clip_cov={}), "clip_cov: it chooses tokens, and importance_sampling_level"),
        (stage(kl_cov={}, importance_ratio="none"), "kl_cov: it compares with old log-probabilities"),
        (
            stage({"top_entropy_quantile": 0.2}, bottom_entropy_quantile=0.8),
            "bottom_entropy_quantile: args.top_entropy_quantile chooses tokens too",
        ),
        (stage(learn_results=True), "learn_results: without effect"),
        (
            stage(max_staleness=0, dynamic_sampling={"max_rounds": 2}),
            "max_staleness: dynamic_sampling samples until",
        ),
        (
            stage({"max_completion_length": None}, max_staleness=0, caps={"0": 4, "4": 8}),
            "max_staleness: caps",
        ),
        (stage(max_staleness=1), "max_staleness: needs a sampler that reports .*; set sampler: lean, or"),
        (
            stage(max_staleness=1, sampler="lean", tool=TOOL, learn_results=True),
            "learn_results: no sampler reports",
        ),
        (
            stage(ROLLOUTS_OF_TWO, max_staleness=4, sampler="lean"),
            "max_staleness: expected less than the 4 rollouts of the stage, got 4",
        ),
        (
            stage(SERVER, max_staleness=1, resources={"gpu": 2}, vllm_gpus=1, global_batch=8),
            "max_staleness: a vLLM server samples ahead for one training GPU, but resources.gpu is 2",
        ),
        (
            stage(SERVER, max_staleness=1, resources={"gpu": 1}, vllm_gpus=1, tool=TOOL),
            "tool: a vLLM server that samples ahead takes no turns",
        ),
        (
            stage(tool=TOOL | {"name": "frozen_lake"}),
            "^tool.name: the calls act in world frozen_lake, but the task's world is chain; set task.world",
        ),
        (stage(sampler_precision="int8"), "^sampler_precision: of sampler lean alone; write it, or leave"),
        (
            stage(sampler_precision="float8", sampler="lean", lora={"rank": 4, "alpha": 8}),
            "^sampler_precision: not beside lora; expected bfloat16 or float16, or no lora",
        ),
        (stage(tool=ACTS), "^tool.name: the calls act in the environment of the task; name it: task.environ"),
        (
            stage(task=GUESS, tool=ACTS | {"call": ["<tool>", "</tool>"]}),
            "^tool.call: the calls of an environment stand between <tool_call> and </tool_call>; leave",
        ),
        (stage(task={"environment": "opnenv"}), 'task.environment: no environment "opnenv".*openenv'),
        (
            stage(task={"environment": "guessing:Gues"}),
            'task.environment: .* nothing is called "Gues".*Guess',
        ),
        (
            stage(task=GUESS | {"right": 2}),
            "task.right: expected more than 0 and at most 1, the range, got 2",
        ),
        (
            stage(task=GUESS | {"reward_range": [1, 0]}),
            "task.reward_range: expected the lowest reward and then",
        ),
        (
            stage(tool=TOOL, learn_results=True, advantage="process"),
            "learn_results: advantage process reads steps",
        ),
        (stage(tool=TOOL, resources={"gpu": 2}, global_batch=8), "tool: its turns end at different times"),
        (
            stage(advantage="process", task=HUB | {"answer": "a", "verifier": "math"}),
            "advantage: process needs a step verifier",
        ),
        (stage(SEQUENCE, advantage="process"), "importance_sampling_level sequence weighs whole sequences"),
        (stage({"loss_type": "luspo"}, advantage="process"), "loss_type luspo weighs whole sequences"),
        (stage({"multi_objective_aggregation": "normalize_then_sum"}, advantage="raw"), "would be ignored"),
        (stage(SEQUENCE, importance_ratio="sequence_token"), "set importance_sampling_level to token"),
        (stage(SEQUENCE, importance_ratio="none"), "set importance_sampling_level to token"),
        (stage(importance_ratio="none", old_logp_noise=0.1), "old_logp_noise: without effect"),
        (
            stage({"loss_type": "dapo", "steps_per_generation": 6, "gradient_accumulation_steps": 4}),
            "steps_per_generation: 6 is no multiple",
        ),
        (stage({"loss_type": "cispo", "epsilon_high": 0.28}), "epsilon_high: 0.28 would cut every ratio"),
        (stage({"loss_type": "cispo"}), "epsilon_high: 0.2 would cut every ratio"),
        (stage({"shuffle_dataset": True}, replay=REPLAY), "args.shuffle_dataset: replay"),
        (stage({"max_steps": None}, replay=REPLAY), "args.max_steps: missing"),
        (stage(replay=REPLAY, dynamic_sampling={"max_rounds": 3}), "replay: dynamic_sampling draws its own"),
        (stage(replay=REPLAY, copies=2), "copies: replay has its own order of prompts"),
        (stage({"sync_ref_model": True, "beta": 0.0}), "args.sync_ref_model: with beta 0 there is no ref"),
        (
            stage(
                task=HUB,
                rewards={"reward_model": 1.0},
                needs={"reward_model": "x"},
                dynamic_sampling={"max_rounds": 3},
            ),
            "dynamic_sampling: it reads accuracy, and the task has no verifier",
        ),
        (stage(rewards={"reward_model": 1.0}), "rewards.reward_model: needs.reward_model is missing"),
        (stage({"top_p": 0.9}, sampler="lean"), "args.top_p: 0.9, but sampler lean draws from the whole"),
        (stage({"use_vllm": True}, sampler="lean"), "args.use_vllm: True"),
    ],
)
def test_senseless(wrong, message):
    with pytest.raises(UserError, match=message) as error:
        read_stage(wrong).check_rules()
    assert "\n" not in str(error.value)
