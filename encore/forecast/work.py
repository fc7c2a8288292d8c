"""From the nodes of a recipe's graph to what a plan is made of: one `Job` a stage or evaluation."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from encore.forecast.hardware import Assumptions
from encore.forecast.job import Generation, Job, Training
from encore.forecast.lengths import DTYPES, SERVED, drawn, of_documents
from encore.forecast.model_size import Model, named
from encore.forecast.rows import made, rows
from encore.recipe import batch
from encore.recipe.caps import of_stage
from encore.recipe.graph import Graph, Node

COLOCATED = 0.3  # TRL's share of a GPU's memory for a vLLM engine beside the trainer
STEPS = 3  # whole solutions to which the roll-outs from all steps of one add up: six steps, half from each
EPOCHS = 3  # num_train_epochs of transformers
POSITIONS = 1024  # max_length of TRL's trainers where a recipe does not say
# bytes of the optimizer's state a number that is trained, where it is not Adam's two moments in float32
OPTIMIZERS = {"sgd": 0.0, "rmsprop": 4.0, "adafactor": 0.1, "adamw_8bit": 2.0, "adamw_bnb_8bit": 2.0}
OPTIMIZERS |= {"paged_adamw_8bit": 2.0, "lion_32bit": 4.0}
TRAINED = ("pretrain", "sft", "reward_model", "dpo", "grpo", "ppo", "policy_gradient")


def of_node(graph: Graph, node: Node, assumed: Assumptions, most: int | None = None) -> Job:
    """Return what a node of the graph takes, with as many GPUs as its recipe says.

    `most`: how many there are; a stage that is spread over several takes all, but those of its server.
    Raises UserError for a model without a configuration, and where a batch does not divide.
    """
    if node.kind == "eval":
        return _evaluation(graph, node, assumed)
    config = graph.config(node)
    kind, machine = config["run"], graph.machine(node)
    asked, server = machine.training, machine.serving
    if most and asked + server > 1 and kind in TRAINED:
        server = min(server, most // 2)
        asked = most - server
    policy = _policy_of(graph, node)
    given, unknown = rows(graph, node, assumed)
    job = Job(node.name, kind, asked, server=server, shard=machine.shard != "none", unknown=unknown)
    if kind in TRAINED:
        return _training(graph, node, config, replace(job, policy=policy), assumed)
    if kind == "label":
        return _labels(graph, node, config, job, assumed)
    if config.get("by") == "dataset":
        return replace(job, gpus=0)
    args = config["args"]
    if kind == "label_steps":  # from every step of every reply
        given *= made(graph, node, assumed)[1] * STEPS
    every = drawn(
        graph, node, config, given * args["num_generations"], args["max_completion_length"], assumed
    )
    return replace(job, gpus=min(job.gpus, every.width), policy=policy, generation=every)


def _policy_of(graph: Graph, node: Node) -> Model | None:
    """Return the model that a stage starts from, or that its product is; None if nothing names it."""
    model = getattr(graph.stage(node), "model", None)
    if model:
        return named(model.said)
    source = graph.inputs(node).get("policy")
    return _policy_of(graph, source) if source else None


def _members(graph: Graph, node: Node | None) -> tuple[Model, ...]:
    """Return the networks of a reward model."""
    model = _policy_of(graph, node) if node else None
    return (model,) * graph.config(node).get("members", 1) if node and model else ()


def _training(
    graph: Graph,
    node: Node,
    config: Mapping[str, Any],
    job: Job,
    assumed: Assumptions,
) -> Job:
    """Return the job of a stage that trains, which has a policy so far."""
    kind, inputs, args = config["run"], graph.inputs(node), config.get("args", {})
    training, generation = _learning(graph, node, config, job, assumed)
    rewards = _members(graph, inputs.get("reward_model"))
    reference, critic = None, None
    if kind in ("dpo", "ppo") or (kind == "grpo" and args.get("beta", 0.0) and not training.lora):
        reference = _policy_of(graph, inputs["reference"]) if "reference" in inputs else job.policy
    if kind == "ppo":
        start = config.get("critic") or ("reward_model" if rewards else "policy")
        critic = rewards[0] if start == "reward_model" and rewards else job.policy
    uncounted = ("pretraining documents of ptx, not counted",) if "ptx" in config else ()
    bytes_a_weight = DTYPES.get(config.get("saved_dtype", ""), training.bytes_a_weight)
    return replace(
        job,
        unknown=job.unknown + uncounted,
        generation=generation,
        training=training,
        reference=reference,
        critic=critic,
        rewards=rewards if generation else (),
        saved=bytes_a_weight * config.get("members", 1),
        stretched=bool(of_documents(graph, node)) or _stretched(graph, node),  # a world's texts are short
    )


def _learning(
    graph: Graph, node: Node, config: Mapping[str, Any], job: Job, assumed: Assumptions
) -> tuple[Training, Generation | None]:
    """Return the sequences that a stage learns from, and the rollouts that it samples; None if none."""
    args, kind, processes = config.get("args", {}), config["run"], max(job.gpus, 1)
    size, rows_at_once = batch.step_size(config, processes), float(batch.rows_at_once(config, processes))
    generation, sequences, mean = None, float(size), 0.0
    if kind in ("grpo", "ppo", "policy_gradient"):
        generation, steps = _rollouts(graph, node, config, size, job, assumed)
        mean, longest = generation.prompt + generation.mean, generation.full
    else:
        sequences *= _copies(graph, node, kind, assumed)
        rows_at_once *= sequences / size
        steps = batch.steps(config) or max(
            round(args.get("num_train_epochs", EPOCHS) * _examples(graph, node, assumed) / size), 1
        )
        longest = args.get("max_length") or _positions(config)
        documents = of_documents(graph, node)
        whole = documents.prompt + documents.completion if documents else longest * assumed.document
        mean = min(whole, longest)
    half = job.gpus > 0 and bool(args.get("bf16", kind != "pretrain") or args.get("fp16"))
    options, lora = args.get("model_init_kwargs") or {}, config.get("lora") or {}
    weight = DTYPES.get(str(options.get("dtype", "float32")).removeprefix("torch."), 4)
    training = Training(
        steps=steps,
        batch=sequences,
        rows=max(round(rows_at_once), 1),
        mean=mean,
        longest=longest,
        checkpointing=bool(args.get("gradient_checkpointing", False)),
        half=half or weight == 2,
        bytes_a_weight=weight,
        optimizer=OPTIMIZERS.get(str(args.get("optim", "adamw")), 8.0) * weight / 4,
        lora=lora.get("rank"),
        nf4=lora.get("quantized") == "nf4",
        scored=_scored(config, kind) if generation else 0.0,
        padded=rows_at_once > 1 or (generation is not None and processes > 1),
    )
    return training, generation


def _stretched(graph: Graph, node: Node) -> bool:
    """Whether the stage, or one that its policy comes from, sets how many positions the model has."""
    options = graph.config(node).get("args", {}).get("model_init_kwargs") or {}
    source = graph.inputs(node).get("policy")
    return "max_position_embeddings" in options or bool(source and _stretched(graph, source))


def _rollouts(
    graph: Graph,
    node: Node,
    config: Mapping[str, Any],
    size: int,
    job: Job,
    assumed: Assumptions,
) -> tuple[Generation, int]:
    """Return what a stage samples, and its optimizer steps."""
    args, rollout = config["args"], batch.completions(config, max(job.gpus, 1))
    uses = args["inner_steps"] if config["run"] == "policy_gradient" else args.get("num_iterations", 1)
    steps = batch.steps(config)
    if steps is None:
        given, _ = rows(graph, node, assumed)
        answered = given * args.get("num_generations", 1) * args.get("num_train_epochs", EPOCHS)
        steps = max(round(answered * uses / size), 1)
    caps = of_stage(config) or {0: 256}
    ends = [*list(caps)[1:], steps]
    cap = sum(cap * (end - begin) for (begin, cap), end in zip(caps.items(), ends, strict=True)) / steps
    sampled = steps * size / uses * (assumed.rounds if "dynamic_sampling" in config else 1)
    every = drawn(graph, node, config, sampled, round(cap), assumed)
    at_once = rollout * (assumed.rounds if "dynamic_sampling" in config else 1)
    tool = config.get("tool", {"calls": 0, "longest": 0})
    longest = max(caps.values()) + tool["calls"] * tool["longest"]  # its results come on top
    every = replace(every, rollout=float(min(at_once, sampled)), longest=longest)
    if not args.get("use_vllm"):
        return replace(every, engine="hf", bytes_a_weight=2 if args.get("bf16") else 4), steps
    if args.get("vllm_mode", "server") == "server":
        share = args.get("vllm_gpu_memory_utilization", SERVED)
        return replace(every, engine="server", width=max(job.server, 1), share=share), steps
    colocated = replace(
        every,
        engine="colocate",
        share=args.get("vllm_gpu_memory_utilization", COLOCATED),
        width=args.get("vllm_tensor_parallel_size", 1),
        sleeps=bool(args.get("vllm_enable_sleep_mode")),
    )
    return colocated, steps


def _copies(graph: Graph, node: Node, kind: str, assumed: Assumptions) -> float:
    """Return the sequences of an example: two of a pair, all of a grouped ranking, one of a labelled text."""
    if kind == "dpo":
        return 2.0
    if kind == "reward_model":
        if "labels" in (config := graph.config(node)):
            return 1.0
        grouped = config.get("comparisons") == "grouped"
        return float(made(graph, graph.inputs(node)["data"], assumed)[1]) if grouped else 2.0
    return 1.0


def _examples(graph: Graph, node: Node, assumed: Assumptions) -> float:
    """Return the examples of an epoch: demonstrations, rankings, or the pairs of rankings."""
    config, (given, _) = graph.config(node), rows(graph, node, assumed)
    if "labels" in config:
        return given * made(graph, graph.inputs(node)["data"], assumed)[1]
    paired = config.get("pairs") == "all" or config.get("comparisons") == "shuffled"
    if not paired:
        return given
    replies = made(graph, graph.inputs(node)["data"], assumed)[1]
    return given * replies * (replies - 1) / 2


def _positions(config: Mapping[str, Any]) -> int:
    return (config.get("model") or {}).get("max_position_embeddings", POSITIONS)


def _scored(config: Mapping[str, Any], kind: str) -> float:
    """Return the forward passes for old log-probabilities of a sequence, per optimizer step on it."""
    is_stale = batch.steps_a_rollout(config) > 1 or kind == "ppo"
    return 1 / config["args"].get("num_iterations", 1) if is_stale else 0.0


def _labels(graph: Graph, node: Node, config: Mapping[str, Any], job: Job, assumed: Assumptions) -> Job:
    """Return the job of a stage that labels: a model that reads, or nothing that costs anything here."""
    inputs, (given, replies) = graph.inputs(node), made(graph, node, assumed)
    documents = of_documents(graph, node)
    shown = given * (documents.prompt + documents.completion if documents else 2 * assumed.prompt)
    if config["by"] == "language_model":
        asked = replies * (replies - 1) / 2 * (2 if config.get("labeller", {}).get("both_orders") else 1)
        own = config["labeller"].get("model")
        policy: Model | None = named(own) if own else _policy_of(graph, inputs["policy"])
        read = shown * asked
    elif config["by"] in ("reward_model", "self"):
        source = inputs.get("reward_model") or inputs.get("policy")
        policy = _policy_of(graph, source) if source else None
        read = shown * replies * (2 if config["by"] == "self" else len(_members(graph, source)))
    else:
        return replace(job, gpus=0)
    reading = Generation(0, 1, 1, 0, 0, "hf", read=read)
    return replace(job, gpus=min(job.gpus, 1), policy=policy, generation=reading)


def _evaluation(graph: Graph, node: Node, assumed: Assumptions) -> Job:
    config, inputs = graph.config(node), graph.inputs(node)
    leaf, source = graph.model_of(node), inputs.get("model")
    policy = _policy_of(graph, source) if source else named(leaf.said) if leaf else None
    every, unknown, judges = [], [], []
    for name, task in config["tasks"].items():
        if "items" not in task or "max_gen_toks" not in task:
            unknown.append(f"task {name}, not counted")
            continue
        samples = task.get("samples", 1) if task.get("temperature", 0) else 1
        each = {**config, **task, "domains": {}}
        every.append(drawn(graph, node, each, task["items"] * samples, task["max_gen_toks"], assumed))
        if "judge" in task:  # two replies, in both orders
            shown = every[-1].completions * 2 * (every[-1].prompt + 2 * every[-1].mean)
            judges.append((named(task["judge"]["model"]), shown))
    gpus = graph.machine(node).gpus
    if not every:
        return Job(node.name, "eval", 0, unknown=tuple(unknown))
    total = sum(one.completions for one in every)
    mean = sum(one.completions * one.mean for one in every) / total
    longest = max(every, key=lambda one: one.cap)
    whole = replace(longest, completions=total, rollout=total, mean=min(mean, longest.cap))
    return Job(
        name=node.name,
        kind="eval",
        gpus=min(gpus, whole.width),
        policy=policy,
        generation=whole,
        reference=_policy_of(graph, inputs["reference"]) if "reference" in inputs else None,
        rewards=_members(graph, inputs.get("proxy")),
        judges=tuple(judges),
        unknown=tuple(unknown),
    )
