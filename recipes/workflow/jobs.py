"""What the Snakefile's rules ask of a job's wildcards `w`: recipe, scale, arm, seed, stage or checkpoint."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from recipes.spec.graph import Graph, Node
from recipes.workflow import stale
from recipes.workflow.outputs import Report
from recipes.workflow.targets import Choice, at_scale

MINUTES = 120
MEMORY = 4000  # MB
MEMORY_OF_A_GPU = 64_000  # MB


@dataclass(frozen=True)
class Jobs:
    graph: Graph
    choice: Choice

    def nodes(self, requested: Iterable[Report | Node]) -> list[Node]:
        """The nodes requested or shown by a requested report, and all they need, upstream first."""
        nodes = []
        for one in requested:
            nodes += [one] if isinstance(one, Node) else self.grid(one)
        return self.graph.with_upstream(nodes)

    def judgements(self, requested: Iterable[Report | Node]) -> dict[Path, str]:
        """The table of each requested report -> the hash of what it is to be judged from."""
        return {one.table: self._judged(one) for one in requested if isinstance(one, Report)}

    def grid(self, report: Report) -> list[Node]:
        """The nodes that a report shows, and all they need."""
        recipe, scale = report.recipe, report.scale
        arms, seeds = self.graph.recipes[recipe].selection(scale, report.report, self.choice.seeds)
        return self.graph.grid(recipe, scale, arms, seeds)

    # of rules without a job of their own

    def page(self, recipe: str, report: str = "report") -> Path:
        return Report(recipe, self.choice.scale, report).page

    def targets(self) -> dict[str, list[Path]]:
        """Rule -> the pages it asks for: each recipe, and `everything`."""
        recipes = self.graph.recipes
        everything = [self.page(recipe) for recipe in at_scale(recipes, self.choice.scale)]
        return {recipe: [self.page(recipe)] for recipe in recipes} | {"everything": everything}

    # of the rules train and evaluate

    def node(self, w: Any) -> Node:
        kind, name = ("stage", w.stage) if "stage" in w.keys() else ("eval", w.checkpoint)  # noqa: SIM118
        return Node(w.recipe, w.scale, w.arm, int(w.seed), name, kind)

    def upstream(self, w: Any) -> dict[str, str | list[str]]:
        """role -> sentinel; and "stale", the marker by which a result that no longer holds is made again."""
        node = self.node(w)
        sources = {role: n.sentinel for role, n in stale.waits_for(self.graph, node).items()}
        return {**sources, "stale": stale.markers(node.sentinel)}

    def kind(self, w: Any) -> str:
        return self.graph.config(self.node(w))["run"]

    def config(self, w: Any) -> str:
        """One sorted JSON, for Snakemake compares the params of a job as a set."""
        node = self.node(w)
        config = self.graph.config(node)
        return json.dumps(config | ({"seed": node.seed} if node.kind == "eval" else {}), sort_keys=True)

    def inputs(self, w: Any) -> str:
        """The results that a stage needs, as options of its command."""
        return _options(self.graph.inputs(self.node(w)))

    def model(self, w: Any) -> str:
        """What an evaluation measures: a stage's metrics.json, or a model of the Hub or of a folder."""
        source = self.graph.inputs(self.node(w)).get("model")
        leaf = self.graph.model_of(self.node(w))
        return source.sentinel if source else "hub:" + json.dumps(leaf, sort_keys=True)

    def judges(self, w: Any) -> str:
        """The stages that an evaluation scores by, as options of its command."""
        inputs = self.graph.inputs(self.node(w))
        return _options({role: node for role, node in inputs.items() if role != "model"})

    def checkpoints(self, w: Any) -> str:
        """Folder of a stage's resumable state and its product, named by all that shapes them."""
        return f"{self.node(w).folder.removeprefix('results/')}/{self.lineage(w)[:12]}"

    def lineage(self, w: Any) -> str:
        return self.graph.lineage(self.node(w))

    def record(self, w: Any) -> str:
        """The file that notes the lineage once the job is done."""
        return str(stale.record(self.node(w).sentinel))

    def threads(self, w: Any) -> int:
        return self.graph.config(self.node(w)).get("threads", 1)

    def resources(self) -> dict[str, Callable[[Any], int]]:
        """What a job asks of the scheduler."""
        return {"gpu": self.gpus, "mem_mb": self.memory, "runtime": self.minutes}

    def gpus(self, w: Any) -> int:
        return self.graph.resources(self.node(w)).get("gpu", 0)

    def memory(self, w: Any) -> int:
        """MB of the host's memory. Weights pass through it in float32 before they are on a GPU."""
        resources = self.graph.resources(self.node(w))
        return resources.get("mem_mb", MEMORY + resources.get("gpu", 0) * MEMORY_OF_A_GPU)

    def minutes(self, w: Any) -> int:
        return self.graph.resources(self.node(w)).get("runtime", MINUTES)

    # of the rules analyse and report

    def members(self, w: Any) -> list[str]:
        """Sentinels of all that a report shows, and the marker by which a stale one is made again."""
        report = Report(w.recipe, w.scale, w.report)
        return [*(node.sentinel for node in self.grid(report)), *stale.markers(report.table)]

    def page_marker(self, w: Any) -> list[str]:
        """The marker by which a page is made again whose tables are gone."""
        return stale.markers(Report(w.recipe, w.scale, w.report).page)

    def seeds(self, w: Any) -> int:
        return len(self.graph.recipes[w.recipe].selection(w.scale, w.report, self.choice.seeds)[1])

    def judged(self, w: Any) -> str:
        return self._judged(Report(w.recipe, w.scale, w.report))

    def judged_record(self, w: Any) -> str:
        return str(stale.record(Report(w.recipe, w.scale, w.report).table))

    def _judged(self, report: Report) -> str:
        """A hash of what a report is made from: the recipe's text, and the lineages of what it shows."""
        lineages = [self.graph.lineage(node) for node in self.grid(report)]
        content = [self.graph.recipes[report.recipe].spec, lineages]
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _options(inputs: dict[str, Node]) -> str:
    return " ".join(f"--input {role}={node.sentinel}" for role, node in inputs.items())
