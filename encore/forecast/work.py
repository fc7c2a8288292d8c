"""The jobs of a plan: a `Job` for each stage or evaluation in a recipe's graph."""

from dataclasses import replace

from encore.forecast.architecture import Model
from encore.forecast.hardware import Assumptions
from encore.forecast.job import Generation, Job
from encore.forecast.lengths import DTYPES, Prompts, asked_by, drawn, of_documents
from encore.forecast.rows import made, rows
from encore.forecast.training import Learning, training_of
from encore.recipe.args import Loading
from encore.recipe.graph import Graph, Node
from encore.recipe.kinds import (
    BanditStage,
    DistillationStage,
    GrpoStage,
    LabelStage,
    LabelStepsStage,
    PpoStage,
)
from encore.recipe.kinds.pairs import PairsStage
from encore.recipe.kinds.stage import Drawing

STEPS = 3  # length of the rollouts from all steps of a solution, in solutions: six steps, half each


def of_node(graph: Graph, node: Node, assumed: Assumptions, most: int | None = None) -> Job:
    """Return the job of a node of the graph, with as many GPUs as its recipe says.

    If `most`, the number of GPUs of the machine, is given, a stage that trains on several GPUs takes all of
    them, except its vLLM server's. Raises UserError for a model without a configuration, and if the GPUs
    cannot share a batch equally.
    """
    if node.kind == "eval":
        return _evaluation(graph, node, assumed)
    stage, machine = graph.stage(node), graph.machine(node)
    if isinstance(stage, BanditStage):
        return Job(node.name, stage.run, 0)
    asked, server = machine.training, machine.serving
    if most and asked + server > 1 and isinstance(stage, Learning):
        server = min(server, most // 2)
        asked = most - server
    policy = _policy_of(graph, node)
    total, unknown = rows(graph, node, assumed)
    job = Job(node.name, stage.run, asked, server=server, shard=machine.shard != "none", unknown=unknown)
    if isinstance(stage, Learning):
        return _training(graph, node, stage, replace(job, policy=policy), assumed)
    if isinstance(stage, LabelStage):
        return _labels(graph, node, stage, job, assumed)
    assert isinstance(stage, Drawing | LabelStepsStage)
    if stage.args is None:  # the labels come from a data set
        return replace(job, gpus=0)
    if isinstance(stage, LabelStepsStage):  # rollouts start from every step of every reply
        total *= made(graph, node, assumed)[1] * STEPS
    group, cap = stage.args.num_generations, stage.args.max_completion_length
    every = drawn(graph, node, asked_by(stage), stage, total * group, cap, assumed, group)
    return replace(job, gpus=min(job.gpus, every.width), policy=policy, generation=every)


def _policy_of(graph: Graph, node: Node | None) -> Model | None:
    """Return a stage's own `model` or, without one, the model of its input `policy`; None without either."""
    if node is None:
        return None
    model: Model | None = getattr(graph.stage(node), "model", None)
    return model or _policy_of(graph, graph.inputs(node).get("policy"))


def _members(graph: Graph, node: Node | None) -> tuple[Model, ...]:
    """Return the model that each member of a reward model starts from; () without a reward model."""
    model = _policy_of(graph, node) if node else None
    return (model,) * getattr(graph.stage(node), "members", 1) if node and model else ()


def _training(graph: Graph, node: Node, stage: Learning, job: Job, assumed: Assumptions) -> Job:
    """Return `job`, which has only its policy, with everything else that the training stage needs."""
    inputs = graph.inputs(node)
    training, generation = training_of(graph, node, stage, job, assumed)
    rewards = _members(graph, inputs.get("reward_model")) + _members(graph, inputs.get("safety_model"))
    beside = inputs.get("reference") or inputs.get("teacher")
    reference, critic, uncounted = _policy_of(graph, beside), None, list[str]()
    by_kl = isinstance(stage, PpoStage) or (isinstance(stage, GrpoStage) and bool(stage.args.beta))
    on_pairs = isinstance(stage, PairsStage) and stage.has_reference
    of_itself = isinstance(stage, DistillationStage) and bool(stage.hindsight)
    if on_pairs or of_itself or (by_kl and not training.lora):  # a LoRA policy is its own
        reference = reference or job.policy
    if isinstance(stage, PpoStage):
        start = stage.critic or ("reward_model" if "reward_model" in inputs else "policy")
        critic = rewards[0] if start == "reward_model" and rewards else job.policy
        uncounted += ["pretraining documents of ptx, not counted"] if stage.ptx else []
    kept = getattr(stage, "saved_dtype", None)
    return replace(
        job,
        unknown=(*job.unknown, *uncounted),
        generation=generation,
        training=training,
        reference=reference,
        critic=critic,
        rewards=rewards if generation else (),
        saved=(DTYPES[kept] if kept else training.bytes_a_weight) * getattr(stage, "members", 1),
        stretched=bool(of_documents(graph, node)) or _stretched(graph, node),  # a world's texts are short
    )


def _stretched(graph: Graph, node: Node) -> bool:
    """Return whether this stage, or an earlier stage of its policy, sets the model's number of positions."""
    options = getattr(getattr(graph.stage(node), "args", None), "model_init_kwargs", None) or Loading()
    source = graph.inputs(node).get("policy")
    return "max_position_embeddings" in (options.model_extra or {}) or bool(
        source and _stretched(graph, source)
    )


def _labels(graph: Graph, node: Node, stage: LabelStage, job: Job, assumed: Assumptions) -> Job:
    """Return the job of a stage that labels. If no model labels, the job costs nothing."""
    inputs, (inputs_rows, replies) = graph.inputs(node), made(graph, node, assumed)
    documents = of_documents(graph, node)
    shown = inputs_rows * (documents.prompt + documents.completion if documents else 2 * assumed.prompt)
    if stage.by == "language_model":
        asked = replies * (replies - 1) / 2 * (2 if stage.labeller.both_orders else 1)
        model = stage.labeller.model
        policy = model or _policy_of(graph, inputs["policy"])
        read = shown * asked
    elif stage.by in ("reward_model", "self"):
        source = inputs.get("reward_model") or inputs.get("policy")
        policy = _policy_of(graph, source)
        read = shown * replies * (2 if stage.by == "self" else len(_members(graph, source)))
    else:
        return replace(job, gpus=0)
    reading = Generation(0, 1, 1, 0, 0, "hf", read=read)
    return replace(job, gpus=min(job.gpus, 1), policy=policy, generation=reading)


def _evaluation(graph: Graph, node: Node, assumed: Assumptions) -> Job:
    evaluation, inputs = graph.evaluation(node), graph.inputs(node)
    leaf, source = graph.model_of(node), inputs.get("model")
    policy = _policy_of(graph, source) if source else leaf
    every, unknown, judges = [], [], []
    for name, task in evaluation.tasks.items():
        if task.items is None or task.max_gen_toks is None:
            unknown.append(f"task {name}, not counted")
            continue
        group = (task.samples or 1) if task.temperature else 1
        drawing = 2 if "forward_kl" in task.score else 1  # the reference draws as many as the policy
        completions = task.items * group * drawing
        asked = [Prompts(task.task, task.form.template)] if task.task else []
        every.append(drawn(graph, node, asked, evaluation, completions, task.max_gen_toks, assumed, group))
        if task.judge:  # each pair of replies is shown in both orders
            shown = every[-1].completions * 2 * (every[-1].prompt + 2 * every[-1].mean)
            judges.append((task.judge.model, shown))
    gpus = graph.machine(node).gpus
    if not every:
        return Job(node.name, "eval", 0, unknown=tuple(unknown))
    total = sum(generation.completions for generation in every)
    mean = sum(generation.completions * generation.mean for generation in every) / total
    longest = max(every, key=lambda generation: generation.cap)
    whole = replace(longest, completions=total, rollout=total, mean=min(mean, longest.cap))
    return Job(
        name=node.name,
        kind="eval",
        gpus=min(gpus, whole.width),
        policy=policy,
        generation=whole,
        reference=_policy_of(graph, inputs.get("reference")),
        rewards=_members(graph, inputs.get("proxy")),
        judges=tuple(judges),
        unknown=tuple(unknown),
    )
