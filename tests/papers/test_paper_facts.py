"""Recipes at scale paper against the papers: the numbers that make an experiment that paper's.

A fact is a dotted path in the resolved config of a stage, or one of `batches`: what papers report and no
single field says, for it follows from the batch, the rollout and the size of a group.
"""

from functools import reduce
from typing import Any

import distillation_facts
import preference_facts
import pytest
import r1_facts
import reasoning_facts
import setting_facts
from papers import GRAPH, RECIPES
from sources import unsaid

from encore.recipe.graph import Node

TRAINED = ("r1_zero", "deepseekmath", "dapo", "gspo", "dr_grpo", "objectives", "reward_design")


def stage(recipe: str, arm: str = "base-recipe", name: str = "grpo", scale: str = "paper") -> dict[str, Any]:
    return GRAPH.config(Node(recipe, scale, arm, 0, name, "stage"))


def tasks(recipe: str) -> dict[str, Any]:
    """The tasks of all checkpoints of a recipe's first arm."""
    checkpoints = RECIPES[recipe].checkpoints("paper", "base-recipe")
    configs = [GRAPH.config(Node(recipe, "paper", "base-recipe", 0, name, "eval")) for name in checkpoints]
    return {name: task for config in configs for name, task in config["tasks"].items()}


def batches(recipe: str, arm: str = "base-recipe") -> dict[str, float]:
    """Responses and updates, from the batches that a `grpo` stage states."""
    config = stage(recipe, arm)
    args, batch = config["args"], config["global_batch"]
    responses = args["generation_batch_size"]
    updates = responses * args["num_iterations"] / batch
    return {
        "responses_per_update": batch,
        "responses_per_rollout": responses,
        "prompts_per_rollout": responses / args["num_generations"],
        "updates_per_rollout": updates,
        "warmup_rollouts": args.get("warmup_steps", 0) / updates,
    }


def sizes(recipe: str, arm: str, name: str) -> dict[str, float]:
    """What a stage learns from at once, and in all; `episodes` to a rollout."""
    config = stage(recipe, arm, name)
    if "global_batch" not in config:  # it learns nothing
        return {}
    args, found = config["args"], {"batch": config["global_batch"]}
    if whole := args.get("generation_batch_size"):
        samples = args["max_steps"] * found["batch"] / args["num_iterations"]
        found |= {"rollout": whole, "episodes": pytest.approx(samples, abs=whole)}
    return found


def at(config: dict[str, Any], path: str) -> Any:
    return reduce(lambda part, key: part[key], path.split("."), config)


FACTS = [
    # recipe, arm, what, value, source
    ("r1_zero", "base-recipe", "rewards", {"accuracy": 1.0, "format": 1.0}, "Nature, Methods"),
    ("r1_zero", "base-recipe", "args.learning_rate", 3e-6, "Nature, Methods"),
    ("r1_zero", "base-recipe", "args.beta", 0.001, "Nature, Methods"),
    ("r1_zero", "base-recipe", "args.epsilon", 10.0, "Nature, Methods, stage 1 of R1"),
    ("r1_zero", "base-recipe", "args.num_generations", 16, "Nature, Methods"),
    ("r1_zero", "base-recipe", "caps", {"0": 32768, "8192": 65536}, "Nature, Methods: step 8.2k"),
    ("r1_zero", "base-recipe", "args.max_steps", 10400, "Nature, Methods"),
    ("r1_zero", "base-recipe", "args.ref_model_sync_steps", 400, "Nature, Methods"),
    ("r1_zero", "base-recipe", "args.ref_model_mixup_alpha", 1.0, "Nature, Methods: replaced, not mixed"),
    ("r1_zero", "base-recipe", "responses_per_update", 512, "Nature, Methods: 32 questions x 16"),
    ("r1_zero", "base-recipe", "responses_per_rollout", 8192, "Nature, Methods"),
    ("r1_zero", "base-recipe", "updates_per_rollout", 16, "Nature, Methods"),
    ("deepseekmath", "base-recipe", "args.learning_rate", 1e-6, "2402.03300 §4.2"),
    ("deepseekmath", "base-recipe", "args.beta", 0.04, "2402.03300 §4.2"),
    ("deepseekmath", "base-recipe", "args.use_bias_correction_kl", False, "2402.03300 Eq. 4"),
    ("deepseekmath", "base-recipe", "args.num_generations", 64, "2402.03300 §4.2"),
    ("deepseekmath", "base-recipe", "args.max_completion_length", 1024, "2402.03300 §4.2"),
    ("deepseekmath", "base-recipe", "args.loss_type", "grpo", "2402.03300 Eq. 3"),
    ("deepseekmath", "base-recipe", "args.scale_rewards", "group", "2402.03300 §4.1.2"),
    ("deepseekmath", "base-recipe", "responses_per_update", 1024, "2402.03300 §4.2"),
    ("deepseekmath", "base-recipe", "prompts_per_rollout", 16, "2402.03300 §4.2: 1,024 of 64"),
    ("deepseekmath", "base-recipe", "updates_per_rollout", 1, "2402.03300 §4.2"),
    ("dapo", "base-recipe", "args.learning_rate", 1e-6, "2503.14476 §4.1"),
    ("dapo", "base-recipe", "args.lr_scheduler_type", "constant_with_warmup", "2503.14476 §4.1"),
    ("dapo", "base-recipe", "warmup_rollouts", 20, "2503.14476 §4.1"),
    ("dapo", "base-recipe", "args.epsilon", 0.2, "2503.14476 §4.1"),
    ("dapo", "base-recipe", "args.epsilon_high", 0.28, "2503.14476 §4.1"),
    ("dapo", "base-recipe", "args.beta", 0.0, "2503.14476 §2.3"),
    ("dapo", "base-recipe", "args.loss_type", "dapo", "2503.14476 Eq. 8"),
    ("dapo", "base-recipe", "args.num_generations", 16, "2503.14476 §4.1"),
    ("dapo", "base-recipe", "args.max_completion_length", 20480, "2503.14476 §4.1: L_max, not the 16,384"),
    ("dapo", "base-recipe", "soft_overlong_cache", 4096, "2503.14476 §4.1"),
    ("dapo", "base-recipe", "rewards", {"accuracy": 2.0, "soft_overlong": 1.0}, "2503.14476 Eq. 7: 2 apart"),
    ("dapo", "base-recipe", "dynamic_sampling.max_rounds", 10, "the released script"),
    ("dapo", "base-recipe", "args.weight_decay", 0.1, "the released script"),
    ("dapo", "base-recipe", "prompts_per_rollout", 512, "2503.14476 §4.1"),
    ("dapo", "base-recipe", "responses_per_update", 512, "2503.14476 §4.1"),
    ("dapo", "base-recipe", "updates_per_rollout", 16, "2503.14476 §4.1"),
    ("dapo", "naive", "args.epsilon_high", 0.2, "2503.14476 Table 1"),
    ("dapo", "naive", "args.loss_type", "grpo", "2503.14476 Table 1"),
    ("dapo", "naive", "args.mask_truncated_completions", False, "2503.14476 Table 1"),
    ("gspo", "base-recipe", "args.epsilon", 3e-4, "2507.18071 §5.1"),
    ("gspo", "base-recipe", "args.epsilon_high", 4e-4, "2507.18071 §5.1"),
    ("gspo", "base-recipe", "args.importance_sampling_level", "sequence", "2507.18071 Eq. 7"),
    ("gspo", "base-recipe", "args.loss_type", "grpo", "2507.18071 Eq. 5"),
    ("gspo", "base-recipe", "updates_per_rollout", 4, "2507.18071 §5.1"),
    ("gspo", "grpo", "args.epsilon", 0.2, "2507.18071 §5.1"),
    ("gspo", "grpo", "args.epsilon_high", 0.27, "2507.18071 §5.1"),
    ("gspo", "grpo", "args.importance_sampling_level", "token", "2507.18071 Eq. 2"),
    ("gspo", "gspo-token", "importance_ratio", "sequence_token", "2507.18071 Eq. 14"),
    ("dr_grpo", "base-recipe", "args.learning_rate", 1e-6, "the released script"),
    ("dr_grpo", "base-recipe", "args.loss_type", "dr_grpo", "2503.20783 §3.2"),
    ("dr_grpo", "base-recipe", "args.scale_rewards", "none", "2503.20783 §3.2"),
    ("dr_grpo", "base-recipe", "args.beta", 0.0, "2503.20783 §3"),
    ("dr_grpo", "base-recipe", "args.num_generations", 8, "the released script"),
    ("dr_grpo", "base-recipe", "args.max_completion_length", 3000, "the released script"),
    ("dr_grpo", "base-recipe", "rewards", {"accuracy": 1.0}, "2503.20783 §3.2"),
    ("dr_grpo", "base-recipe", "prompts_per_rollout", 128, "the released script"),
    ("dr_grpo", "base-recipe", "responses_per_update", 128, "the released script"),
    ("dr_grpo", "base-recipe", "updates_per_rollout", 8, "the released script"),
    ("dr_grpo", "grpo", "args.loss_type", "grpo", "2503.20783 Eq. 3"),
    ("dr_grpo", "grpo", "args.scale_rewards", "group", "2503.20783 Eq. 3"),
    ("objectives", "deepseekmath", "args.beta", 0.04, "2402.03300 §4.2"),
    ("objectives", "dapo", "args.epsilon_high", 0.28, "2503.14476 §4.1"),
    ("objectives", "gspo", "args.epsilon", 3e-4, "2507.18071 §5.1"),
    ("objectives", "gspo", "args.epsilon_high", 4e-4, "2507.18071 §5.1"),
    ("objectives", "gspo", "args.loss_type", "grpo", "2507.18071 Eq. 5"),
    ("objectives", "dr-grpo", "args.scale_rewards", "none", "2503.20783 §3.2"),
    ("objectives", "rloo", "advantage", "leave_one_out", "2402.14740 §2"),
    ("objectives", "base-recipe", "prompts_per_rollout", 128, "2503.20783, script"),
    ("objectives", "base-recipe", "updates_per_rollout", 8, "2503.20783, script"),
    ("reward_design", "base-recipe", "rewards.format", 0.1, "guides"),
    ("reward_design", "base-recipe", "rewards.accuracy", 0.8, "guides"),
    ("reward_design", "base-recipe", "rewards.reasoning_style", 0.1, "guides"),
    ("reward_design", "outcome-only", "rewards.accuracy", 1.0, "2503.20783 §3.2"),
    ("reward_design", "base-recipe", "prompts_per_rollout", 128, "2503.20783, script"),
    ("reward_design", "base-recipe", "updates_per_rollout", 8, "2503.20783, script"),
    ("reward_design", "no-std", "args.scale_rewards", "none", "2503.20783 §3.2"),
]  # fmt: skip

STAGES = [
    *preference_facts.STAGES,
    *distillation_facts.STAGES,
    *r1_facts.STAGES,
    *reasoning_facts.STAGES,
    *setting_facts.STAGES,
]

PUBLISHED = [
    # recipe, what, value, source
    ("r1_zero", "AIME 2024 pass@1, before RL", 15.6, "2501.12948v1 §2.2.4"),
    ("spurious_rewards", "MATH-500 gain, Qwen2.5-Math-7B: random rewards", 21.4, "2506.10947, abstract"),
    ("spurious_rewards", "MATH-500 gain, Qwen2.5-Math-7B: true rewards", 29.1, "2506.10947, abstract"),
    ("deepseekmath", "MATH, DeepSeekMath-Instruct 7B", 46.82, "evaluation_results.json"),
    ("deepseekmath", "MATH, DeepSeekMath-RL 7B", 51.7, "2402.03300 Table 5"),
    ("deepseekmath", "GSM8K, DeepSeekMath-RL 7B", 88.25, "evaluation_results.json"),
    ("dapo", "AIME 2024 avg@32, naive GRPO", 30, "2503.14476 Table 1"),
    ("dapo", "+ overlong filtering", 36, "2503.14476 Table 1"),
    ("dapo", "+ clip-higher", 38, "2503.14476 Table 1"),
    ("dapo", "+ soft overlong punishment", 41, "2503.14476 Table 1"),
    ("dapo", "+ token-level loss", 42, "2503.14476 Table 1"),
    ("dapo", "+ dynamic sampling (DAPO)", 50, "2503.14476 Table 1"),
    ("dapo", "the authors' open re-run without token-level loss and dynamic sampling", 44, "verl, README"),
    ("dapo", "the authors' open re-run without dynamic sampling", 50, "verl, README"),
    ("dapo", "the authors' open re-run, all techniques", 52, "verl, README"),
    ("dapo", "AIME 2024, DeepSeek-R1-Zero-Qwen-32B", 47, "2503.14476 Table 1"),
    ("dr_grpo", "Oat-Zero-1.5B, average of five benchmarks", 42.1, "2503.20783 Table 4"),
    ("dr_grpo", "Oat-Zero-7B, average of five benchmarks", 51.4, "2503.20783 Table 4"),
    ("dr_grpo", "Qwen2.5-Math-7B without template, average", 38.2, "2503.20783 Table 1"),
    ("policy_gradient", "Mean reward of 5 before training", 2.333, "lecture 17, var/"),
    ("policy_gradient", "Mean reward of 5 at the end, raw rewards", 2.667, "lecture 17, var/"),
    ("policy_gradient", "Mean reward of 5 at the end, centered rewards", 3.333, "lecture 17, var/"),
    ("policy_gradient", "Mean reward of 5 at the end, normalized rewards", 3.333, "lecture 17, var/"),
    *preference_facts.PUBLISHED,
    *distillation_facts.PUBLISHED,
    *r1_facts.PUBLISHED,
    *reasoning_facts.PUBLISHED,
]
EVALUATIONS = [*setting_facts.EVALUATIONS, *reasoning_facts.EVALUATIONS]


@pytest.mark.parametrize(("recipe", "arm", "what", "value", "source"), FACTS)
def test_a_setting_is_the_papers(recipe, arm, what, value, source):
    derived = batches(recipe, arm)
    assert (derived[what] if what in derived else at(stage(recipe, arm), what)) == value, source


@pytest.mark.parametrize(
    ("recipe", "arm", "name", "what", "value", "source"),
    STAGES,
)
def test_a_setting_of_one_of_many_stages_is_the_papers(recipe, arm, name, what, value, source):
    derived = sizes(recipe, arm, name)
    assert (derived[what] if what in derived else at(stage(recipe, arm, name), what)) == value, source


@pytest.mark.parametrize(("recipe", "task", "fields", "source"), EVALUATIONS)
def test_an_evaluation_is_the_papers(recipe, task, fields, source):
    found = tasks(recipe)[task]
    assert {name: found[name] for name in fields} == fields, source


@pytest.mark.parametrize("recipe", [name for name in RECIPES if "paper" in RECIPES[name].scales])
def test_every_number_at_scale_paper_has_a_source_or_is_marked_as_ours(recipe):
    """A number is in these tables, or the comment on its line says `ours`, or that it is not reported."""
    table = [(row[0], "grpo", *row[2:4]) for row in FACTS]
    table += [(row[0], *row[2:5]) for row in STAGES]
    table += [(row[0], f"evals.{row[1]}", *field) for row in EVALUATIONS for field in row[2].items()]
    left = unsaid(recipe, table, setting_facts.OURS)
    assert not left, "\n".join(map(str, left))


def test_one_seed_at_scale_paper_unless_the_paper_had_more():
    counts = {
        name: len(recipe.selection("paper", report, None)[1])
        for name, recipe in RECIPES.items()
        if "paper" in recipe.scales
        for report in ("quickstart", "report")
    }
    assert counts.pop("tldr") == 4  # 2403.17031: 44413, 55513, 66613 and 77713
    assert {name for name, count in counts.items() if count != 1} <= {"r1", "distill"}


@pytest.mark.parametrize(("recipe", "what", "value", "source"), PUBLISHED)
def test_a_published_number_is_the_papers(recipe, what, value, source):
    found = [row.value for row in RECIPES[recipe].document.published if row.what == what]
    assert set(found) == {value}, source


def test_every_arm_measures_every_part_of_the_designed_reward():
    for scale in ("cpu", "paper"):
        for arm in RECIPES["reward_design"].arms(scale):
            weights = stage("reward_design", arm, scale=scale)["rewards"]
            assert set(weights) - {"lenient"} == {"format", "accuracy", "reasoning_style"}
            assert any(weights.values())


@pytest.mark.parametrize("recipe", TRAINED)
def test_groups_and_minibatches_are_whole(recipe):
    for arm in RECIPES[recipe].arms("paper"):
        found = batches(recipe, arm)
        assert all(value == int(value) for value in found.values()), found
        devices = GRAPH.resources(Node(recipe, "paper", arm, 0, "grpo", "stage")).gpu
        own = found["responses_per_rollout"] / devices
        if "dynamic_sampling" in stage(recipe, arm):
            assert own % stage(recipe, arm)["args"]["num_generations"] == 0


@pytest.mark.parametrize("recipe", TRAINED)
def test_what_the_ratio_is_claimed_to_do_has_updates_to_do_it(recipe):
    """Four updates a rollout or more at every scale: in the first the ratio is 1, so nothing is clipped."""
    document = RECIPES[recipe].document
    for claim in document.claims.values():
        gated = {document.gates[need.gate].metric for need in claim.needs}
        for side in claim.test.sides if "max/ratio_deviation" in gated else ():
            for scale in claim.scales or document.scales:
                arm = side.place.split("/")[0]
                of_rollout, of_step = RECIPES[recipe].stage(scale, arm, "grpo").lengths
                assert of_rollout >= 4 * of_step


@pytest.mark.parametrize("recipe", TRAINED)
def test_a_warm_up_of_the_paper_takes_place(recipe):
    """transformers' schedule `constant` takes no notice of warmup_steps."""
    for arm in RECIPES[recipe].arms("paper"):
        args = stage(recipe, arm)["args"]
        assert not (args.get("warmup_steps") and args["lr_scheduler_type"] == "constant")


def test_the_difference_of_a_right_and_a_wrong_answer_against_the_overlong_penalty():
    """DAPO Eq. 7 and 13: right and wrong are 2 apart, the penalty is 1 at most."""
    rewards = stage("dapo")["rewards"]
    assert rewards["accuracy"] == 2 * rewards["soft_overlong"]


def test_ladder_of_dapos_table_changes_one_technique_a_step():
    ladder = RECIPES["dapo"].layers.content["ladder"]
    techniques = {
        "overlong filtering": lambda c: c["args"]["mask_truncated_completions"],
        "clip-higher": lambda c: c["args"]["epsilon_high"] > c["args"]["epsilon"],
        "soft overlong": lambda c: "soft_overlong_cache" in c,
        "token-level": lambda c: c["args"]["loss_type"] == "dapo",
        "dynamic sampling": lambda c: "dynamic_sampling" in c,
    }
    for scale in ("cpu", "paper"):
        for number, arm in enumerate(ladder):
            config = stage("dapo", arm, scale=scale)
            found = [name for name, has in techniques.items() if has(config)]
            assert found == list(techniques)[:number]
