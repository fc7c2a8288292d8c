"""What the Snakefile's rules ask of a job's wildcards `w`: recipe, scale, arm, seed, stage or checkpoint."""

import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from encore import validity
from encore.recipe.graph import Graph, Node
from encore.recipe.looks import AUTO, LOOKS, Look, claims_at, path
from encore.recipe.recipe import CHOSEN
from encore.runtime import digests
from encore.workflow import looks, marks, resources
from encore.workflow.choice import Choice, selection
from encore.workflow.outputs import Report
from encore.workflow.targets import at_scale, first_node


@dataclass(frozen=True)
class Jobs:
    graph: Graph
    choice: Choice
    checkpoints: Any = None  # Snakemake's: of the rule `look`

    def nodes(self, requested: Iterable[Report | Node]) -> list[Node]:
        """The nodes requested or shown by a requested report, and all they need, upstream first."""
        nodes = []
        for one in requested:
            if isinstance(one, Report) and self.choice.part[1] > 1:
                nodes += self._part(one)
            else:
                nodes += [one] if isinstance(one, Node) else self.grid(one, self._holding(one))
        return self.graph.with_upstream(nodes)

    def later(self, requested: Iterable[Report | Node]) -> list[Node]:
        """All that looks may yet ask for, and all that is needed for it."""
        nodes = []
        for one in requested:
            if isinstance(one, Report) and self.goes_by_looks(one):
                arms, seeds = self.graph.recipes[one.recipe].selection(one.scale, one.report, LOOKS[-1])
                nodes += self.graph.grid(one.recipe, one.scale, arms, seeds)
        return self.graph.with_upstream(nodes)

    def judgements(self, requested: Iterable[Report | Node]) -> dict[Path, str]:
        """The table of each requested report, and its looks -> the hash of what it is to be judged from."""
        reports = [one for one in requested if isinstance(one, Report) and self.choice.part[1] == 1]
        hashes = {one.table: self._judged(one, self._holding(one)) for one in reports}
        for one in filter(self.goes_by_looks, reports):
            hashes |= looks.judgements(self.graph, one.recipe, one.scale)
        return hashes

    def goes_by_looks(self, report: Report) -> bool:
        """Whether looks say how many seeds an arm has: for the quickstart its few arms decide too little."""
        told = self.choice.auto and report.report == "report"
        return told and bool(claims_at(self.graph.recipes[report.recipe], report.scale))

    def grid(self, report: Report, taken: Sequence[Look] = ()) -> list[Node]:
        """The nodes that a report shows, and all they need; by looks, what is known after those taken."""
        recipe, scale = report.recipe, report.scale
        if self.goes_by_looks(report):
            return looks.nodes(self.graph, recipe, scale, taken)
        return self.graph.grid(recipe, scale, *self.selection(report))

    def selection(self, report: Report) -> tuple[list[str], list[int]]:
        """Arms and seeds of a report of fixed seeds."""
        return selection(self.graph.recipes[report.recipe], report.scale, report.report, self.choice)

    def _part(self, report: Report) -> list[Node]:
        """The nodes of a report's grid that are this part's, and all they need.

        A part has neighbouring seeds, each with all arms as far as it goes: what arms share, such as the
        model they start from, few parts make twice. It is the same on each machine, and so is its lineage.
        """
        which, of = self.choice.part
        recipe = self.graph.recipes[report.recipe]
        arms, seeds = recipe.selection(report.scale, report.report, self.choice.seeds)
        places = [(seed, arm) for seed in seeds for arm in arms]
        own: dict[str, list[int]] = {}
        for seed, arm in places[len(places) * (which - 1) // of : len(places) * which // of]:
            own.setdefault(arm, []).append(seed)
        return self.graph.ragged(report.recipe, report.scale, own)

    # of rules without a job of their own

    def page(self, recipe: str) -> Path:
        return Report(recipe, self.choice.scale, self.choice.report).page

    def first_page(self, quickstart: str) -> Path:
        """What is made where no target is named: a quickstart, or what is chosen of the recipe."""
        report = CHOSEN if self.choice.report == CHOSEN else "quickstart"
        return Report(self.choice.recipe or quickstart, self.choice.scale, report).page

    def targets(self) -> dict[str, Any]:
        """Rule -> what it asks for: each recipe, and `everything`. Of a part of the grid: no page."""
        recipes, scale = self.graph.recipes, self.choice.scale
        asked = {recipe: [recipe] for recipe in recipes} | {"everything": at_scale(recipes, scale)}
        if self.choice.part[1] > 1:
            return {target: partial(self._made_of_part, names) for target, names in asked.items()}
        return {target: [self.page(name) for name in names] for target, names in asked.items()}

    def _made_of_part(self, recipes: Sequence[str], w: Any) -> list[str]:
        reports = [Report(recipe, self.choice.scale, "report") for recipe in recipes]
        return [node.sentinel for node in self.nodes(reports)]

    # of the rules train and evaluate

    def node(self, w: Any) -> Node:
        if isinstance(w, Node):  # of a rule without wildcards
            return w
        kind, name = ("stage", w.stage) if "stage" in w.keys() else ("eval", w.checkpoint)  # noqa: SIM118
        return Node(w.recipe, w.scale, w.arm, int(w.seed), name, kind)

    def upstream(self, w: Any) -> dict[str, str | list[str]]:
        """role -> sentinel; and "stale", the marker by which a result that no longer holds is made again."""
        node = self.node(w)
        sources = {role: n.sentinel for role, n in marks.waits_for(self.graph, node).items()}
        return {**sources, "stale": marks.markers(node.sentinel)}

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
        """The step that an evaluation measures within a stage, and the stages it scores by, as options."""
        node = self.node(w)
        step, inputs = self.graph.measured(node)[1], self.graph.inputs(node)
        scored_by = _options({role: source for role, source in inputs.items() if role != "model"})
        return f"--step {step} {scored_by}".rstrip() if step else scored_by

    def checkpoint(self, w: Any) -> str:
        """Folder of a stage's resumable state and its product, named by all that shapes them."""
        return f"{self.node(w).folder.removeprefix('results/')}/{self.lineage(w)[:12]}"

    def lineage(self, w: Any) -> str:
        return self.graph.lineage(self.node(w))

    def record(self, w: Any) -> str:
        """The file that notes the lineage once the job is done."""
        return str(digests.record(self.node(w).sentinel))

    def of_training(self) -> dict[str, Callable[[Any], Any]]:
        """The parameters of the command that trains."""
        return {
            "kind": self.kind,
            "config": self.config,
            "inputs": self.inputs,
            "lineage": self.lineage,
            "record": self.record,
            # Resumable state is no output: Snakemake deletes outputs before a job.
            "checkpoints": self.checkpoint,
            # Bits depend on how many threads share a sum: the recipe's number, whatever --cores says.
            "threads": self.threads,
        }

    def of_evaluation(self) -> dict[str, Callable[..., Any]]:
        """The parameters of the command that evaluates."""
        return {
            "config": self.config,
            "model": self.model,
            # A function of `input` is not compared with that of the last run; the lineage says the same.
            "judges": lambda w, input: self.judges(w),
            "lineage": self.lineage,
            "record": self.record,
        }

    def threads(self, w: Any) -> int:
        return self.graph.config(self.node(w)).get("threads", 1)

    def resources(self) -> dict[str, Callable[..., int | str | None]]:
        """What a job of training or evaluation is run on."""
        tracked = {"track": lambda w: self.choice.track}
        return resources.of_job(self.graph, self.node) | tracked

    # of the rule plan

    def plan(self, w: Any) -> str:
        """What was asked for, as the planner's command line has it."""
        return shlex.join(f"{key}={value}" for key, value in self.choice.asked)

    # of the rule preflight

    def preflight(self, w: Any) -> str:
        """The options of the command that tries the run."""
        chosen = {name: getattr(self.choice, name) for name in ("recipe", "scale", "arm", "seeds")}
        chosen["recipe"] = self.choice.named(self.choice.recipe or "")
        return " ".join(f"--{name} {shlex.quote(str(value))}" for name, value in chosen.items() if value)

    def resources_of_preflight(self) -> dict[str, Callable[[Any], int | str | None]]:
        """What the command that tries the run is run on: the most that one of its jobs asks for."""

        def nodes() -> list[Node]:
            first = first_node(self.graph, self.choice)
            return self.graph.grid(first.recipe, first.scale, [first.arm], [first.seed])

        return resources.of_all(self.graph, nodes)

    # of the rule look

    def looked_at(self, w: Any) -> list[str]:
        """Sentinels of all that a look judges, the looks before it, and the marker of a stale one.

        Of a look that is not there the report's marker: where the report is there, made from fixed seeds or
        from another look, Snakemake would not miss the look.
        """
        taken, file = self._before(w), _look(w)
        nodes = looks.nodes(self.graph, w.recipe, w.scale, taken)
        marked = file if file.exists() else Report(w.recipe, w.scale, "report").table
        return [*_files(nodes, taken, w), *marks.markers(marked)]

    def of_look(self) -> dict[str, Callable[[Any], str]]:
        """The parameters of the command that looks."""
        return {
            "of": self.named,
            "judged": self._look_judged,
            "record": lambda w: str(digests.record(_look(w))),
        }

    def _look_judged(self, w: Any) -> str:
        return looks.judged(self.graph, w.recipe, w.scale, self._before(w))

    def _before(self, w: Any) -> list[Look]:
        return looks.ask(self.checkpoints, w.recipe, w.scale, int(w.look))

    # of the rules analyse and report

    def members(self, w: Any) -> list[str]:
        """Sentinels of all that a report shows, its looks, and the marker of a stale one."""
        report = Report(w.recipe, w.scale, w.report)
        taken = self._taken(report)
        return [*_files(self.grid(report, taken), taken, w), *marks.markers(report.table)]

    def page_marker(self, w: Any) -> list[str]:
        """The marker by which a page is made again whose tables are gone."""
        return marks.markers(Report(w.recipe, w.scale, w.report).page)

    def of_analysis(self) -> dict[str, Callable[[Any], Any]]:
        """The parameters of the command that analyses."""
        return {"judged": self.judged, "record": self.judged_record, **self.of_page()}

    def of_page(self) -> dict[str, Callable[[Any], Any]]:
        """The parameters of the command that writes a page: which recipe, arms and seeds it is of."""
        return {"of": self.named, "seeds": self.seeds}

    def named(self, w: Any) -> str:
        """Options that name the recipe and, of a report of chosen arms, these."""
        recipe = f"--recipe {shlex.quote(self.choice.named(w.recipe))}"
        if "report" not in w.keys() or w.report != CHOSEN:  # noqa: SIM118
            return recipe
        return f"{recipe} --arms {','.join(self.selection(Report(w.recipe, w.scale, w.report))[0])}"

    def seeds(self, w: Any) -> int | str:
        report = Report(w.recipe, w.scale, w.report)
        if self.goes_by_looks(report):
            return AUTO
        seeds = self.selection(report)[1]
        return ",".join([*map(str, seeds), ""]) if isinstance(self.choice.seeds, tuple) else len(seeds)

    def judged(self, w: Any) -> str:
        report = Report(w.recipe, w.scale, w.report)
        return self._judged(report, self._taken(report))

    def judged_record(self, w: Any) -> str:
        return str(digests.record(Report(w.recipe, w.scale, w.report).table))

    def _judged(self, report: Report, taken: Sequence[Look]) -> str:
        if self.goes_by_looks(report):
            return looks.judged(self.graph, report.recipe, report.scale, taken)
        return validity.judged(self.graph, report.recipe, self.grid(report))

    def _taken(self, report: Report) -> list[Look]:
        """All looks of a report, from Snakemake: see looks.ask."""
        by_looks = self.goes_by_looks(report)
        return looks.ask(self.checkpoints, report.recipe, report.scale) if by_looks else []

    def _holding(self, report: Report) -> list[Look]:
        """The looks of a report that are on disk and hold, before Snakemake plans anything."""
        by_looks = self.goes_by_looks(report)
        return looks.holding(self.graph, report.recipe, report.scale) if by_looks else []


def _look(w: Any) -> Path:
    return path(w.recipe, w.scale, int(w.look))


def _files(nodes: Iterable[Node], taken: Iterable[Look], w: Any) -> list[str]:
    """Sentinels of the nodes, and the files of the looks."""
    return [
        *(node.sentinel for node in nodes),
        *(str(path(w.recipe, w.scale, look.seeds)) for look in taken),
    ]


def _options(inputs: dict[str, Node]) -> str:
    return " ".join(f"--input {role}={node.sentinel}" for role, node in inputs.items())
