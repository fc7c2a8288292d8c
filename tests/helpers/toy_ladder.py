"""A synthetic run of a ladder of stages on disk: base, R1-Zero beside it, and R1 in four stages."""

import json
import random
from pathlib import Path

from toy_run import HOSTILE, STEPS, load_all
from toy_run import stage as plain_stage

from analysis.numbers.run import Run
from encore.recipe.graph import Graph, Node

ARMS, SEEDS = ("base-recipe", "zero"), (0, 1)
# step of the ladder -> accuracy, language consistency, readability, gold
LEVELS = {
    "base": (0.19, 0.48, 0.30, -0.6),
    "Zero": (0.78, 0.42, 0.35, -0.4),
    "Dev1": (0.58, 0.81, 0.80, 0.1),
    "Dev2": (0.74, 0.96, 0.84, 0.2),
    "Dev3": (0.77, 0.97, 0.90, 0.5),
    "R1": (0.80, 0.96, 0.91, 1.1),
}
OF_STAGE = {("base-recipe", "reason"): ("Dev1", "Dev2"), ("zero", "reason"): ("base", "Zero"),
            ("base-recipe", "all"): ("Dev3", "R1")}  # fmt: skip
OF_CHECKPOINT = {"base": "base", "dev1": "Dev1", "dev2": "Dev2", "dev3": "Dev3", "after": "R1"}
LENGTH = {"cold": 100, "reason": 60, "again": 200, "all": 40}  # updates
FUNNEL = {"sampled": 4000, "ended": 3600, "right": 2400, "language_consistency": 2100, "readability": 1800,
          "distinct": 1500, "kept": 1200}  # fmt: skip
WALL = {"pretrain": 100.0, "cold": 10.0, "reason": 60.0, "sift": 20.0, "again": 15.0, "all": 40.0}
ITEMS, DECISIVE = 8, 3  # the item on which half of the steps are right


def make(root: Path) -> Run:
    """Every artefact of the run under `root`, whose recipes are there already; and the run."""
    run = Run(Graph(load_all(root)), "toy_ladder", "cpu", ARMS, SEEDS, root)
    for node in run.all_nodes():
        (evaluation if node.kind == "eval" else stage)(run, node)
    return run


def stage(run: Run, node: Node) -> None:
    plain_stage(run, node)
    folder, rng = run.folder(node), random.Random(str(node))
    rows = [(step, "loss", 1.0) for step in range(10, LENGTH.get(node.name, 0) + 1, 10)]
    if ends := OF_STAGE.get((node.arm, node.name)):
        rows = curve(node, *(LEVELS[name] for name in ends), rng)
    text = "".join(f"{step},{metric},{value:.6f}\n" for step, metric, value in rows)
    (folder / "curve.csv").write_text("step,metric,value\n" + text)
    found = json.loads(run.sentinel(node).read_text())
    if node.name == "sift":
        counts = {f"funnel/{name}": float(n + 10 * node.seed) for name, n in FUNNEL.items()}
        shares = {f"funnel/{name}/problems": n / 5000 for name, n in FUNNEL.items()}
        found["metrics"] = counts | shares
    run.sentinel(node).write_text(json.dumps(found, sort_keys=True))
    record = json.loads((folder / "provenance.json").read_text())
    record |= {"wall_s": WALL[node.name] + node.seed, "tokens": 1000, "flops": 1e9}
    (folder / "provenance.json").write_text(json.dumps(record))


def curve(node: Node, before: tuple, after: tuple, rng: random.Random) -> list[tuple[int, str, float]]:
    """From one level to the next; of the last stage the rewards of two domains, apart."""
    rows = []
    last = LENGTH[node.name] if node.arm != "zero" else len(STEPS)
    for step in range(1, last + 1):
        accuracy, language, readability, gold = (
            a + (b - a) * step / last + rng.gauss(0, 0.01) for a, b in zip(before, after, strict=True)
        )
        values = {"accuracy": accuracy, "reward": accuracy + language}
        values |= {
            "rewards/accuracy/mean": accuracy,
            "rewards/language_consistency/mean": language,
            "rewards/readability/mean": readability,
        }
        if node.name == "all":
            values |= {"rewards/accuracy/sums/mean": accuracy, "rewards/reward_model/requests/mean": gold,
                       "rewards/language_consistency/sums/mean": language,
                       "rewards/language_consistency/requests/mean": language - 0.1,
                       "reward/sums": accuracy + language, "reward/requests": gold}  # fmt: skip
        rows += [(step, metric, value) for metric, value in values.items()]
    return rows


def evaluation(run: Run, node: Node) -> None:
    if node.recipe != "toy_ladder":
        return
    name = "Zero" if node.arm == "zero" else OF_CHECKPOINT[node.name]
    rng = random.Random(str(node))
    accuracy, language, readability, gold = (level + rng.gauss(0, 0.005) for level in LEVELS[name])
    tasks, lines = {}, []
    for task in run.graph.config(node)["tasks"]:
        values = {"accuracy": accuracy, "format_rate": 0.9, "length": 30.0, "pass@1": accuracy}
        if task == "heldout":
            values |= {"language_consistency": language, "readability": readability}
        else:
            values |= {"gold": gold, "win_rate": 0.5, "format_rate": 0.0}
        metrics = {m: {"value": v, "low": v - 0.05, "high": v + 0.05} for m, v in values.items()}
        tasks[task] = {"items": ITEMS, "samples": 4, "metrics": metrics}
        lines += [sample(task, item, name, gold) for item in range(ITEMS)]
    run.folder(node).mkdir(parents=True, exist_ok=True)
    run.sentinel(node).write_text(json.dumps({"checkpoint": node.name, "seed": node.seed, "tasks": tasks}))
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run.folder(node) / f"{node.name}.samples.jsonl").write_text(text)


def sample(task: str, item: int, name: str, gold: float) -> dict:
    """Of `heldout` the later half of the steps is right on item DECISIVE; on others all, or all but base."""
    late = list(LEVELS).index(name) >= len(LEVELS) // 2
    right = late if item == DECISIVE else (name != "base" or item % 2 == 0)
    text = f"<think>{item}+1={item + 1}</think> so {name} says {item + 1}"
    row = {
        "task": task, "item": item, "question": f"1+{item}", "answer": str(item + 1),
        "difficulty": 1 + item % 3,
        "completions": [HOSTILE if (item, name) == (DECISIVE, "Zero") else text, "other"] * 2,
        "correct": [right if task == "heldout" else True, True] * 2, "tokens": [len(text)] * 4,
        "truncated": [False] * 4, "formatted": [True] * 4,
    }  # fmt: skip
    if task == "requests":
        row |= {"gold": [gold * (1 + (item == 5)), 0.0] * 2, "reference_gold": 0.0}
    else:
        row |= {"language_consistency": [0.5 + 0.5 * late] * 4, "readability": [0.8] * 4}
    return row
