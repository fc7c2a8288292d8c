"""The common part of stages with a Trainer: a batch that is spread over GPUs, intervals, adapters."""

from collections.abc import Iterator
from typing import ClassVar

from encore.recipe.args import TrainingArgs
from encore.recipe.base import Mistake, Positive
from encore.recipe.kinds.stage import FromPolicy, Lora, Stage, rule
from encore.recipe.machine import check_one
from encore.recipe.portion import Portion, divided

# quantity that follows from the batch and the number of GPUs -> the message about it
FOLLOWS = {
    "gradient_accumulation_steps": "it follows from global_batch and the number of GPUs; remove it",
    "steps_per_generation": "it depends on the number of GPUs; write generation_batch_size, of all of them",
}
INTERVALS = (
    "logging_steps",
    "eval_steps",
    "save_steps",
)  # intervals in optimizer steps, or as a share of all of them
MOST_MARKS = 1000  # most evaluations within a stage: each is a job with a model on disk
SAVING = ("steps", "epoch")  # values of save_strategy with which a stage can resume after a kill


class TrainingStage(Stage):
    """A stage with a Trainer."""

    holds_data_out: ClassVar[bool] = False  # whether the stage has held-out data to evaluate on

    args: TrainingArgs = TrainingArgs()
    # Number of examples in an optimizer step, over all GPUs. Each GPU takes an equal part, in micro-batches
    # of at most args.per_device_train_batch_size examples. On several GPUs it must be set.
    global_batch: Positive | None = None

    @property
    def batches(self) -> dict[str, int]:
        """The number of examples in an optimizer step over all processes, by the key that sets it; or {}."""
        return {"global_batch": self.global_batch} if self.global_batch else {}

    def portion(self, processes: int) -> Portion:
        """Return the portion of a batch that each of `processes` processes takes.

        Raises UserError if the batch cannot be divided equally.
        """
        rows = self.args.per_device_train_batch_size
        if not self.batches:
            return Portion(rows, self.args.gradient_accumulation_steps)
        return divided(self.batches, processes, rows, getattr(self.args, "loss_type", None) == "bnpo")

    def step_size(self, processes: int) -> int:
        """Return the number of examples in an optimizer step, over all processes."""
        rows = self.args.per_device_train_batch_size * self.args.gradient_accumulation_steps
        return self.global_batch or rows * processes

    @property
    def steps(self) -> int | None:
        """The number of optimizer steps (in an ensemble, of each member); None if epochs are set instead."""
        return self.args.max_steps if self.args.max_steps > 0 else None

    @rule
    def _same_on_each_machine(self) -> Iterator[Mistake]:
        """Yield a mistake if the machines of a stage have different numbers of GPUs."""
        gpus, nodes = self.resources.gpu, self.resources.nodes
        if nodes == 1:
            return
        training = self.training_nodes
        if gpus % training:
            fits = gpus - gpus % training or training
            words = f"{gpus} do not lie on {training} nodes with equally many on each; nearest: {fits}"
            yield "resources.gpu", words
        elif self.serving not in (0, gpus // training):
            yield (
                "vllm_gpus",
                f"{self.serving}; on several nodes the server has the last one for itself, with as many GPUs "
                f"as the others: {gpus // training} (over several it would need Ray, which no stage starts)",
            )
        else:
            check_one(gpus // training)

    @rule
    def _same_batch_on_any_number_of_gpus(self) -> Iterator[Mistake]:
        """Yield mistakes: a batch that depends on the number of GPUs, or that they cannot divide equally."""
        gpus, training = self.resources.gpu, self.training_nodes
        if self.global_batch is None:
            if max(gpus, training) > 1:
                words = f"missing; on {max(gpus, training)} GPUs the batch would depend on their number"
                yield "global_batch", words
            return
        for name, why in FOLLOWS.items():
            if name in self.args.model_fields_set:
                yield f"args.{name}", why
                return
        self.portion(max(gpus, training))

    @rule
    def _nothing_that_a_trainer_falls_over(self) -> Iterator[Mistake]:
        """Yield fields of `args` with which a Trainer would fail, or lose work, long after the start."""
        for name in INTERVALS:
            steps = getattr(self.args, name)
            if steps is not None and steps > 1 and steps != int(steps):
                words = f"expected a whole number, or less than 1 for a share of all steps, got {steps}"
                yield f"args.{name}", words
        if (strategy := self.args.save_strategy) not in SAVING:
            wanted = " or ".join(SAVING)
            words = f"{strategy}: a stage that is killed would begin anew; expected {wanted}"
            yield "args.save_strategy", words
        asked = {"eval_strategy": self.args.eval_strategy != "no", "eval_on_start": self.args.eval_on_start}
        for name in asked:
            if asked[name] and not self.holds_data_out:
                words = f"a stage {self.run} holds no data out; remove it, or write evaluate_every"
                yield f"args.{name}", words


class MeasuredStage(TrainingStage):
    """A stage whose model can be measured before its end."""

    # The number of optimizer steps between two measurements of the model. Each time it is saved beside the
    # product, and a job measures it on the tasks of the checkpoint that is the stage's product. The results
    # are evals/<checkpoint>_step<n>.json and a figure of the report.
    evaluate_every: Positive | None = None

    @rule
    def _measured_before_the_end(self) -> Iterator[Mistake]:
        """Yield mistakes in the steps to measure: not known beforehand, after the end, or too many."""
        every, steps = self.evaluate_every, self.args.max_steps
        if every is None:
            return
        if steps < 1:
            words = "it needs args.max_steps, so that the steps to measure are known beforehand"
            yield "evaluate_every", words
        elif every >= steps:
            yield "evaluate_every", f"expected less than args.max_steps, {steps}, got {every}"
        elif len(self.marks) > MOST_MARKS:
            words = (
                f"{every} makes {len(self.marks)} evaluations of {steps} steps, expected at most {MOST_MARKS}"
            )
            yield "evaluate_every", f"{words}; nearest: {(steps - 1) // (MOST_MARKS + 1) + 1}"

    @property
    def marks(self) -> range:
        """The steps after which the model is measured; the end of the stage is not one of them."""
        every = self.evaluate_every
        return range(every, self.args.max_steps, every) if every else range(0)


class TuningStage(FromPolicy, TrainingStage):
    """A stage that continues to train a model, either its weights or adapters."""

    lora: Lora | None = None

    @rule
    def _adapters_that_all_see(self) -> Iterator[Mistake]:
        """Yield a mistake for each key that cannot be used with adapters."""
        if self.lora is None:
            return
        sharded, by_vllm = self.resources.shard, getattr(self.args, "use_vllm", False)
        if self.lora.quantized and getattr(self, "sampler", None) == "lean":
            yield "sampler", "lean does not read weights of 4 bits; remove it, or lora.quantized"
        if self.lora.quantized and sharded:
            yield (
                "lora.quantized",
                "weights of 4 bits stay whole on each GPU, and resources.shard would spread them; remove one",
            )
        elif sharded and by_vllm:
            yield (
                "lora",
                "TRL cannot send vLLM the sum of adapters and weights that resources.shard spreads; remove "
                "shard, or args.use_vllm",
            )
        if self.lora.quantized and self.marks:
            yield "evaluate_every", "a model of 4 bits is whole only at the end; remove lora.quantized"
        if self.lora.quantized and by_vllm:
            yield "lora.quantized", "weights of 4 bits cannot be sent to vLLM; remove it, or args.use_vllm"
        if getattr(self.args, "sync_ref_model", False):
            yield (
                "args.sync_ref_model",
                "a reference without adapters cannot follow; remove it, or lora",
            )
