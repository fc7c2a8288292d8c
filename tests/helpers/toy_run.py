"""A synthetic run on disk: six arms x three seeds, plausible numbers, a few hostile completions.

`make(root, ...)` writes what stages and evaluations would write, at the places encore.recipe.graph names.
"""

import json
import math
import random
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from judged_claims import by_id

from analysis.numbers.run import Run
from analysis.page import figures
from encore.recipe.files import Files
from encore.recipe.graph import Graph, Node
from encore.recipe.layers import Layers
from encore.recipe.recipe import Recipe

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
SURROGATE = "half \ud800 pair"
HUGE = "7" * 1_000_000
ARMS = ("base-recipe", "format-only", "random", "no-format", "no-cot-base", "longer-cap")

# arm -> accuracy and length before, accuracy and length after
OUTCOMES = {
    "base-recipe": (0.19, 21, 0.80, 39),
    "format-only": (0.19, 21, 0.17, 9),
    "random": (0.19, 21, 0.20, 22),
    "no-format": (0.19, 21, 0.74, 36),
    "no-cot-base": (0.02, 7, 0.05, 8),
    "longer-cap": (0.19, 21, 0.82, 44),
}
STEPS = range(1, 61)
EDGES = [*(-(10.0 ** (p / 4)) for p in range(4, -25, -1)), *(10.0 ** (p / 4) for p in range(-24, 5))]


def ratios() -> str:
    """ratios.csv of normal log ratios: of tokens with standard deviation 0.1, of sequences 0.01."""
    lines = ["level,low,high,count"]
    for level, std in (("token", 0.1), ("sequence", 0.01)):
        below = [0.5 * math.erfc(-edge / std / math.sqrt(2)) for edge in EDGES]
        counts = [round(100_000 * (b - a)) for a, b in pairwise(below)]
        lines += [f"{level},{a!r},{b!r},{n}" for (a, b), n in zip(pairwise(EDGES), counts, strict=True)]
    return "\n".join(lines) + "\n"


def load_all(root: Path) -> dict[str, Recipe]:
    """The toy recipes, not validated: their dials need not follow those of the worlds."""
    paths = sorted((root / "recipes").glob("*.yaml"))
    specs = {path: yaml.load(path.read_text(), yaml.CSafeLoader) for path in paths}
    return {path.stem: Recipe(path.stem, Layers(spec), Files(path, spec)) for path, spec in specs.items()}


def changed(run: Run, **keys) -> Run:
    """The run with these keys of its recipe changed, or removed by None; `claims`: flat ones."""
    if "claims" in keys:
        keys["claims"] = by_id(keys["claims"])
    content = {key: value for key, value in (run.recipe.layers.content | keys).items() if value is not None}
    recipe = Recipe(run.name, Layers(content), run.recipe.files)
    return replace(run, graph=Graph({**run.graph.recipes, run.name: recipe}))


def draw_only(names: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let reports draw these figures alone."""
    draw_all = figures.draw_all

    def draw(run, plans, folder, *formats):
        return draw_all(run, (plan for plan in plans if plan.name in names), folder, *formats)

    monkeypatch.setattr(figures, "draw_all", draw)


def make(root: Path, arms: tuple[str, ...] = ARMS, seeds: tuple[int, ...] = (0, 1, 2)) -> Path:
    """Write both recipes and every artefact of the toy run under `root`."""
    shutil.copytree(Path(__file__).parents[1] / "analysis/recipes", root / "recipes")
    run = Run(Graph(load_all(root)), "toy_zero", "cpu", arms, seeds, root)
    for node in run.all_nodes():
        (evaluation if node.kind == "eval" else stage)(run, node)
    return root


def stage(run: Run, node: Node) -> None:
    rng = random.Random(str(node))
    folder = run.folder(node)
    folder.mkdir(parents=True, exist_ok=True)
    rows, completions = [], []
    for step in STEPS if node.name == "grpo" else range(10, 301, 10):
        done = 1 - math.exp(-step / 18)
        if node.name != "grpo":
            rows += [(step, "loss", 3 * math.exp(-step / 80) + 0.4)]
            continue
        before, short, after, long = OUTCOMES[node.arm]
        accuracy = min(1, max(0, before + (after - before) * done + rng.gauss(0, 0.025)))
        length = short + (long - short) * done + rng.gauss(0, 0.8)
        values = {
            "accuracy": accuracy,
            "reward": 1 + accuracy,
            "rewards/accuracy/mean": accuracy,
            "completions/mean_length": length,
            "length/correct": length - 3,
            "length/incorrect": length + 4 + 6 * done,
            "entropy": 0.2 * math.exp(-step / 25) + 0.04 + rng.gauss(0, 0.004),
            "kl": 0.08 * done + rng.random() * 0.01,
            "clip_ratio/region_mean": 0.003 * done + rng.random() * 0.001,
            "frac_reward_zero_std": 0.15 + 0.5 * done * after,
            "completions/clipped_ratio": 0.02,
            "clip_fraction": 0.0 if step == 1 else 0.01 * done + rng.random() * 0.001,
            "samples": 128.0 * step * (2 if node.arm == "longer-cap" else 1),
            "num_tokens": 10_000.0 * step,
        }
        rows += [(step, metric, value) for metric, value in values.items()]
        for index in range(4):
            correct = rng.random() < accuracy
            completions.append(completion(rng, step, correct, index))
    if (node.arm, node.seed, node.name) == ("base-recipe", 0, "grpo"):
        for index, text in enumerate((HOSTILE, SURROGATE, HUGE)):
            completions[-1 - index] |= {"completion": text}
    (folder / "curve.csv").write_text(
        "step,metric,value\n" + "".join(f"{s},{m},{v:.6f}\n" for s, m, v in rows)
    )
    if node.name == "grpo":
        (folder / "ratios.csv").write_text(ratios())
        logged = sorted({step for step, metric, _ in rows if metric == "samples"})
        times = "".join(f"{step},step_time,{2 + step / 100}\n" for step in logged)
        (folder / "timing.csv").write_text(f"step,metric,value\n{times}")
    (folder / "completions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in completions))
    weak = node.arm == "no-cot-base"
    checks = [
        {"check": "gold-answers", "ok": True, "value": 1.0, "limit": 1.0, "message": "", "severity": "error"},
        {
            "check": "zero-variance",
            "ok": not weak,
            "value": 0.95 if weak else 0.4,
            "limit": 0.8,
            "message": "most groups teach nothing" if weak else "",
            "severity": "warning",
        },
    ]
    final = {"loss": 0.01, "parameters": 500_000}
    metrics = {
        "kind": node.name,
        "config": {},
        "seed": node.seed,
        "inputs": {},
        "model": "m",
        "digest": "sha256:0",
        "files": {},
        "metrics": final,
        "health": checks,
    }
    run.sentinel(node).write_text(json.dumps(metrics, sort_keys=True))
    wall = 140.0 + rng.random()
    provenance = {
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "dirty": False,
        "started": "2026-11-21T02:00:00Z",
        "versions": {"torch": "2.13.0", "trl": "1.16.0"},
        "hardware": {"cpu": "Some CPU", "cores": 2},
        "wall_s": wall,
        "resumed": 0,
        "tokens": 600_000,
        "tokens_per_s": 600_000 / wall,
        "flops": 1.9e12,
        "flops_formula": "parameters x tokens x 6",
        "steps": 60,
    }
    (folder / "provenance.json").write_text(json.dumps(provenance))


def completion(rng: random.Random, step: int, correct: bool, index: int) -> dict:
    numbers = [rng.randint(1, 9) for _ in range(3 + index)]
    total = sum(numbers) + (0 if correct else 1)
    text = f"<think>{'+'.join(map(str, numbers))}={total}</think><answer>{total}</answer>"
    return {
        "step": step,
        "prompt": f"<user>{'+'.join(map(str, numbers))}<assistant>",
        "completion": text,
        "answer": str(sum(numbers)),
        "difficulty": 3 + index,
        "tokens": len(text),
        "eos": True,
        "reward": 1.0 + correct,
        "rewards": {"accuracy": float(correct), "format": 1.0},
        "advantage": 0.5 if correct else -0.5,
    }


def evaluation(run: Run, node: Node) -> None:
    rng = random.Random(str(node))
    before, short, after, long = OUTCOMES[node.arm]
    accuracy, length = (before, short) if node.name == "before" else (after, long)
    if node.name == "after":
        accuracy, length = min(1, max(0, accuracy + rng.gauss(0, 0.02))), length + rng.gauss(0, 1.5)
    tasks, samples = {}, []
    for name, config in run.graph.config(node)["tasks"].items():
        level = accuracy if name == "heldout" else accuracy * 0.6
        spread = 0.9 if node.name == "before" else 0.45
        values = {
            "accuracy": level,
            "format_rate": 0.38 if node.name == "before" else 0.99,
            "truncation_rate": 0.02,
            "length": length,
            "length_correct": length - 3,
            "length_incorrect": length + 6,
        }
        for k in config["k"]:
            values[f"pass@{k}"] = 1 - (1 - level) ** (k**spread)
            values[f"maj@{k}"] = min(1, level * (1 + 0.1 * math.log2(k)))
        for difficulty in range(3, 9):
            values[f"accuracy/difficulty={difficulty}"] = max(0.0, level - 0.06 * (difficulty - 4))
            values[f"length/difficulty={difficulty}"] = length * (0.7 + 0.08 * (difficulty - 3))
        metrics = {m: {"value": v, "low": v * 0.94, "high": v * 1.05} for m, v in values.items()}
        if level < 0.03:
            metrics["length_correct"] = {"value": None, "low": None, "high": None}
        variance = {"items": level * (1 - level) / 64, "sampling": level * (1 - level) / 1024}
        tasks[name] = {"items": 64, "samples": 16, "metrics": metrics, "variance": variance}
        for item in range(8):
            item_rng = random.Random(item)
            rows = [completion(item_rng, 0, rng.random() < level, item % 6) for _ in range(4)]
            samples.append(
                {
                    "task": name,
                    "item": item,
                    "question": f"1+{item}",
                    "answer": str(1 + item),
                    "difficulty": 3 + item % 6,
                    "completions": [row["completion"] for row in rows],
                    "correct": [row["rewards"]["accuracy"] == 1 for row in rows],
                    "tokens": [row["tokens"] for row in rows],
                    "truncated": [False] * 4,
                    "formatted": [True] * 4,
                    "votes": [row["completion"] for row in rows],
                }
            )
    run.folder(node).mkdir(parents=True, exist_ok=True)
    found = {"checkpoint": node.name, "digest": "sha256:0", "seed": node.seed, "tasks": tasks}
    run.sentinel(node).write_text(json.dumps(found))
    lines = "".join(json.dumps(row) + "\n" for row in samples)
    (run.folder(node) / f"{node.name}.samples.jsonl").write_text(lines)
