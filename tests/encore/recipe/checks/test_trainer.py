"""What a Trainer would refuse or fall over, once all that a stage needs is trained, is refused before."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.errors import UserError
from encore.recipe.kinds import read_stage

ARGS = "stages/grpo/args"
LECTURE = {"learning_rate": 1e-3, "epochs": 1, "inner_steps": 1, "prompts_per_epoch": 1, "num_generations": 1}
LECTURE |= {"loss": "clipped", "max_completion_length": 8}
WHERE = " (scale cpu, arm base-recipe)"


def check(run, **keys):
    rewards = {} if run in ("dpo", "reward_model") else {"rewards": {"accuracy": 1.0}}
    read_stage({"run": run, "model": {"path": "p"}, **rewards, **keys}).check_rules()


@pytest.mark.parametrize(
    ("arg", "value", "message"),
    [
        ("num_generations", 1, "expected at least 2, which an advantage compares, got 1" + WHERE),
        ("num_generations", 3, "3 does not divide the 32 completions of a rollout; nearest: 2" + WHERE),
        ("num_generations", 33, "33 does not divide the 32 completions of a rollout; nearest: 32" + WHERE),
        (
            "num_generations",
            10**6,
            "1000000 does not divide the 32 completions of a rollout; nearest: 32" + WHERE,
        ),
        ("generation_batch_size", 32, "steps_per_generation is given too; remove one of the two" + WHERE),
        ("logging_steps", 0, "expected more than 0, got 0"),
        (
            "logging_steps",
            1.5,
            "expected a whole number, or less than 1 for a share of all steps, got 1.5" + WHERE,
        ),
        ("save_steps", 0, "expected more than 0, got 0"),
        ("save_steps", -1, "expected more than 0, got -1"),
        (
            "save_strategy",
            "no",
            "no: a stage that is killed would begin anew; expected steps or epoch" + WHERE,
        ),
        (
            "save_strategy",
            "best",
            "best: a stage that is killed would begin anew; expected steps or epoch" + WHERE,
        ),
        ("save_strategy", "step", 'unknown value the text "step"; did you mean "steps"?'),
        (
            "eval_strategy",
            "steps",
            "a stage grpo holds no data out; remove it, or write evaluate_every" + WHERE,
        ),
        ("eval_on_start", True, "a stage grpo holds no data out; remove it, or write evaluate_every" + WHERE),
        ("dataloader_num_workers", -1, "expected at least 0, got -1"),
        ("dataloader_num_workers", 10**9, "expected at most 1024, got 1000000000"),
        ("torch_empty_cache_steps", 0, "expected at least 1, got 0"),
        ("optim", "adamw_troch", 'unknown value the text "adamw_troch"; did you mean "adamw_torch"?'),
    ],
)
def test_a_mistake_is_told_before_anything_runs(folder, arg, value, message):
    folder.set("paper", f"{ARGS}/{arg}", value)
    assert folder.mistake() == f"{folder.path}/paper.yaml: stages.grpo.args.{arg}: {message}"


def test_a_rollout_is_whole_batches(folder):
    folder.remove("paper", f"{ARGS}/steps_per_generation")
    folder.set("paper", f"{ARGS}/generation_batch_size", 40)
    folder.load()
    folder.set("paper", f"{ARGS}/per_device_train_batch_size", 16)
    wrong = "generation_batch_size: 40 is no multiple of per_device_train_batch_size, 16; nearest: 32"
    assert wrong in folder.mistake()
    folder.remove("paper", f"{ARGS}/gradient_accumulation_steps")
    folder.set("paper", "stages/grpo/global_batch", 40)  # which is split as fits
    folder.load()


@pytest.mark.parametrize(
    ("stage", "args"),
    [
        ({"run": "ppo"}, {"num_generations": 1, "steps_per_generation": 2}),
        ({"run": "ppo"}, {"per_device_train_batch_size": 6, "steps_per_generation": 2}),
        (
            {"run": "grpo"},
            {"num_generations": 3, "per_device_train_batch_size": 3, "steps_per_generation": 5},
        ),
        ({"run": "grpo"}, {"num_generations": 4, "gradient_accumulation_steps": 2}),
        ({"run": "grpo", "global_batch": 12}, {"num_generations": 6, "generation_batch_size": 24}),
        ({"run": "grpo", "global_batch": 12}, {"num_generations": 6}),
    ],
)
def test_groups_that_fill_a_rollout(stage, args):
    check(**stage, args=args)


SIZES = st.integers(1, 12)


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {"num_generations": SIZES, "per_device_train_batch_size": SIZES},
        optional={"steps_per_generation": SIZES, "generation_batch_size": SIZES},
    )
)
def test_groups_are_those_that_trl_takes(args):
    """Of a stage on one process the check refuses what TRL's configuration refuses, and nothing else."""
    from trl import GRPOConfig

    def refuses(take):
        try:
            take()
        except (UserError, ValueError):
            return True
        return False

    usual = {"output_dir": "x", "use_cpu": True, "bf16": False, "report_to": "none"}
    ours = refuses(lambda: check("grpo", args=args))
    assert ours == refuses(lambda: GRPOConfig(**usual, **args))


def test_ppo_needs_no_group_but_two_completions():
    with pytest.raises(UserError, match=r"^args\.steps_per_generation: expected a rollout of at least 2"):
        check("ppo", args={"per_device_train_batch_size": 1, "steps_per_generation": 1})


@pytest.mark.parametrize("run", ["dpo", "reward_model"])
def test_stages_that_hold_data_out_can_evaluate_in_training(run):
    keys = {"dpo": {"pairs": "all"}, "reward_model": {"comparisons": "grouped"}}[run]
    check(run, args={"eval_strategy": "steps", "eval_on_start": True, "save_steps": 0.25}, **keys)


@pytest.mark.parametrize(("delta", "fits"), [("raw", True), ("centered", False), ("normalized", False)])
def test_a_delta_that_compares_needs_two_responses(delta, fits):
    if fits:
        check("policy_gradient", args=LECTURE | {"delta": delta})
    else:
        with pytest.raises(UserError, match=f"args.num_generations: delta {delta} compares at least 2"):
            check("policy_gradient", args=LECTURE | {"delta": delta})
