"""The inputs, params and resources of the Snakefile's rules, as functions of a job's wildcards `w`."""

import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from encore import validity
from encore.recipe.chosen import first_node
from encore.recipe.document import CHOSEN
from encore.recipe.graph import Graph, Node
from encore.recipe.looks import AUTO, LOOKS, Look, path
from encore.runtime import digests
from encore.workflow import looks, marks, resources, storage
from encore.workflow.choice import Choice, selection
from encore.workflow.outputs import Report
from encore.workflow.targets import at_scale


@dataclass(frozen=True)
class Jobs:
    graph: Graph
    choice: Choice
    checkpoints: Any = None  # Snakemake's checkpoints of the rule `look`
    store: storage.Store | None = None  # the bucket of results and checkpoints; None if jobs share a folder

    def nodes(self, requested: Iterable[Report | Node]) -> list[Node]:
        """Return the requested nodes and the nodes that requested reports show, with all upstream nodes."""
        nodes = []
        for asked in requested:
            if isinstance(asked, Report) and self.choice.part[1] > 1:
                nodes += self._part(asked)
            else:
                nodes += [asked] if isinstance(asked, Node) else self.grid(asked, self._looks(asked, False))
        return self.graph.with_upstream(nodes)

    def later(self, requested: Iterable[Report | Node]) -> list[Node]:
        """Return all nodes that later looks may ask for, with all upstream nodes."""
        nodes = []
        for report in requested:
            if isinstance(report, Report) and self.goes_by_looks(report):
                arms, seeds = self.graph.recipes[report.recipe].selection(
                    report.scale, report.report, LOOKS[-1]
                )
                nodes += self.graph.grid(report.recipe, report.scale, arms, seeds)
        return self.graph.with_upstream(nodes)

    def judgements(self, requested: Iterable[Report | Node]) -> dict[Path, str]:
        """Return file -> hash of what it is computed from, for the table and looks of requested reports."""
        reports = [
            request for request in requested if isinstance(request, Report) and self.choice.part[1] == 1
        ]
        hashes = {
            request.table: self._judged(request, self._looks(request, planned=False)) for request in reports
        }
        for request in filter(self.goes_by_looks, reports):
            hashes |= looks.judgements(self.graph, request.recipe, request.scale)
        return hashes

    def goes_by_looks(self, report: Report) -> bool:
        """Return whether looks decide the number of seeds of a report.

        They never do for a quickstart, whose few arms decide too little.
        """
        told = self.choice.auto and report.report == "report"
        return told and bool(self.graph.recipes[report.recipe].claims(report.scale))

    def grid(self, report: Report, taken: Sequence[Look] = ()) -> list[Node]:
        """Return the nodes that a report shows, or that its look after `taken` judges, and upstream nodes."""
        if self.goes_by_looks(report):
            return looks.nodes(self.graph, report.recipe, report.scale, taken)
        return self.graph.grid(report.recipe, report.scale, *self.selection(report))

    def selection(self, report: Report) -> tuple[list[str], list[int]]:
        """Return the arms and the seeds of a report whose seeds are not decided by looks."""
        return selection(self.graph.recipes[report.recipe], report.scale, report.report, self.choice)

    def _part(self, report: Report) -> list[Node]:
        """Return the nodes of a report's grid that belong to the chosen part, with all upstream nodes.

        A part has neighbouring seeds, each with all arms as far as possible, so that the nodes that several
        arms share, such as a base model, are seldom made twice. Each machine divides the grid in the same
        way.
        """
        number, of = self.choice.part
        recipe = self.graph.recipes[report.recipe]
        arms, seeds = recipe.selection(report.scale, report.report, self.choice.seeds)
        places = [(seed, arm) for seed in seeds for arm in arms]
        seeds_of: dict[str, list[int]] = {}
        for seed, arm in places[len(places) * (number - 1) // of : len(places) * number // of]:
            seeds_of.setdefault(arm, []).append(seed)
        return self.graph.ragged(report.recipe, report.scale, seeds_of)

    def _looks(self, report: Report, planned: bool) -> list[Look]:
        """Return the looks of a report that are taken; [] if looks do not decide its seeds.

        If `planned`, they are the looks that Snakemake has planned (see looks.ask), else the valid looks on
        disk.
        """
        if not self.goes_by_looks(report):
            return []
        if planned:
            return looks.ask(self.checkpoints, report.recipe, report.scale)
        return looks.holding(self.graph, report.recipe, report.scale)

    def _judged(self, report: Report, taken: Sequence[Look]) -> str:
        """Return the hash of what a report is computed from after the looks `taken`."""
        if self.goes_by_looks(report):
            return looks.judged(self.graph, report.recipe, report.scale, taken)
        return validity.judged(self.graph, report.recipe, self.grid(report))

    # rules without their own job

    def page(self, recipe: str) -> Path:
        """Return the page of a recipe that this run will make."""
        return Report(recipe, self.choice.scale, self.choice.report).page

    def first_page(self, quickstart: str) -> Path:
        """Return the page if no target is named: of the quickstart, or of chosen arms, claims or seeds."""
        report = CHOSEN if self.choice.report == CHOSEN else "quickstart"
        return Report(self.choice.recipe or quickstart, self.choice.scale, report).page

    def targets(self) -> dict[str, Any]:
        """Return rule -> its inputs, for the rule of each recipe and for `everything`.

        The inputs are the pages of the recipes or, for a part of the grid, the results of its nodes.
        """
        recipes, scale = self.graph.recipes, self.choice.scale
        asked = {recipe: [recipe] for recipe in recipes} | {"everything": at_scale(recipes, scale)}
        if self.choice.part[1] == 1:
            return {target: [self.page(name) for name in names] for target, names in asked.items()}

        def of_part(names: Sequence[str], w: Any) -> list[str]:
            return [node.sentinel for node in self.nodes(Report(name, scale, "report") for name in names)]

        return {target: partial(of_part, names) for target, names in asked.items()}

    # the rules train and evaluate

    def upstream(self, w: Any) -> dict[str, str | list[str]]:
        """Return role -> sentinel of a node's input, and "stale" -> the marker if the result is invalid."""
        node = _node(w)
        sources = {role: source.sentinel for role, source in marks.waits_for(self.graph, node).items()}
        return {**sources, "stale": marks.markers(node.sentinel)}

    def config(self, w: Any) -> str:
        """Return the config as sorted JSON text, because Snakemake compares the params of a job as a set."""
        node = _node(w)
        config = self.graph.config(node)
        return json.dumps(config | ({"seed": node.seed} if node.kind == "eval" else {}), sort_keys=True)

    def model(self, w: Any) -> str:
        """Return the model to be evaluated: a stage's metrics.json, or `hub:` and JSON for another model."""
        source = self.graph.maker(_node(w))
        leaf = self.graph.model_of(_node(w))
        return source.sentinel if source else "hub:" + json.dumps(leaf and leaf.model_dump(), sort_keys=True)

    def judges(self, w: Any) -> str:
        """Return command-line options of an evaluation: the step to measure, and the models that score."""
        node = _node(w)
        step, inputs = self.graph.measured(node)[1], self.graph.inputs(node)
        scored_by = _options({role: source for role, source in inputs.items() if role != "model"})
        return f"--step {step} {scored_by}".rstrip() if step else scored_by

    def threads(self, w: Any) -> int:
        """Return the recipe's number of threads, whatever --cores says, because it changes the results."""
        return self.graph.stage(_node(w)).threads

    def of_training(self) -> dict[str, Callable[..., Any]]:
        """Return the params of the rule `train`."""
        return {
            "kind": lambda w: self.graph.stage(_node(w)).run,
            "config": self.config,
            "inputs": lambda w: _options(self.graph.inputs(_node(w))),
            **self._made_from(),
            # resumable state is no output, because Snakemake deletes outputs before a job
            "checkpoints": lambda w: storage.state_of(self.graph, _node(w)),
            "threads": self.threads,
            "carried": lambda w, input=(): storage.around(self.store, self.graph, _node(w)),
        }

    def of_evaluation(self) -> dict[str, Callable[..., Any]]:
        """Return the params of the rule `evaluate`."""
        return {
            "config": self.config,
            "model": self.model,
            # Snakemake does not compare a function of `input` with the last run's; the lineage covers it
            "judges": lambda w, input: self.judges(w),
            **self._made_from(),
            "carried": lambda w, input=(): storage.around(self.store, self.graph, _node(w)),
        }

    def _made_from(self) -> dict[str, Callable[[Any], str]]:
        """Return params for the lineage of a node, and for the file into which the lineage is written."""
        return {
            "lineage": lambda w: self.graph.lineage(_node(w)),
            "record": lambda w: str(digests.record(_node(w).sentinel)),
        }

    def resources(self) -> dict[str, Callable[..., int | str | None]]:
        """Return the resources of the rules `train` and `evaluate`."""
        return resources.of_job(self.graph, _node) | {"track": lambda w: self.choice.track}

    # the rule preflight

    def resources_of_preflight(self) -> dict[str, Callable[[Any], int | str | None]]:
        """Return the resources of the rule `preflight`: the most that one of the tried jobs asks for."""

        def nodes() -> list[Node]:
            choice = self.choice
            first = first_node(self.graph, choice.recipe, choice.scale, choice.arm, choice.seeds)
            return self.graph.grid(first.recipe, first.scale, [first.arm], [first.seed])

        return resources.of_all(self.graph, nodes)

    # the rule look

    def looked_at(self, w: Any) -> list[str]:
        """Return the inputs of a look: the sentinels that it judges, the earlier looks, and a marker.

        The marker, if there is one, says that the look is stale. If the look does not exist, the marker is
        the report's. Otherwise Snakemake would not make the look if the report exists and was made from fixed
        seeds or from another look.
        """
        taken, file = looks.ask(self.checkpoints, w.recipe, w.scale, int(w.look)), _look(w)
        nodes = looks.nodes(self.graph, w.recipe, w.scale, taken)
        marked = file if file.exists() else Report(w.recipe, w.scale, "report").table
        return [*_files(nodes, taken, w), *marks.markers(marked)]

    def of_look(self) -> dict[str, Callable[[Any], str]]:
        """Return the params of the rule `look`."""

        def judged(w: Any) -> str:
            before = looks.ask(self.checkpoints, w.recipe, w.scale, int(w.look))
            return looks.judged(self.graph, w.recipe, w.scale, before)

        return {"of": self.named, "judged": judged, "record": lambda w: str(digests.record(_look(w)))}

    # the rule report

    def members(self, w: Any) -> list[str]:
        """Return the inputs of a report: the sentinels of its nodes, its looks, and its marker if stale."""
        report = _report(w)
        taken = self._looks(report, planned=True)
        markers = [*marks.markers(report.table), *marks.markers(report.page)]
        return [*_files(self.grid(report, taken), taken, w), *markers]

    def of_report(self) -> dict[str, Callable[..., Any]]:
        """Return the params of the rule `report`."""
        return {
            "of": self.named,
            "seeds": self.seeds,
            "judged": lambda w: self._judged(_report(w), self._looks(_report(w), planned=True)),
            "record": lambda w: str(digests.record(_report(w).table)),
            "carried": lambda w, input=(): storage.around_report(self.store, _report(w).table),
        }

    def named(self, w: Any) -> str:
        """Return the options that name the recipe and, for a report of chosen arms, the arms."""
        recipe = f"--recipe {shlex.quote(self.choice.named(w.recipe))}"
        if "report" not in w.keys() or w.report != CHOSEN:  # noqa: SIM118
            return recipe
        return f"{recipe} --arms {','.join(self.selection(_report(w))[0])}"

    def seeds(self, w: Any) -> int | str:
        """Return the seeds of a report: their number, a list such as `0,2,`, or `auto` if looks decide."""
        if self.goes_by_looks(_report(w)):
            return AUTO
        seeds = self.selection(_report(w))[1]
        return ",".join([*map(str, seeds), ""]) if isinstance(self.choice.seeds, tuple) else len(seeds)


def _node(w: Any) -> Node:
    """Return the node that a job's wildcards name."""
    if isinstance(w, Node):  # a rule without wildcards
        return w
    kind, name = ("stage", w.stage) if "stage" in w.keys() else ("eval", w.checkpoint)  # noqa: SIM118
    return Node(w.recipe, w.scale, w.arm, int(w.seed), name, kind)


def _report(w: Any) -> Report:
    return Report(w.recipe, w.scale, w.report)


def _look(w: Any) -> Path:
    return path(w.recipe, w.scale, int(w.look))


def _files(nodes: Iterable[Node], taken: Iterable[Look], w: Any) -> list[str]:
    """Return the sentinels of the nodes, and the files of the looks."""
    sentinels = [node.sentinel for node in nodes]
    return [*sentinels, *(str(path(w.recipe, w.scale, look.seeds)) for look in taken)]


def _options(inputs: dict[str, Node]) -> str:
    return " ".join(f"--input {role}={node.sentinel}" for role, node in inputs.items())
