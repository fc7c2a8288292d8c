"""A synthetic run of preference learning on disk: artefacts whose laws are known.

Gold follows Gao's form of RL, gain(d) = d (ALPHA - BETA log d), the proxy a straight line; replies get longer
with d. What was drawn by best-of-n follows d (ALPHA - BETA d).
"""

import json
import math
import random
from pathlib import Path

import numpy as np
from toy_run import HOSTILE, STEPS, completion, load_all
from toy_run import stage as plain_stage

from analysis.numbers.run import Run
from analysis.preferences.replies import Replies
from encore.recipe.graph import Graph, Node

ARMS = ("base-recipe", "kl-none", "kl-strong", "few-labels", "dpo")
TASK = "heldout"
ALPHA, BETA = {"few-labels": 0.9}, {"few-labels": 0.75}  # of gold, by arm
ALPHA_ELSE, BETA_ELSE = 1.2, 0.7
BON = (1.1, 0.3)
PROXY = 1.1  # reward of the model a unit of d
START = 0.4  # gold of the initial policy
REACH = {"base-recipe": 3.0, "kl-none": 6.0, "kl-strong": 1.6, "few-labels": 4.5, "dpo": 2.2}  # d at the end
ITEMS, SAMPLES = 48, 8


def gold_gain(arm: str, d: float) -> float:
    return d * (ALPHA.get(arm, ALPHA_ELSE) - BETA.get(arm, BETA_ELSE) * math.log(d)) if d > 0 else 0.0


def make(root: Path, run: Run | None = None) -> Run:
    """Every artefact of the run under `root`, whose recipes are there already; and the run."""
    found = run or Run(Graph(load_all(root)), "toy_rlhf", "cpu", ARMS, (0, 1, 2), root)
    for node in found.all_nodes():
        (evaluation if node.kind == "eval" else stage)(found, node)
    return found


def stage(run: Run, node: Node) -> None:
    plain_stage(run, node)
    folder, rng = run.folder(node), random.Random(str(node))
    kind = run.graph.config(node)["run"]
    rows, metrics = [], {"loss": 0.1}
    if kind == "ppo":
        rows = ppo_curve(node.arm, rng)
        lines = [completion(rng, step, rng.random() < 0.8, 0) for step in STEPS]
        (folder / "completions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    elif kind == "dpo":
        rows = [(s, "rewards/accuracies", 0.5 + 0.004 * s) for s in STEPS]
        rows += [(s, "logps/chosen", -20 - 0.05 * s) for s in STEPS]
        rows += [(s, "logps/rejected", -21 - 0.1 * s) for s in STEPS]
    elif kind == "reward_model":
        metrics = reward_model(node.arm, rng)
        (folder / "calibration.csv").write_text(calibration(rng))
    elif kind == "label":
        metrics = {"agreement": 0.75 + rng.gauss(0, 0.01), "accuracy": 0.84 + rng.gauss(0, 0.01),
                   "pairs": 1400.0, "skipped/equal": 31.0, "skipped/empty": 0.0, "ties": 4.0}  # fmt: skip
    (folder / "curve.csv").write_text(
        "step,metric,value\n" + "".join(f"{s},{m},{v:.6f}\n" for s, m, v in rows)
    )
    found = json.loads(run.sentinel(node).read_text())
    run.sentinel(node).write_text(json.dumps(found | {"kind": kind, "metrics": metrics}))


def ppo_curve(arm: str, rng: random.Random, noise: float = 0.03) -> list[tuple[int, str, float]]:
    """60 rollouts, the first of them the initial policy's own."""
    rows = []
    for step in STEPS:
        d = REACH[arm] * (step - 1) / (len(STEPS) - 1)
        values = {
            "kl": d**2 + (rng.gauss(0, 0.02 * d) if d else 0.0),
            "rewards/gold/mean": START + gold_gain(arm, d) + rng.gauss(0, noise),
            "rewards/reward_model/mean": PROXY * d + rng.gauss(0, noise),
            "reward": PROXY * d,
            "accuracy": 0.8,
            "entropy": 0.3,
            "value_loss": 0.5 * math.exp(-step / 20) + 0.1,
            "explained_variance": 1 - math.exp(-step / 20),
        }
        rows += [(step, name, value) for name, value in values.items()]
    return rows


def reward_model(arm: str, rng: random.Random) -> dict[str, float]:
    worse = 0.08 if arm == "few-labels" else 0.0
    found = {"accuracy/train": 0.82, "accuracy/validation": 0.74 - worse, "accuracy/gap": 0.08 + worse,
             "accuracy/longer_is_worse": 0.61 - worse, "accuracy/longer_is_better": 0.83,
             "length/correlation": 0.35, "calibration/error": 0.04}  # fmt: skip
    for number in range(1, 5):
        found |= {
            f"accuracy/margin=q{number}": 0.5 + 0.11 * number - worse,
            f"margin/q{number}": 0.4 * number,
        }
    return {name: value + rng.gauss(0, 0.004) for name, value in found.items()}


def calibration(rng: random.Random) -> str:
    lines = ["bin_low,bin_high,predicted,observed,count"]
    for low in np.linspace(0.5, 0.95, 10):
        middle = low + 0.025
        observed = min(1.0, middle - 0.06 * (middle - 0.5) + rng.gauss(0, 0.01))
        lines.append(f"{low},{low + 0.05},{middle},{observed},{round(300 * (1.05 - low))}")
    return "\n".join(lines) + "\n"


def evaluation(run: Run, node: Node) -> None:
    if node.recipe != "toy_rlhf":
        return
    rng = np.random.default_rng([ord(c) for c in str(node)])
    d = {"base": 1.5, "sft": 0.0}.get(node.name, REACH.get(node.arm, 0.0))
    gain = -1.0 if node.name == "base" else gold_gain(node.arm, d)
    tasks, lines = {}, []
    for name, config in run.graph.config(node)["tasks"].items():
        accuracy = {"tax-sort": 0.9 - 0.05 * d, "tax-chain": 0.8 - 0.02 * d}.get(name, 0.8)
        values = {"accuracy": accuracy + rng.normal(0, 0.01), "format_rate": 1.0, "truncation_rate": 0.0,
                  "length": 12.0 + 2 * d, "pass@1": accuracy}  # fmt: skip
        if name == TASK:
            values |= {"gold": START + gain + rng.normal(0, 0.03), "win_rate": 1 / (1 + math.exp(-gain)),
                       "proxy": PROXY * d + rng.normal(0, 0.03),
                       "kl": d**2 + abs(rng.normal(0, 0.02))}  # fmt: skip
            for n in config["k"]:
                best = math.sqrt(math.log(n) - (n - 1) / n)
                values[f"gold/bon@{n}"] = values["gold"] + best * (BON[0] - BON[1] * best)
                values[f"proxy/bon@{n}"] = values["proxy"] + PROXY * best
            lines += samples(rng, d, gain)
        metrics = {m: {"value": v, "low": v - 0.05, "high": v + 0.05} for m, v in values.items()}
        tasks[name] = {"items": ITEMS, "samples": SAMPLES, "metrics": metrics}
    run.folder(node).mkdir(parents=True, exist_ok=True)
    run.sentinel(node).write_text(json.dumps({"checkpoint": node.name, "seed": node.seed, "tasks": tasks}))
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run.folder(node) / f"{node.name}.samples.jsonl").write_text(text)


def samples(rng: np.random.Generator, d: float, gain: float) -> list[dict]:
    """Rows of a policy's replies: items differ, gold is in quarters so that there are ties."""
    hardness = np.random.default_rng(7).normal(0, 0.5, ITEMS)
    rows = []
    for item in range(ITEMS):
        gold = np.round(4 * (START + gain + hardness[item] + rng.normal(0, 1, SAMPLES))) / 4
        tokens = np.round(12 + 2 * d + rng.normal(0, 2, SAMPLES)).astype(int)
        texts = [f"Sure! The answer is {item + 1}. Thanks!" + " well" * (t % 5) for t in tokens]
        if item == 0:
            texts[0] = HOSTILE
        rows.append(
            {
                "task": TASK, "item": item, "question": f"1+{item}", "answer": str(item + 1),
                "difficulty": 1 + item % 5, "completions": texts, "correct": (gold > 0).tolist(),
                "tokens": tokens.tolist(), "truncated": [False] * SAMPLES, "formatted": [True] * SAMPLES,
                "gold": gold.tolist(), "proxy": np.round(gold + 0.1 * tokens, 3).tolist(),
                "logratio": [d**2] * SAMPLES,
                "reference_gold": float(np.round(4 * (0.8 + hardness[item])) / 4),
            }
        )  # fmt: skip
    return rows


def scored(gold, tokens=None, proxy=None) -> Replies:
    """Replies to items 0, 1, … with these scores (items, samples); tokens are 0 unless given."""
    gold = np.asarray(gold, dtype=float)
    scores = {"gold": gold, "tokens": np.zeros_like(gold) if tokens is None else np.asarray(tokens, float)}
    items = tuple((item, f"{item}?") for item in range(len(gold)))
    return Replies(items, scores | ({} if proxy is None else {"proxy": np.asarray(proxy)}))


def rows_of(run: Run, arm: str, checkpoint: str, seed: int = 0) -> list[dict]:
    return list(run.samples(run.graph.owner(run.evaluation(arm, checkpoint, seed))))
