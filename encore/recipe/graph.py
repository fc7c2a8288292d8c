"""The graph of recipes: its nodes, the needs of each node, and the arm that owns it.

A node is one training stage or one evaluated checkpoint, of one arm and seed. Its lineage is a hash of all
that affects its result. Nodes of several arms with the same lineage share one result, the first arm's.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from encore.errors import UserError
from encore.recipe import sensitivity
from encore.recipe.data_sets import of_model, pinned
from encore.recipe.eval_tasks import ROLES
from encore.recipe.evals import Evals, Evaluation
from encore.recipe.kinds.stage import Stage
from encore.recipe.machine import Elsewhere, Machine, Resources
from encore.recipe.recipe import Recipe
from encore.recipe.shared import Shared
from encore.recipe.strict_yaml import Content
from encore.recipe.task import WorldTask

# keys of a stage that its config leaves out: they concern the graph, the seed or the machine
NOT_CONFIG = ("needs", "seed", "resources", "vllm_gpus")


RUN = "results/{recipe}/{scale}/{arm}/seed{seed}"  # folder of one run: its stages and evaluations


@dataclass(frozen=True, order=True)
class Node:
    recipe: str
    scale: str
    arm: str
    seed: int
    name: str  # a stage, a checkpoint, or a model kept while a stage trains (Recipe.within)
    kind: str  # "stage" | "eval"

    @property
    def folder(self) -> str:
        return f"{RUN.format(**vars(self))}/{self.name if self.kind == 'stage' else 'evals'}"

    @property
    def sentinel(self) -> str:
        """The file whose presence says that the node is done."""
        return f"{self.folder}/{'metrics' if self.kind == 'stage' else self.name}.json"

    @property
    def without_seed(self) -> tuple[str, ...]:
        """The fields that the node shares with the same node of every other seed."""
        return self.recipe, self.scale, self.arm, self.name, self.kind

    def reference(self, text: str) -> tuple[str, str, str | None]:
        """Return (recipe, stage, arm or None) of a `needs` target such as `stage` or `recipe/stage@arm`."""
        place, _, arm = text.partition("@")
        recipe, _, stage = place.rpartition("/")
        return recipe or self.recipe, stage, arm or None


@dataclass(frozen=True)
class Graph:
    """The graph of these recipes, which must not change: derived values are computed once.

    `shared` says which stages the seeds of a record share; if it is None, the recipes say it. `acyclic` has
    the nodes for which checks.needs has shown that no cycle goes through them.
    """

    recipes: Mapping[str, Recipe]
    shared: Shared | None = None
    _lineages: dict[Node, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    _owners: dict[Node, Node] = field(default_factory=dict, init=False, repr=False, compare=False)
    _inputs: dict[Node, dict[str, Node]] = field(default_factory=dict, init=False, repr=False, compare=False)
    acyclic: set[Node] = field(default_factory=set, init=False, repr=False, compare=False)
    # by Node.without_seed, because all seeds have the same
    _configs: dict[tuple, Content] = field(default_factory=dict, init=False, repr=False, compare=False)
    _evaluations: dict[tuple, Evaluation] = field(default_factory=dict, init=False, repr=False, compare=False)

    def config(self, node: Node) -> Content:
        """Return the full config of a node: the stage without its needs, or a checkpoint's engine and tasks.

        `decontaminate` names the data sets to keep out, and files are pinned by their content. The config
        must not be changed, because all seeds share it.
        """
        key = node.without_seed
        if key not in self._configs:
            self._configs[key] = pinned(self._config(node))
        return self._configs[key]

    def _config(self, node: Node) -> Content:
        if node.kind == "stage":
            stage = self.recipes[node.recipe].layers.merged(node.scale, node.arm, "stages")[node.name]
            config = {"version": 1, "threads": 1} | {k: v for k, v in stage.items() if k not in NOT_CONFIG}
            if config.get("decontaminate"):
                data_sets = self._evals(node).data_sets
                config["decontaminate"] = {name: task.said for name, task in data_sets.items()}
            return config
        return self.evaluation(node).model_dump(mode="json", exclude_unset=True)

    def evaluation(self, node: Node) -> Evaluation:
        """Return the evaluation of a checkpoint, in the form that its job gets."""
        key = node.without_seed
        if key not in self._evaluations:
            evals, checkpoint = self._evals(node), self.measured(node)[0]
            self._evaluations[key] = evals.evaluation(node.name, checkpoint, self.is_base(node))
        return self._evaluations[key]

    def knows(self, node: Node) -> bool:
        """Return whether the recipes have the node: its scale, its arm, and its stage or evaluation."""
        recipe = self.recipes.get(node.recipe)
        if recipe is None or node.scale not in recipe.scales or node.arm not in recipe.arms(node.scale):
            return False
        if node.kind == "stage":
            return node.name in recipe.stages(node.scale, node.arm)
        evaluated = recipe.evaluations(node.scale, node.arm) + recipe.sensitivity(node.scale, node.arm)
        return node.name in evaluated

    def resources(self, node: Node) -> Resources:
        """Return the resources of a node; an evaluation without its own has one machine of its stage's."""
        if node.kind == "stage":
            return self.stage(node).resources
        stage = self.stage(self._checkpoint(node)[0])
        gpus = stage.resources.gpu // stage.training_nodes
        eval_resources = self._evals(node).resources.said
        return stage.resources.model_copy(update={"gpu": gpus, "nodes": 1} | eval_resources)

    def machine(self, node: Node) -> Machine:
        """Return the GPUs and machines that a node's `resources` ask for, and the GPUs of its vLLM server."""
        asked = self.resources(node)
        serving = self.stage(node).serving if node.kind == "stage" else 0
        return Machine(asked.gpu, serving, asked.nodes, asked.shard or "none")

    def lineage(self, node: Node) -> str:
        """Return 64 hex digits: a hash of the node's config and seed, and of its inputs' lineages."""
        if node not in self._lineages:
            identity = {
                "kind": node.kind,
                "seed": self._seed(node),
                "config": self.config(node),
                "model": of_model(model.model_dump() if (model := self.model_of(node)) else None),
                "inputs": {role: self.lineage(source) for role, source in self._sources(node).items()},
            }
            if step := self.measured(node)[1]:
                identity["step"] = step
            if node.kind == "eval" and self.drawn_tasks(node):
                identity["problems"] = "of the seed"  # in earlier versions they were the same for all seeds
            self._lineages[node] = sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        return self._lineages[node]

    def measured(self, node: Node) -> tuple[str, int | None]:
        """Return the checkpoint of an evaluation, and the step if it is measured while a stage trains."""
        if node.kind == "stage":
            return node.name, None
        within = self.recipes[node.recipe].within(node.scale, node.arm)
        return within.get(node.name, (node.name, None))

    def owner(self, node: Node) -> Node:
        """Return the node whose result serves for this node: the node of the first arm with the same lineage.

        A pinned stage, and the evaluation of its model on fixed problems, belong to the pinned seed.
        """
        if node not in self._owners:
            self._owners[node] = self._first_alike(node)
        return self._owners[node]

    def inputs(self, node: Node) -> dict[str, Node]:
        """Return role -> the owner of the node in this role.

        An evaluation has "model" (see maker) and the roles of `evals.models` by which its tasks score.
        """
        if node not in self._inputs:
            self._inputs[node] = {role: self.owner(source) for role, source in self._sources(node).items()}
        return self._inputs[node]

    def maker(self, evaluation: Node) -> Node | None:
        """Return the stage whose model an evaluation measures; None if no stage made it."""
        return self.inputs(evaluation).get("model")

    def model_of(self, node: Node) -> Elsewhere | None:
        """Return the model that a node takes from outside the recipe's stages, or None."""
        stage, role = (node, None) if node.kind == "stage" else self._checkpoint(node)
        if node.kind == "eval" and role is None:
            return None  # the stage's own product is not one of its inputs
        model = getattr(self.stage(stage), "model", None)
        return model if isinstance(model, Elsewhere) else None

    def is_base(self, node: Node) -> bool:
        """Return whether an evaluation's model was made by none of the recipe's own stages."""
        stage, role = self._checkpoint(node)
        needed = self.stage(stage).needs.get(role)
        return role is not None and (needed is None or node.reference(needed)[0] != node.recipe)

    def grid(self, recipe: str, scale: str, arms: list[str], seeds: list[int]) -> list[Node]:
        """Return the nodes of these arms and seeds, and all that they need, each once, upstream first."""
        return self.ragged(recipe, scale, dict.fromkeys(arms, seeds))

    def ragged(self, recipe: str, scale: str, seeds: Mapping[str, Iterable[int]]) -> list[Node]:
        """Return the nodes as `grid` does; `seeds` has the seeds of each arm."""
        spec = self.recipes[recipe]
        return self.with_upstream(
            self.owner(Node(recipe, scale, arm, seed, name, kind))
            for arm, seeds_of_arm in seeds.items()
            for seed in seeds_of_arm
            for kind, names in (
                ("stage", spec.stages(scale, arm)),
                ("eval", spec.evaluations(scale, arm)),
                ("eval", spec.sensitivity(scale, arm) if seed == spec.first_seed else []),
            )
            for name in names
        )

    def with_upstream(self, nodes: Iterable[Node]) -> list[Node]:
        """Return these nodes and all that they need, each once, each after the nodes that it needs."""
        ordered: dict[Node, None] = {}

        def visit(node: Node) -> None:
            if node not in ordered:
                for source in self.inputs(node).values():
                    visit(source)
                ordered[node] = None

        for node in nodes:
            visit(node)
        return list(ordered)

    def stage(self, node: Node) -> Stage:
        """Return the stage of a node, with the layers of its arm and scale merged."""
        return self.recipes[node.recipe].stage(node.scale, node.arm, node.name)

    def needs(self, node: Node) -> dict[str, Node]:
        """Return role -> the node that a stage names, with the stage's seed; another node may own it."""
        texts, seed = self.stage(node).needs, self._seed(node)
        return {role: replace(self.target(node, text), seed=seed) for role, text in texts.items()}

    def target(self, node: Node, text: str) -> Node:
        """Return the stage that `text` names; without @arm, in the node's arm or another recipe's first."""
        recipe, stage, arm = node.reference(text)
        arm = arm or (node.arm if recipe == node.recipe else self.recipes[recipe].arms(node.scale)[0])
        return Node(recipe, node.scale, arm, node.seed, stage, "stage")

    def _evals(self, node: Node) -> Evals:
        return self.recipes[node.recipe].evals(node.scale, node.arm)

    def _checkpoint(self, node: Node) -> tuple[Node, str | None]:
        """Return the stage of an evaluated checkpoint and, if the checkpoint is its input, the role."""
        checkpoint, _ = sensitivity.parts(self.measured(node)[0])
        stage, _, role = self._evals(node).checkpoints[checkpoint].partition(".")
        return replace(node, name=stage, kind="stage"), role or None

    def _sources(self, node: Node) -> dict[str, Node]:
        if node.kind == "stage":
            return self.needs(node)
        stage, role = self._checkpoint(node)
        model = self.needs(stage).get(role) if role else stage
        return ({"model": model} if model else {}) | self._judges(node)

    def _judges(self, node: Node) -> dict[str, Node]:
        """Return role -> the node of `evals.models` that scores tasks; another node may own it."""
        models = self._evals(node).models.by_role
        if not models:
            return {}
        tasks = self.config(node)["tasks"].values()
        used = {ROLES.get(score) for task in tasks for score in task.get("score", [])}
        return {role: self.target(node, text) for role, text in models.items() if role in used}

    def drawn_tasks(self, node: Node) -> frozenset[str]:
        """Return the tasks of an evaluation whose problems differ by seed, as a world's do."""
        if self.shared and self.shared.problems:
            return frozenset()
        tasks = self.evaluation(node).tasks.items()
        return frozenset(name for name, task in tasks if isinstance(task.task, WorldTask))

    def _pinned(self, stage: Node) -> int | None:
        """Return the seed that a stage is pinned to; None if it follows the run's seed."""
        return self.shared.stages.get((stage.recipe, stage.name)) if self.shared else self.stage(stage).seed

    def _seed(self, node: Node) -> int:
        """Return the seed with which a node is computed: its own seed, or the seed of a pinned stage.

        A pinned model that gets the same problems with every seed is evaluated once: with the seed of its
        stage, or with 0 for a model of the Hub or of a folder.
        """
        if node.kind == "stage":
            pinned = self._pinned(node)
            return node.seed if pinned is None else pinned
        if self.drawn_tasks(node):
            return node.seed
        unseeded = replace(node, seed=-1)  # no stage is pinned to -1, so -1 means the run's seed
        seeds = [self._seed(source) for source in self._sources(unseeded).values()]
        return node.seed if -1 in seeds else next(iter(seeds), 0)

    def _first_alike(self, node: Node) -> Node:
        recipe, seed = self.recipes[node.recipe], self._seed(node)
        for arm in recipe.arms(node.scale):
            names = (recipe.stages if node.kind == "stage" else recipe.evaluations)(node.scale, arm)
            candidate = replace(node, arm=arm, seed=seed)
            alike = node.name in names and self.lineage(candidate) == self.lineage(node)
            if arm == node.arm or alike:
                return candidate
        raise UserError(f"{recipe.files.file()}: arm {node.arm} does not exist at scale {node.scale}")
