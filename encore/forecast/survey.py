"""The trial of one arm: each stage and evaluation is tried on what the stages before it have made."""

import json
import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from encore import validity, worlds
from encore.data import hub
from encore.errors import UserError, first_line
from encore.forecast import longest, probes, stand_ins, trial
from encore.forecast.findings import Cost, Finding, of_health
from encore.forecast.trial import Config, Made, Runner, Shortened
from encore.recipe.graph import Graph, Node
from encore.recipe.kinds import PolicyGradientStage
from encore.recipe.kinds.stage import Drawing, Stage
from encore.recipe.kinds.training import TrainingStage
from encore.recipe.machine import Elsewhere
from encore.recipe.task import WorldTask
from encore.runtime import health, sentinel

OF_ROWS = (
    "samples",
    "preferences",
    "demonstrations",
)  # products that are smaller if their stage is cut short
FULL = 0.9  # share of a memory; if more is used, one long prompt may end the run


@dataclass
class Survey:
    """The findings so far, and the products that the later stages continue from."""

    graph: Graph
    arm: Node  # any node of the tried arm
    nodes: Sequence[Node]  # the nodes of one seed, upstream first
    seeds: Mapping[tuple[str, ...], int]  # (recipe, arm, kind, name) -> how many seeds of the run have it
    folder: Path
    say: Callable[[str], None]
    run: Runner = trial.in_a_process
    findings: list[Finding] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    made: dict[Node, Path] = field(default_factory=dict)  # the metrics.json that stands for each stage
    # share of its data that a stage that was cut short has
    shares: dict[Node, float] = field(default_factory=dict)
    # hours of evaluations, by the shape of the evaluated model
    timed: dict[str, float] = field(default_factory=dict)

    def all(self) -> None:
        """Try every stage and evaluation.

        A failure is a finding; whatever needs the failed stage is left out.
        """
        for node in self.nodes:
            self.say(f"trying {self.label(node)}")
            with self.told(node):
                if lacking := [
                    source for source in self.graph.inputs(node).values() if source not in self.made
                ]:
                    names = ", ".join(self.label(source) for source in lacking)
                    self.add(node, "not tried", "warn", f"it needs {names}, which failed")
                elif node.kind == "eval":
                    self.evaluation(node)
                elif _is_done(self.graph, node):
                    self.made[node] = Path(node.sentinel)
                    self.add(node, "done", "ok", "its result is there, and is what later stages go on from")
                else:
                    self.stage(node)

    @contextmanager
    def told(self, node: Node) -> Iterator[None]:
        """Turn any error into a finding, so that the other stages are still tried."""
        try:
            yield
        except UserError as error:
            self.add(node, "runs", "FAIL", str(error))
        except Exception as error:
            traceback.print_exc()  # written to the log
            self.add(node, "runs", "FAIL", f"{type(error).__name__}: {first_line(error)}")

    def add(self, node: Node, check: str, status: str, message: str) -> None:
        self.findings.append(Finding(self.label(node), check, status, message))

    def label(self, node: Node) -> str:
        name = node.name if node.kind == "stage" else f"eval {node.name}"
        return name if node.recipe == self.arm.recipe else f"{node.recipe}/{name}"

    # -- a stage -----------------------------------------------------------------------------------------

    def stage(self, node: Node) -> None:
        """Try two steps of a stage, or a part of its work, then its longest rows; and estimate its cost."""
        config, sources = self.graph.config(node), self.graph.inputs(node).values()
        inputs = self.inputs(node)
        for check in probes.of_stage(config, inputs, node.seed):
            self.health(node, check)
        learning = [stage for node in self.nodes if (stage := _learning_from_rows(self.graph, node))]
        rows = trial.rows_needed(learning, max(1, self.graph.machine(node).training))
        share = min([self.shares[source] for source in sources if source in self.shares], default=1.0)
        short = trial.cut_stage(config, rows, problems(self.graph.stage(node)), share < 1)
        done = self.tried(node, short.config, inputs, "two-steps")
        if done.failure and not self.stand_in(node, done):
            self.add(node, "runs", "FAIL", done.failure)
            return
        if self.graph.stage(node).made in OF_ROWS:
            self.shares[node] = share * short.share
        cost = Cost(self.label(node), self.count(node), gpus=self.graph.machine(node).gpus)
        self.costs.append(cost)
        if config["run"] in trial.DRAWS:
            barely = self.tried(node, trial.barely(config), inputs, "barely")
            cost.hours = trial.whole_s(barely.wall_s, done.wall_s, short.share) / 3600
        if done.failure:
            return
        self.made[node] = done.out
        for check in done.content()["health"]:
            if check["check"] != "truncation" or config["run"] in trial.DRAWS:
                self.health(node, check)
        cut = [float(value) for _, name, value in done.curve() if name == "completions/clipped_ratio"]
        if cut:
            self.health(node, health.truncated(sum(cut) / len(cut)))
        cost.product_mib = done.product_mib / self.shares.get(node, 1.0)
        self.price(node, cost, done, share)

    def health(self, node: Node, check: health.Check) -> None:
        """Add a check of a stage, unless two steps say nothing about it."""
        finding = of_health(self.label(node), check, self.from_two_steps(node))
        self.findings += [finding] if finding else []

    def from_two_steps(self, node: Node) -> bool:
        """Return whether the input of the node was made in this trial."""
        return any(self.made[source] != Path(source.sentinel) for source in self.graph.inputs(node).values())

    def price(self, node: Node, cost: Cost, done: Made, share: float) -> None:
        """Fill in `cost` after a stage was tried, with the outcome `done`, and try its longest rows.

        `share` is the share of its data that the stage had.
        """
        stage, spent = self.graph.stage(node), done.content("provenance.json")
        cost.state_mib = spent.get("state_mib", 0.0)
        if not spent["steps"]:
            part = self.shares.get(node, 1.0)
            self.add(node, "runs", "ok", f"{part:.1%} of its work in {done.wall_s:.1f} s")
            cost.hours = cost.hours or spent["wall_s"] / part / 3600
            return
        self.add(node, "runs", "ok", f"{spent['steps']} steps in {spent['wall_s']:.1f} s")
        assert isinstance(stage, TrainingStage | PolicyGradientStage)  # no other kind has steps
        cost.steps = trial.steps(stage, spent.get("epochs", 0.0) * share)
        cost.step_s = _step_s(stage, spent)
        cost.hours = cost.steps * cost.step_s / 3600
        self.at_full_length(node, cost, spent)

    def at_full_length(self, node: Node, cost: Cost, spent: Mapping[str, Any]) -> None:
        """Try two steps on the longest rows, to check their memory and to set `cost.hours_at_most`."""
        config = self.graph.config(node)
        inputs = self.inputs(node)
        what = "its own rows"
        folder = self.place(node, "longest")[1]
        if full := longest.of_stage_kind(config, inputs, node.seed, folder):
            what = full.tokens
            cut = trial.cut_stage(full.config, 0, 0, from_cut=False)
            done = self.tried(node, cut.config, full.inputs, "longest")
            if done.failure:
                self.add(node, "memory", "FAIL", f"a step with {what}: {done.failure}")
                return
            spent = done.content("provenance.json")
            if cost.steps:
                cost.hours_at_most = cost.steps * _step_s(self.graph.stage(node), spent) / 3600
        self.add(node, "memory", *memory(spent, self.graph.resources(node).mem_mb, what))

    def tried(self, node: Node, config: Config, inputs: Mapping[str, Path], how: str) -> Made:
        """Run the stage's own command with this config, in a folder named after `how` the stage is tried."""
        return trial.run_stage(config, inputs, node.seed, self.machine(node), self.place(node, how), self.run)

    def stand_in(self, node: Node, failed: Made) -> bool:
        """Return whether a stage failed only because no reply was right after two steps.

        The policy's completions then stand in for the stage's product.
        """
        config, inputs = self.graph.config(node), self.inputs(node)
        if not (self.from_two_steps(node) and stand_ins.emptied(config["run"], failed.failure or "")):
            return False
        data = stand_ins.of_stage(config, inputs, failed.out.parent)
        if data:
            self.made[node] = data
        self.add(
            node, "runs", "warn", f"{failed.failure}; so far, after two steps: what was written stands in"
        )
        return True

    def inputs(self, node: Node) -> dict[str, Path]:
        """Return role -> the metrics.json of the stage in this role."""
        return {role: self.made[source] for role, source in self.graph.inputs(node).items()}

    # -- an evaluation -----------------------------------------------------------------------------------

    def evaluation(self, node: Node) -> None:
        config = self.graph.config(node) | {"seed": node.seed}
        short = trial.cut_evaluation(config)
        inputs = self.inputs(node)
        model = str(inputs.pop("model", _hub(self.graph.model_of(node))))
        gpus = self.graph.machine(node).gpus
        key = json.dumps([_shape(model), short.config, self.graph.resources(node).said], sort_keys=True)
        # if several checkpoints have the same shape, the first one shows how long it takes
        if key not in self.timed:
            barely, done = (
                trial.run_evaluation(cut, model, inputs, gpus, self.place(node, how), self.run)
                for cut, how in ((trial.barely(config), "barely"), (short.config, "few-items"))
            )
            if done.failure:
                self.add(node, "runs", "FAIL", done.failure)
                return
            self.timed[key] = trial.whole_s(barely.wall_s, done.wall_s, short.share) / 3600
            self.add(node, "runs", *_few(short, done))
        cost = Cost(self.label(node), self.count(node), gpus=gpus, hours=self.timed[key])
        self.costs.append(cost)

    def place(self, node: Node, how: str) -> tuple[str, Path]:
        """Return the name and the folder of a job."""
        name = f"{node.recipe}/{node.scale}/{node.arm}/{how}/{node.name}"
        return name, self.folder / f"{node.recipe}-{node.kind}-{node.name}" / how

    # -- the machine -------------------------------------------------------------------------------------

    def machine(self, node: Node) -> list[str]:
        """Return the options of a stage's command that describe the machine."""
        machine = self.graph.machine(node)
        gpus = ["--gpus", str(machine.gpus), "--vllm-gpus", str(machine.serving)]
        return [*gpus, "--nodes", str(machine.nodes), "--shard", machine.shard]

    def count(self, node: Node) -> int:
        return self.seeds[node.recipe, node.arm, node.kind, node.name]


def memory(spent: Mapping[str, Any], asked_mb: int | None, what: str) -> tuple[str, str]:
    """Return status and message of a check of a step's peak memory.

    `spent` is the provenance of the step, `asked_mb` the recipe's `resources.mem_mb`, and `what` names the
    rows of the step.
    """
    if "gpu_capacity_mib" in spent:
        used, capacity, of = spent["gpu_memory_mib"], spent["gpu_capacity_mib"], "the GPU"
    else:
        used = spent["memory_mib"]
        capacity = asked_mb or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
        of = "resources.mem_mb" if asked_mb else "this machine"
    message = f"{used:,} of {capacity:,} MiB of {of} at the peak, with {what}"
    if used <= FULL * capacity:
        return "ok", message
    return "warn", f"{message}; {trial.ROOM}"


def problems(stage: Stage) -> int:
    """Return how many problems a stage draws completions of; 0 if it draws none."""
    if not isinstance(stage, Drawing):
        return 0
    task = stage.questions
    return stage.problems or (worlds.PROBLEMS if isinstance(task, WorldTask) else len(hub.problems(task)))


def _shape(model: str) -> str:
    """Return a text that identifies a model's size: config.json of a stage's product, or a model's name."""
    if model.startswith("hub:"):
        return model
    folder, _ = sentinel.product(Path(model))
    return (folder / "config.json").read_text(encoding="utf-8")


def _learning_from_rows(graph: Graph, node: Node) -> TrainingStage | None:
    """Return a node's stage if it trains on rows that another stage has made; otherwise None."""
    stage = graph.stage(node) if node.kind == "stage" and "data" in graph.inputs(node) else None
    return stage if isinstance(stage, TrainingStage) else None


def _is_done(graph: Graph, node: Node) -> bool:
    """Return whether the run has made the stage, by the recipe as it is written now."""
    return Path(node.sentinel).exists() and validity.of_node(graph, node) is None


def _step_s(stage: Stage, spent: Mapping[str, Any]) -> float:
    """Return the mean seconds of a step, from the provenance of two steps."""
    if "step_s" in spent:
        return trial.seconds_a_step(stage, spent["first_step_s"], spent["step_s"])
    return spent["wall_s"] / max(spent["steps"], 1)


def _few(short: Shortened, done: Made) -> tuple[str, str]:
    message = f"{short.share:.1%} of its completions in {done.wall_s:.1f} s"
    if not short.unknown:
        return "ok", message
    return "warn", f"{message}; how many items {', '.join(short.unknown)} has is unknown: not in the hours"


def _hub(model: Elsewhere | None) -> str:
    """Return the name of a model that no stage has made, as the command of an evaluation takes it."""
    return "hub:" + json.dumps(model.said if model else None, sort_keys=True)
