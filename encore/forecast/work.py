"""The jobs of a plan: a `Job` for each stage or evaluation in a recipe's graph."""

from dataclasses import replace

from encore.forecast.hardware import Assumptions
from encore.forecast.job import Generation, Job, Training
from encore.forecast.lengths import DTYPES, SERVED, Prompts, asked_by, drawn, of_documents, prompts_a_row
from encore.forecast.model_size import Model
from encore.forecast.rows import made, rows
from encore.recipe.args import Loading, TrainingArgs
from encore.recipe.base import present
from encore.recipe.graph import Graph, Node
from encore.recipe.kinds import (
    BanditStage,
    DpoStage,
    GrpoStage,
    LabelStage,
    LabelStepsStage,
    PolicyGradientStage,
    PpoStage,
    PretrainStage,
    RewardModelStage,
)
from encore.recipe.kinds.rollout import RolloutStage
from encore.recipe.kinds.stage import Drawing
from encore.recipe.kinds.training import TrainingStage, TuningStage
from encore.recipe.machine import Engine

STEPS = 3  # length of the rollouts from all steps of a solution, in solutions: six steps, half each
POSITIONS = 1024  # max_length of TRL's trainers if a recipe does not set it
# bytes of the optimizer's state for a trained number, unless it is Adam's two moments in float32
OPTIMIZERS = {"sgd": 0.0, "rmsprop": 4.0, "adafactor": 0.1, "adamw_8bit": 2.0, "adamw_bnb_8bit": 2.0}
OPTIMIZERS |= {"paged_adamw_8bit": 2.0, "lion_32bit": 4.0}
Learning = TrainingStage | PolicyGradientStage


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
    learns = isinstance(stage, TrainingStage | PolicyGradientStage)
    if most and asked + server > 1 and learns:
        server = min(server, most // 2)
        asked = most - server
    policy = _policy_of(graph, node)
    total, unknown = rows(graph, node, assumed)
    job = Job(node.name, stage.run, asked, server=server, shard=machine.shard != "none", unknown=unknown)
    if isinstance(stage, TrainingStage | PolicyGradientStage):
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
    training, generation = _learning(graph, node, stage, job, assumed)
    rewards = _members(graph, inputs.get("reward_model")) + _members(graph, inputs.get("safety_model"))
    reference, critic, uncounted = _policy_of(graph, inputs.get("reference")), None, list[str]()
    by_kl = isinstance(stage, PpoStage) or (isinstance(stage, GrpoStage) and bool(stage.args.beta))
    if isinstance(stage, DpoStage) or (by_kl and not training.lora):  # a LoRA policy is its own
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


def _learning(
    graph: Graph, node: Node, stage: Learning, job: Job, assumed: Assumptions
) -> tuple[Training, Generation | None]:
    """Return the training of a stage, and the generation of its rollouts (None if it has no rollouts)."""
    processes = max(job.gpus, 1)
    size = stage.step_size(processes)
    generation, sequences, mean = None, float(size), 0.0
    if isinstance(stage, PolicyGradientStage):
        args, rows_at_once, lora = TrainingArgs(), float(size), None
    else:
        args, rows_at_once = stage.args, float(stage.portion(processes).rows)
        lora = stage.lora if isinstance(stage, TuningStage) else None
    if isinstance(stage, RolloutStage | PolicyGradientStage):
        generation, steps = _rollouts(graph, node, stage, size, job, assumed)
        share = prompts_a_row(stage, processes) if isinstance(stage, GrpoStage) else 1.0
        mean, longest = generation.prompt * share + generation.mean, generation.full
        computed = longest - (1 - share) * generation.longest_prompt
    else:
        sequences *= _copies(graph, node, stage, assumed)
        rows_at_once *= sequences / size
        steps = stage.steps or max(round(args.num_train_epochs * _examples(graph, node, assumed) / size), 1)
        longest = getattr(args, "max_length", None) or _positions(stage)
        documents = of_documents(graph, node)
        whole = documents.prompt + documents.completion if documents else longest * assumed.document
        mean, computed = min(whole, longest), longest
    bf16 = args.bf16 is not False if stage.run != "policy_gradient" else True  # None means TRL's own choice
    options = getattr(args, "model_init_kwargs", None) or Loading()
    weight = DTYPES.get(str((options.model_extra or {}).get("dtype", "float32")).removeprefix("torch."), 4)
    training = Training(
        steps=steps,
        batch=sequences,
        rows=max(round(rows_at_once), 1),
        mean=mean,
        longest=longest,
        computed=computed,
        # TRL's default is true; in stages it is false
        checkpointing="gradient_checkpointing" in args.model_fields_set and args.gradient_checkpointing,
        half=(job.gpus > 0 and (bf16 or args.fp16)) or weight == 2,
        bytes_a_weight=weight,
        optimizer=OPTIMIZERS.get(args.optim, 8.0) * weight / 4,
        lora=lora.rank if lora else None,
        nf4=bool(lora and lora.quantized),
        scored=_scored(stage) if generation else 0.0,
        synced=getattr(args, "sync_ref_model", False),
        padded=rows_at_once > 1 and generation is None,
    )
    return training, generation


def _stretched(graph: Graph, node: Node) -> bool:
    """Return whether this stage, or an earlier stage of its policy, sets the model's number of positions."""
    options = getattr(getattr(graph.stage(node), "args", None), "model_init_kwargs", None) or Loading()
    source = graph.inputs(node).get("policy")
    return "max_position_embeddings" in (options.model_extra or {}) or bool(
        source and _stretched(graph, source)
    )


def _rollouts(
    graph: Graph,
    node: Node,
    stage: RolloutStage | PolicyGradientStage,
    size: int,
    job: Job,
    assumed: Assumptions,
) -> tuple[Generation, int]:
    """Return the rollouts that a stage samples, and the number of its optimizer steps."""
    steps, caps = stage.steps, {0: stage.args.max_completion_length or POSITIONS}
    rounds, tool = 1.0, None
    if isinstance(stage, GrpoStage):
        rounds, tool = (assumed.rounds if stage.dynamic_sampling else 1.0), stage.tool
        caps = stage.caps_by_step or caps
    if isinstance(stage, PolicyGradientStage):
        uses, rollout = stage.args.inner_steps, size
    else:
        uses, rollout = stage.args.num_iterations, stage.completions(max(job.gpus, 1))
        if steps is None:
            prompts, _ = rows(graph, node, assumed)
            answered = prompts * (stage.args.num_generations or 1) * stage.args.num_train_epochs
            steps = max(round(answered * uses / size), 1)
    assert steps is not None
    ends = [*list(caps)[1:], steps]
    cap = sum(cap * (end - begin) for (begin, cap), end in zip(caps.items(), ends, strict=True)) / steps
    sampled = steps * size / uses * rounds
    lean = isinstance(stage, RolloutStage) and stage.sampler == "lean"
    group = present(stage.args.num_generations) if isinstance(stage, RolloutStage) else 1
    engine = Engine(backend="lean") if lean else Engine()
    every = drawn(graph, node, asked_by(stage), engine, sampled, round(cap), assumed, group)
    longest = max(caps.values()) + (tool.calls * tool.longest if tool else 0)  # results are beyond the cap
    every = replace(every, rollout=float(min(rollout * rounds, sampled)), longest=longest)
    if isinstance(stage, PolicyGradientStage) or not stage.args.use_vllm:
        by_half = not isinstance(stage, PolicyGradientStage) and stage.args.bf16
        return replace(every, engine="hf", bytes_a_weight=2 if by_half else 4), steps
    args, share = stage.args, stage.args.vllm_gpu_memory_utilization
    if args.vllm_mode == "server":
        share = share if "vllm_gpu_memory_utilization" in args.model_fields_set else SERVED
        ahead = isinstance(stage, GrpoStage) and bool(stage.max_staleness)
        return replace(every, engine="server", width=job.server or 1, share=share, ahead=ahead), steps
    width, sleeps = args.vllm_tensor_parallel_size, args.vllm_enable_sleep_mode
    return replace(every, engine="colocate", share=share, width=width, sleeps=sleeps), steps


def _copies(graph: Graph, node: Node, stage: TrainingStage, assumed: Assumptions) -> float:
    """Return the number of sequences in an example: 2 in a pair, 1 in a labelled text, or all of a group."""
    if not isinstance(stage, RewardModelStage) or stage.labels:
        return 2.0 if isinstance(stage, DpoStage) else 1.0
    grouped = stage.comparisons == "grouped"
    return float(made(graph, graph.inputs(node)["data"], assumed)[1]) if grouped else 2.0


def _examples(graph: Graph, node: Node, assumed: Assumptions) -> float:
    """Return the number of examples in an epoch: demonstrations, rankings, pairs or labelled replies."""
    stage, (total, _) = graph.stage(node), rows(graph, node, assumed)
    by_labels = isinstance(stage, RewardModelStage) and stage.labels
    shuffled = isinstance(stage, RewardModelStage) and stage.comparisons == "shuffled"
    if not by_labels and not shuffled and not (isinstance(stage, DpoStage) and stage.pairs == "all"):
        return total
    replies = made(graph, graph.inputs(node)["data"], assumed)[1]
    return total * (replies if by_labels else replies * (replies - 1) / 2)


def _positions(stage: TrainingStage) -> int:
    shape = stage.model if isinstance(stage, PretrainStage) else None
    return (shape.max_position_embeddings if shape else None) or POSITIONS


def _scored(stage: Learning) -> float:
    """Return the forward passes for old log-probabilities, per sequence and optimizer step."""
    if not isinstance(stage, RolloutStage):
        return 0.0
    several = stage.steps_a_rollout > 1 or isinstance(stage, PpoStage)
    ahead = isinstance(stage, GrpoStage) and stage.max_staleness  # if not corrected, the sampler's serve
    return (stage.args.vllm_importance_sampling_correction if ahead else several) / stage.args.num_iterations


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
        completions = task.items * ((task.samples or 1) if task.temperature else 1)
        asked = [Prompts(task.task, task.form.template)] if task.task else []
        group = round(completions / task.items)
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
