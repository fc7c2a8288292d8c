"""Which loss was really run: the objective of each arm's RL stage by its resolved config, and how exact."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from analysis import preference_objectives
from analysis.means import DASH
from analysis.table import Run
from recipes.objectives.loss_types import CLIPPED
from recipes.spec.graph import Node

RL = ("grpo", "policy_gradient", "ppo", "dpo")  # stage kinds
CONFORMANCE = "results/published/conformance.csv"
NORMALISERS = {  # loss_type -> what a loss is a mean of
    "grpo": "tokens of each completion, then completions",
    "dapo": "all tokens of a step",
    "bnpo": "all tokens of a micro-batch",
    "dr_grpo": "tokens summed and divided by the cap, then completions",
    "cispo": "all tokens of a step",
    "luspo": "completions, each times its length",
}
PLAIN = {  # advantage -> name in the conformance table, without a ratio
    "moving_average": "reinforce",
    "leave_one_out": "rloo",
    "positive": "online_rft",
    "raw": "raw",
    "best": "best",
}
ADVANTAGES = {
    "leave_one_out": "r - mean of the others",
    "moving_average": "r - mean of earlier r",
    "raw": "r",
    "best": "r where it is the largest, else 0",
    "positive": "1 if correct, else 0",
    "process": "steps to come, by the group",
    "centered": "r - group mean",
    "normalized": "r - group mean",
    "max": "r where it is the largest, else 0",
}


def name(config: Mapping[str, Any]) -> str:
    """The objective of a `grpo` stage's resolved config, as the conformance table calls it."""
    args, advantage, ratio = config["args"], config.get("advantage"), config.get("importance_ratio")
    loss = args.get("loss_type", "dapo")  # TRL's default
    if ratio == "none":
        return PLAIN.get(advantage or "", f"{advantage or loss}, no ratio")
    if ratio == "sequence_token":
        return "gspo-token"
    noise = "-noise" if config.get("old_logp_noise") else ""
    if args.get("importance_sampling_level") == "sequence":
        return "gspo" + noise
    if advantage == "process":
        return "grpo-process"
    if advantage:
        return f"{PLAIN[advantage]}-clipped"
    if loss == "dapo" and config.get("dynamic_sampling"):
        return "dapo-dynamic"
    if loss != "grpo":
        return loss
    kl = "-kl" if args.get("beta") else ""
    return "grpo" + (noise or kl or ("-overlong" if args.get("mask_truncated_completions") else ""))


def stages(run: Run, arm: str, seed: int) -> Iterator[Node]:
    """The owners of an arm's RL stages, upstream first."""
    for node in run.nodes(arm, seed):
        if node.kind == "stage" and run.graph.config(node)["run"] in RL:
            yield node


def _own(run: Run, arm: str) -> Iterator[Node]:
    """The arm's stages of this recipe."""
    return (n for n in run.nodes(arm, run.seeds[0]) if n.kind == "stage" and n.recipe == run.name)


def clip_range(run: Run, arm: str) -> tuple[float, float] | None:
    """The ratios at which the last RL stage of an arm clips, 0: never; None where nothing is clipped."""
    nodes = list(stages(run, arm, run.seeds[0]))
    return _clip(run.graph.config(nodes[-1])) if nodes else None


def _clip(config: Mapping[str, Any]) -> tuple[float, float] | None:
    args = config["args"]
    if config["run"] == "policy_gradient":
        bound = args.get("epsilon", 0.01)
        return (1 - bound, 1 + bound) if args["loss"] == "clipped" else None
    if config.get("importance_ratio") == "none":
        return None
    if config["run"] == "dpo":
        return None
    low, loss = args.get("epsilon", 0.2), args.get("loss_type", "dapo")
    high = args.get("epsilon_high", low)
    if loss == "cispo":
        return (0.0, high)  # the largest weight itself
    return (max(1 - low, 0.0), 1 + high) if loss in CLIPPED else None


def optimised(run: Run) -> pd.DataFrame:
    """One row an arm and RL stage, with what defines its loss; empty where no arm has such a stage."""
    rows: list[dict[str, str]] = []
    for arm in run.arms:
        nodes = list(stages(run, arm, run.seeds[0]))
        if not nodes:
            kinds = dict.fromkeys(run.graph.config(node)["run"] for node in _own(run, arm))
            rows.append({"arm": arm, "objective": ", ".join(kinds)})
        for node in nodes:
            config = run.graph.config(node)
            described = DESCRIBED[config["run"]](config)
            rows.append({"arm": arm + (f"/{run.label(node)}" if len(nodes) > 1 else "")} | described)
    if not any("ratio" in row for row in rows):
        return pd.DataFrame()
    frame = pd.DataFrame(rows).fillna(DASH)
    first = list(next(row for row in rows if "ratio" in row))  # the order of columns
    return frame[[column for column in first if column != "also" or (frame[column] != DASH).any()]]


def grouped(frame: pd.DataFrame) -> pd.DataFrame:
    """The same with one row for all arms that minimise one loss."""
    if not len(frame):
        return frame
    settings = [column for column in frame.columns if column != "arm"]
    return frame.groupby(settings, sort=False).arm.agg(", ".join).reset_index()[["arm", *settings]]


def _grpo(config: Mapping[str, Any]) -> dict[str, str]:
    args = config["args"]
    advantage = config.get("advantage")
    scaled = args.get("scale_rewards", "group")
    own = advantage not in (None, "process")
    size, accumulate = args.get("per_device_train_batch_size", 8), args.get("gradient_accumulation_steps", 1)
    slices = args.get("steps_per_generation") or args.get("generation_batch_size", size * accumulate) // size
    loss = args.get("loss_type", "dapo")
    return {
        "objective": name(config),
        "loss_type": loss,
        "mean over": NORMALISERS.get(loss, DASH),
        "advantage": ADVANTAGES.get(advantage or "centered", str(advantage)),
        "over std": "no" if own or str(scaled).lower() in ("none", "false") else str(scaled),
        "ratio": _ratio(config),
        "clip range": _range(_clip(config)),
        "KL": _kl(args),
        "updates per rollout": f"{slices * args.get('num_iterations', 1) / accumulate:g}",
        "group size": str(args.get("num_generations", 8)),
        "learning rate": f"{args.get('learning_rate', 1e-6):g}",
        "also": "; ".join(_also(config)) or DASH,
    }


def _ratio(config: Mapping[str, Any]) -> str:
    named = {"none": "none", "sequence_token": "sequence, gradient by token"}
    level = config["args"].get("importance_sampling_level", "token")
    return named.get(config.get("importance_ratio", ""), str(level))


def _range(clip: tuple[float, float] | None) -> str:
    return f"{clip[0]:.6g} {DASH} {clip[1]:.6g}" if clip else "none"


def _kl(args: Mapping[str, Any]) -> str:
    if not args.get("beta"):
        return "none"
    estimator = "k3 x ratio" if args.get("use_bias_correction_kl", True) else "k3"
    every = reference_every(args)
    return f"{args['beta']:g} {estimator}" + (f", new reference every {every} steps" if every else "")


def reference_every(args: Mapping[str, Any]) -> int | None:
    """After how many steps the policy becomes the reference; None if never within the run."""
    every, last = args.get("ref_model_sync_steps", 512), args.get("max_steps", -1)  # TRL's defaults
    return every if args.get("sync_ref_model") and not 0 < last <= every else None


def _also(config: Mapping[str, Any]) -> Iterator[str]:
    args = config["args"]
    if config.get("dynamic_sampling"):
        yield f"dynamic sampling, at most {config['dynamic_sampling']['max_rounds']} rounds"
    if args.get("mask_truncated_completions"):
        yield "cut completions masked"
    if config.get("soft_overlong_cache") and config["rewards"].get("soft_overlong"):
        yield f"soft overlong punishment in the last {config['soft_overlong_cache']} tokens"
    if config.get("old_logp_noise"):
        yield f"noise {config['old_logp_noise']:g} on old log-probabilities"
    if config.get("replay"):
        yield f"{config['replay']['share']:.0%} replay, iterations of {config['replay']['every']} steps"
    if args.get("entropy_coef"):
        yield f"entropy bonus {args['entropy_coef']:g}"
    if args.get("delta"):
        yield f"ratio at most {args['delta']:g}"


def _policy_gradient(config: Mapping[str, Any]) -> dict[str, str]:
    args = config["args"]
    kl = args.get("kl_coefficient")
    ratio = "none" if args["loss"] == "naive" else "log / log" if args.get("log_ratio") else "token"
    return {
        "objective": f"{args['loss']} {args['delta']}",
        "advantage": ADVANTAGES[args["delta"]],
        "over std": "group" if args["delta"] == "normalized" else "no",
        "ratio": ratio,
        "clip range": _range(_clip(config)),
        "KL": f"{kl:g} {args.get('kl_estimator', 'k3')}" if kl else "none",
        "updates per rollout": str(args["inner_steps"]),
        "group size": str(args["num_generations"]),
        "learning rate": f"{args['learning_rate']:g}",
    }


DESCRIBED = {
    "grpo": _grpo,
    "policy_gradient": _policy_gradient,
    "ppo": preference_objectives.ppo,
    "dpo": preference_objectives.dpo,
}


def conformance(run: Run) -> pd.DataFrame:
    """The rows of the conformance table for the objectives of the run's stages; empty without them."""
    path = run.root / CONFORMANCE
    names: set[str] = set()
    for arm in run.arms:
        for node in stages(run, arm, run.seeds[0]):
            config = run.graph.config(node)
            names.add(name(config) if config["run"] == "grpo" else config["run"])
    rows = _rows(path)
    return rows.loc[rows.objective.isin(names)].reset_index(drop=True)


def _rows(path: Path) -> pd.DataFrame:
    columns = ["objective", "property", "status", "size", "note"]
    if not path.exists():
        return pd.DataFrame(columns=columns)
    return pd.read_csv(path, dtype=str, keep_default_na=False).loc[:, columns]
