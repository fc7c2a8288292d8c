"""One batch on any number of GPUs: what each process takes of it."""

import pytest

from encore.errors import UserError
from encore.recipe.kinds import read_stage

DRAWN = {"num_generations": 1, "temperature": 1.0, "top_p": 1.0, "max_completion_length": 8}
PLAIN = {
    "grpo": {"rewards": {"accuracy": 1.0}},
    "ppo": {"rewards": {"accuracy": 1.0}},
    "sft": {"needs": {"data": "d"}, "model": {"path": "p"}},
    "sample": {"args": DRAWN},
}


def check(stage):
    begun = {} if stage["run"] == "pretrain" else {"model": {"path": "p"}}
    args = {"args": PLAIN[stage["run"]]["args"]} if stage["run"] == "sample" else {}
    if "vllm_gpus" in stage:
        args = {"args": stage["args"] | {"use_vllm": True, "vllm_mode": "server"}}
    read_stage({**begun, **PLAIN.get(stage["run"], {}), **stage, **args}).check_rules()


def portion(stage, processes):
    """What each process takes of a stage."""
    return read_stage({**PLAIN.get(stage["run"], {}), **stage}).portion(processes).args


def lengths(stage):
    """How long a rollout and a step of a stage are."""
    return read_stage(stage).lengths


def stage(batch=512, run="grpo", gpus=8, **args):
    return {"run": run, "global_batch": batch, "resources": {"gpu": gpus}, "args": args}


@pytest.mark.parametrize("processes", [1, 2, 4, 8, 64, 512])
@pytest.mark.parametrize("most", [1, 3, 8, 1000])
def test_each_number_of_processes_has_the_same_batch_and_rollout(processes, most):
    one = stage(generation_batch_size=2048, per_device_train_batch_size=most)
    parts = portion(one, processes)
    rows, steps = parts["per_device_train_batch_size"], parts["gradient_accumulation_steps"]
    assert rows * steps * processes == 512
    assert 2048 % (rows * processes) == 0
    assert 1 <= rows <= most


def test_as_many_rows_at_a_time_as_fit():
    assert portion(stage(96, per_device_train_batch_size=32), 2) == {
        "per_device_train_batch_size": 24,
        "gradient_accumulation_steps": 2,
    }
    assert portion(stage(16), 8)["per_device_train_batch_size"] == 2
    assert portion({"run": "sft", "args": {"per_device_train_batch_size": 4}}, 8) == {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 1,
    }


@pytest.mark.parametrize(
    ("one", "processes", "says"),
    [
        (stage(512), 3, "global_batch: 512 does not divide among 3 GPUs; nearest: 2 GPUs"),
        (stage(4), 8, "global_batch: 4 does not divide among 8 GPUs; nearest: 4 GPUs"),
        (
            stage(64, generation_batch_size=96),
            64,
            "args.generation_batch_size: 96 does not divide among 64 GPUs; nearest: 32 GPUs",
        ),
        (
            stage(64, loss_type="bnpo", per_device_train_batch_size=16),
            8,
            "args.per_device_train_batch_size: 16 does not divide 8, a GPU's part of the batch, and "
            "loss_type bnpo depends on it; nearest: 8",
        ),
    ],
)
def test_what_does_not_divide_is_refused(one, processes, says):
    with pytest.raises(UserError, match=f"^{says}$"):
        portion(one, processes)


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (
            stage(gradient_accumulation_steps=4),
            "args.gradient_accumulation_steps: it follows from global_batch",
        ),
        (
            stage(steps_per_generation=4),
            "args.steps_per_generation: it depends .*; write generation_batch_size",
        ),
        (stage(gpus=3), "global_batch: 512 does not divide among 3 GPUs"),
        (
            {"run": "sft", "resources": {"gpu": 8}, "args": {}},
            "global_batch: missing; on 8 GPUs the batch would",
        ),
        (
            {"run": "sft", "resources": {"gpu": 1, "shard": "fsdp"}, "args": {}},
            "resources.shard: fsdp needs a stage sft, reward_model, dpo, grpo, ppo on .*, not sft on 1$",
        ),
        (
            stage(run="pretrain") | {"resources": {"gpu": 8, "shard": "fsdp"}},
            "resources.shard: .* not pretrain on 8",
        ),
        (
            {"run": "sft", "resources": {"nodes": 2}, "args": {}},  # a process on each, without a GPU
            "global_batch: missing; on 2 GPUs the batch would",
        ),
        (
            stage() | {"resources": {"nodes": 3, "gpu": 16}},
            "resources.gpu: 16 do not lie on 3 nodes with equally many on each; nearest: 15",
        ),
        (
            stage(2) | {"resources": {"nodes": 4}},
            "global_batch: 2 does not divide among 4 GPUs; nearest: 2",
        ),
        (
            stage() | {"resources": {"nodes": 3, "gpu": 16}, "vllm_gpus": 4},
            r"vllm_gpus: 4; on several nodes the server has the last one for itself, .*: 8 \(over several it",
        ),
        (
            stage() | {"resources": {"nodes": 9, "gpu": 64}, "vllm_gpus": 32},
            r"vllm_gpus: 32; .*: 8 \(over several it would need Ray, which no stage starts\)$",
        ),
        (
            stage() | {"resources": {"gpu": 512}, "vllm_gpus": 32},
            "resources.gpu: 512 and vllm_gpus: 32 on one machine, .* more than 16; .*resources.nodes",
        ),
        (
            stage() | {"resources": {"gpu": 64, "nodes": 2}},
            "resources.gpu: 32 on one machine, but",
        ),
        ({"run": "sample", "resources": {"gpu": 32}, "args": {}}, "resources.gpu: 32 on one machine, but"),
        (
            {"run": "sample", "resources": {"nodes": 2, "gpu": 16}, "args": {}},
            "resources.nodes: 2; stage sample runs on one, like all stages but pretrain, sft, ",
        ),
    ],
)
def test_a_recipe_that_leaves_the_batch_open_is_refused(one, says):
    with pytest.raises(UserError, match=says):
        check(one)


def test_of_several_nodes_a_vllm_server_has_the_last():
    check(stage() | {"resources": {"nodes": 2, "gpu": 16}})
    check(stage() | {"resources": {"nodes": 3, "gpu": 16}, "vllm_gpus": 8})
    check(stage() | {"resources": {"nodes": 2, "gpu": 8}, "vllm_gpus": 8})
    check(stage() | {"resources": {"gpu": 8}, "vllm_gpus": 8})


def test_without_several_gpus_nothing_need_be_said():
    check({"run": "sft", "args": {"gradient_accumulation_steps": 4}})
    check({"run": "sample", "resources": {"gpu": 8}, "args": {}})


def test_a_rollout_is_whole_steps_in_examples_too():
    assert lengths(stage(64, generation_batch_size=256)) == (256, 64)
    assert lengths({"run": "grpo", "args": {"steps_per_generation": 8}}) == (8, 1)
    assert lengths(stage(64)) is None
    with pytest.raises(
        UserError, match=r"args.generation_batch_size: 96 is no multiple of global_batch \(64\)"
    ):
        check(stage(64, gpus=1, generation_batch_size=96, loss_type="dapo", epsilon=0.2))
