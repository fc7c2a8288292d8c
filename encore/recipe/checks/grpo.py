"""Keys of a `grpo` stage that contradict each other; checked before any job starts, for no loss shows it."""

from collections.abc import Mapping
from typing import Any

from encore import own_code
from encore.errors import UserError
from encore.objectives.loss_types import check_window
from encore.recipe.batch import rollout, units
from encore.recipe.checks import caps, domains
from encore.recipe.data_sets import is_data_set

ACCURACY_ALONE = ("positive", "process")  # advantages that read no other reward than accuracy

# Arguments that change what completions are drawn from, or what draws them -> the value without effect.
PLAIN = {"use_vllm": False, "top_p": 1.0, "top_k": 0, "min_p": None, "repetition_penalty": 1.0}
PLAIN |= {"generation_kwargs": None, "use_transformers_continuous_batching": False}


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError at the first combination in a resolved `grpo` stage that makes no sense."""
    args, task = stage["args"], stage.get("task", {})
    domains.check_reward_model(stage)
    if "domains" in stage:
        domains.check_mixed(stage)
    if "caps" in stage:
        caps.check(stage)
    _check_aggregation(stage)
    _check_objective(stage)
    advantage, ratio = stage.get("advantage"), stage.get("importance_ratio")
    sequence = args.get("importance_sampling_level") == "sequence"
    if advantage in ACCURACY_ALONE:
        for name, weight in stage["rewards"].items():
            if name != "accuracy" and weight:
                raise UserError(
                    f"rewards.{name}: advantage {advantage} reads accuracy alone; give it weight 0"
                )
    if advantage == "process":
        if is_data_set(task):
            raise UserError(
                "advantage: process needs a step verifier, which a data set has not; take a world"
            )
        if sequence or args.get("loss_type") == "luspo":
            weight = "importance_sampling_level sequence" if sequence else "loss_type luspo"
            raise UserError(
                f"advantage: process gives each token its own, {weight} weighs whole sequences; "
                "importance_ratio sequence_token does both"
            )
    if advantage and args.get("multi_objective_aggregation") == "normalize_then_sum":
        raise UserError(
            f"advantage: {advantage} is of the summed rewards; normalize_then_sum would be ignored"
        )
    if ratio and sequence:
        raise UserError(
            f"importance_ratio: {ratio} is a level of its own; set importance_sampling_level to token"
        )
    if ratio == "none" and stage.get("old_logp_noise"):
        raise UserError(
            "old_logp_noise: without effect, for importance_ratio none has no old log-probabilities"
        )
    if args.get("loss_type") == "cispo":
        bound = args.get("epsilon_high", args.get("epsilon", 0.2))
        if bound <= 1:
            raise UserError(
                f"args.epsilon_high: {bound} would cut every ratio; for loss_type cispo it is the largest "
                "ratio itself, 1 + the paper's epsilon"
            )
    if lengths := rollout(stage):
        check_window(args.get("loss_type", "dapo"), lengths[1], lengths[0], units(stage))
    if stage.get("sampler") == "lean":
        check_lean(stage)
    _check_tool(stage)
    if args.get("sync_ref_model") and not args.get("beta"):
        raise UserError("args.sync_ref_model: with beta 0 there is no reference to replace; remove it")
    if "dynamic_sampling" in stage and is_data_set(task) and "verifier" not in task:
        raise UserError("dynamic_sampling: it reads accuracy, and the task has no verifier")
    if "replay" in stage:
        if "dynamic_sampling" in stage:
            raise UserError("replay: dynamic_sampling draws its own prompts; remove one of them")
        if args.get("shuffle_dataset"):
            raise UserError("args.shuffle_dataset: replay has an order of its own; remove it")
        if args.get("max_steps", -1) <= 0:
            raise UserError("args.max_steps: missing; replay plans all iterations beforehand")


def _check_objective(stage: Mapping[str, Any]) -> None:
    """Raise UserError where a stage's objective of its own is not there, or a key beside it says the same."""
    if "objective" not in stage:
        return
    name = stage["objective"]
    try:
        own_code.check(name)
    except UserError as error:
        raise UserError(f"objective: {error}") from None
    args = stage["args"]
    replaced = {key: stage[key] for key in ("importance_ratio",) if key in stage}
    replaced |= {f"args.{key}": args[key] for key in ("loss_type",) if args.get(key) is not None}
    for key, value in replaced.items():
        raise UserError(f"{key}: {value}, but the objective {name} stands in its place; remove one of them")


def _check_aggregation(stage: Mapping[str, Any]) -> None:
    """Raise UserError where the steps that a stage's reward is to be made of cannot be told."""
    if "aggregation" not in stage:
        return
    if "domains" in stage:
        raise UserError("aggregation: each of domains has other steps; remove it or domains")
    if domains.REWARD_MODEL not in stage["rewards"]:
        raise UserError("aggregation: rewards.reward_model is missing, whose scores it is of")
    for key in ("ensemble", "tool"):
        if key in stage:
            raise UserError(f"{key}: aggregation is of one model and a policy's own text; remove one of them")


def _check_tool(stage: Mapping[str, Any]) -> None:
    """Raise UserError where a stage's tool goes with none of its other keys."""
    if "tool" not in stage:
        if stage.get("learn_results"):
            raise UserError(
                "learn_results: without effect, for no tool gives results; name one, or remove it"
            )
        return
    if stage.get("advantage") == "process":
        raise UserError("tool: advantage process reads steps off a policy's own text; remove one of them")
    if stage.get("resources", {}).get("gpu", 1) > 1:
        raise UserError(
            "tool: its turns end at other times on each GPU, which wait for one another; take one"
        )


def check_lean(stage: Mapping[str, Any]) -> None:
    """Raise UserError at an argument that sampler lean would ignore, and at weights that it cannot read."""
    if stage.get("resources", {}).get("shard"):
        raise UserError(
            "sampler: lean reads whole weights, which resources.shard spreads; remove one of them"
        )
    args = stage["args"]
    for name, plain in PLAIN.items():
        if args.get(name, plain) not in (plain, None):
            raise UserError(f"args.{name}: {args[name]}, but sampler lean draws from the whole distribution")
