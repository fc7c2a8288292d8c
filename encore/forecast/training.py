"""The training of a stage in a plan: its optimizer steps, and the rollouts that it samples."""

from dataclasses import replace

from encore.forecast import padding
from encore.forecast.hardware import Assumptions
from encore.forecast.job import Generation, Job, Training
from encore.forecast.lengths import DTYPES, SERVED, asked_by, drawn, of_documents, prompts_a_row
from encore.forecast.rows import made, rows
from encore.recipe.args import Loading, TrainingArgs
from encore.recipe.base import present
from encore.recipe.graph import Graph, Node
from encore.recipe.kinds import (
    DistillationStage,
    DpoStage,
    GrpoStage,
    KtoStage,
    PolicyGradientStage,
    PpoStage,
    PretrainStage,
    RewardModelStage,
)
from encore.recipe.kinds.pairs import PairsStage
from encore.recipe.kinds.rollout import RolloutStage
from encore.recipe.kinds.training import TrainingStage, TuningStage
from encore.recipe.machine import Engine

POSITIONS = 1024  # max_length of TRL's trainers if a recipe does not set it
# bytes of the optimizer's state for a trained number, unless it is Adam's two moments in float32
OPTIMIZERS = {"sgd": 0.0, "rmsprop": 4.0, "adafactor": 0.1, "adamw_8bit": 2.0, "adamw_bnb_8bit": 2.0}
OPTIMIZERS |= {"paged_adamw_8bit": 2.0, "lion_32bit": 4.0}
Learning = TrainingStage | PolicyGradientStage


def training_of(
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
        rounds=_rounds(stage, assumed),
        mismatched=isinstance(stage, KtoStage),
        synced=getattr(args, "sync_ref_model", False),
        padding=_padding(stage, generation, processes) if generation and job.gpus else 1.0,
        padded=rows_at_once > 1 and generation is None,
    )
    return training, generation


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
    rounds, tool = _rounds(stage, assumed), None
    if isinstance(stage, GrpoStage):
        tool, caps = stage.tool, stage.caps_by_step or caps
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


def _rounds(stage: Learning, assumed: Assumptions) -> float:
    """Return how many rollouts a stage samples for each rollout that it learns from."""
    return assumed.rounds if isinstance(stage, GrpoStage) and stage.dynamic_sampling else 1.0


def _copies(graph: Graph, node: Node, stage: TrainingStage, assumed: Assumptions) -> float:
    """Return the number of sequences in an example: 2 in a pair, 1 in a labelled text, or all of a group."""
    if not isinstance(stage, RewardModelStage) or stage.labels:
        return 2.0 if isinstance(stage, DpoStage) else 1.0
    grouped = stage.comparisons == "grouped"
    return float(made(graph, graph.inputs(node)["data"], assumed)[1]) if grouped else 2.0


def _examples(graph: Graph, node: Node, assumed: Assumptions) -> float:
    """Return the number of examples in an epoch: demonstrations, rankings, pairs or single replies."""
    stage, (total, _) = graph.stage(node), rows(graph, node, assumed)
    by_labels = isinstance(stage, RewardModelStage) and stage.labels
    shuffled = isinstance(stage, RewardModelStage) and stage.comparisons == "shuffled"
    if isinstance(stage, KtoStage) and not stage.unpaired:
        total *= 2  # both completions of a pair
    if not by_labels and not shuffled and not (isinstance(stage, PairsStage) and stage.pairs == "all"):
        return total
    replies = made(graph, graph.inputs(node)["data"], assumed)[1]
    return total * (replies if by_labels else replies * (replies - 1) / 2)


def _positions(stage: TrainingStage) -> int:
    shape = stage.model if isinstance(stage, PretrainStage) else None
    return (shape.max_position_embeddings if shape else None) or POSITIONS


def _padding(stage: Learning, generation: Generation, processes: int) -> float:
    """Return the positions that a stage's rollouts take in training for each real token."""
    if not isinstance(stage, RolloutStage):
        return 1.0
    portion = stage.portion(processes)
    together = portion.rows * (portion.micro_batches if stage.by_length else 1)
    return padding.of_rows(generation, together, portion.rows)


def _scored(stage: Learning) -> float:
    """Return the forward passes for old log-probabilities, per sequence and optimizer step."""
    if not isinstance(stage, RolloutStage) or isinstance(stage, DistillationStage):
        return 0.0
    several = stage.steps_a_rollout > 1 or isinstance(stage, PpoStage)
    ahead = isinstance(stage, GrpoStage) and stage.max_staleness  # if not corrected, the sampler's serve
    return (stage.args.vllm_importance_sampling_correction if ahead else several) / stage.args.num_iterations
