"""Stage `ppo`: the policy is trained by PPO, with a critic."""

from collections.abc import Iterator
from typing import Annotated, Literal

from encore.recipe.base import Mistake, Model, NotNegative, Positive, below
from encore.recipe.corpus import Corpus
from encore.recipe.form import placed
from encore.recipe.grpo_args import PpoArgs
from encore.recipe.kinds.rollout import LEARNED, REWARD_MODEL, SAFETY_MODEL, RolloutStage
from encore.recipe.kinds.stage import rule
from encore.recipe.mistakes import shown
from encore.recipe.task import DataSet, WorldTask, no_documents, refusing

NO_DATA_SET = "a corpus is written by a world; for documents of the Hub take data"
OF_WORLD = ("task", "template", "corpus")


# argument of GRPO -> the only value that is possible in PPO, and why
FIXED = {
    "beta": (0.0, "the KL is in the reward; its coefficient is kl_coef"),
    "mask_truncated_completions": (False, "missing_eos_penalty or missing_eos_score punishes truncation"),
    "sync_ref_model": (False, "the reference of PPO stays as it is"),
    "multi_objective_aggregation": ("sum_then_normalize", "the score is the weighted sum of the rewards"),
    "fp16": (False, "the critic's optimizer scales no gradients; bf16 needs no scaling"),
    "top_entropy_quantile": (1.0, "the critic learns from all tokens, and so must the policy"),
}


class HubDocuments(DataSet):
    """The first rows of a data set, as documents."""

    text: str
    documents: Positive
    max_length: Positive  # tokens of a document; the rest is cut


class Ptx(Model):
    """The documents that each update also learns from (InstructGPT, Eq. 2), of a world or a Hub dataset."""

    coefficient: NotNegative
    # documents in a micro-batch or, with global_batch, in an optimizer step
    batch_size: Positive
    # the documents' source, with template and corpus, as in stage pretrain
    task: Annotated[WorldTask, refusing({"a data set": NO_DATA_SET}), no_documents] | None = None
    template: str | None = None
    corpus: Corpus | None = None
    data: HubDocuments | None = None


class PpoStage(RolloutStage):
    """A stage that trains the policy by PPO."""

    learned = LEARNED
    least_group = 1  # 1, because a critic needs no group
    needs_answers = False
    stands_for = {"chat": ("template",), "global_batch": ("gradient_accumulation_steps",)}
    written_out = (
        *("kl_coef", "gamma", "lam", "vf_coef", "cliprange_value", "whiten_rewards", "whiten_advantages"),
        *("reshuffle", "num_iterations"),
        ("steps_per_generation", "generation_batch_size"),
        *(
            "gradient_accumulation_steps",
            "epsilon",
            "temperature",
            "top_p",
            "lr_scheduler_type",
            "learning_rate",
        ),
        *("critic_learning_rate", "max_completion_length", "vllm_importance_sampling_correction"),
    )

    run: Literal["ppo"]
    # the KL is measured to the role reference; default: policy
    needs: dict[Literal["policy", "reward_model", "safety_model", "reference"], str] = {}
    args: PpoArgs = PpoArgs()
    # the critic's start; default: the reward model if there is one, otherwise the policy
    critic: Literal["reward_model", "policy", "random"] | None = None
    # The score of the safety model below which this score becomes reward `reward_model`; otherwise the reward
    # is the reward model's score. It is the piecewise combination of Llama 2 (arXiv 2307.09288, §3.2.3).
    safety_threshold: float | None = None
    ptx: Ptx | None = None

    @rule
    def _arguments_of_grpo(self) -> Iterator[Mistake]:
        """Yield arguments of GRPO with a value that PPO cannot have."""
        for name, (value_of_ppo, why) in FIXED.items():
            if (value := getattr(self.args, name)) != value_of_ppo:
                yield f"args.{name}", f"expected {shown(value_of_ppo)}, got {shown(value)}: {why}"

    @rule
    def _scores(self) -> Iterator[Mistake]:
        """Yield mistakes: a KL target with coefficient 0, or two penalties for the same truncation."""
        if self.args.kl_target is not None and not self.args.kl_coef:
            yield "args.kl_target", "kl_coef is 0; expected a larger value to start from"
        if self.args.missing_eos_penalty is not None and self.args.missing_eos_score is not None:
            yield "args.missing_eos_score", "missing_eos_penalty is given too; remove one of them"

    @rule
    def _reward_model(self) -> Iterator[Mistake]:
        """Yield a mistake if a reward model is missing where it is used, or if nothing uses it."""
        weights, has_model = self.rewards or {}, REWARD_MODEL in self.needs
        if REWARD_MODEL in weights and not has_model:
            words = "needs.reward_model is missing; name the stage that trains it"
            yield "rewards.reward_model", words
        if not any(weights.values()):
            yield "rewards", "expected one with a weight other than 0"
        if has_model and REWARD_MODEL not in weights and self.critic != REWARD_MODEL:
            yield "needs.reward_model", "neither rewards nor critic uses it; remove it"
        if self.critic == REWARD_MODEL and not has_model:
            yield "critic", "reward_model, but needs.reward_model is missing"
        if self.ensemble and REWARD_MODEL not in weights:
            yield "ensemble", "rewards.reward_model is missing, there is nothing to aggregate"

    @rule
    def _safety_model(self) -> Iterator[Mistake]:
        """Yield a mistake if a safety model is missing where it is used, is used twice, or not at all."""
        weights, has_model = self.rewards or {}, SAFETY_MODEL in self.needs
        threshold = self.safety_threshold is not None
        if (SAFETY_MODEL in weights or threshold) and not has_model:
            place = "safety_threshold" if threshold else "rewards.safety_model"
            yield place, "needs.safety_model is missing; name the stage that trains it"
        elif SAFETY_MODEL in weights and threshold:
            yield (
                "rewards.safety_model",
                "safety_threshold puts it into rewards.reward_model; remove one of them",
            )
        elif threshold and REWARD_MODEL not in weights:
            yield "safety_threshold", "rewards.reward_model is missing, there is nothing to replace"
        elif has_model and not threshold and SAFETY_MODEL not in weights:
            yield "needs.safety_model", "neither rewards nor safety_threshold uses it; remove it"

    @rule
    def _critic_with_adapters(self) -> Iterator[Mistake]:
        """Yield a mistake for adapters on a critic with random weights."""
        if self.lora and self.critic == "random":
            words = "random has learnt nothing that adapters could add to; take policy or reward_model"
            yield "critic", words

    @rule
    def _one_source_of_documents(self) -> Iterator[Mistake]:
        """Yield a mistake unless the documents to learn from have one complete source."""
        if self.ptx is None:
            return
        set_keys = [key for key in OF_WORLD if getattr(self.ptx, key) is not None]
        if (self.ptx.data is not None) == bool(set_keys):
            number = "both are" if set_keys else "neither is"
            yield "ptx", f"its documents come from data, or from task, template and corpus; {number} given"
        elif self.ptx.data is None:
            yield from self._documents_of_a_world(self.ptx)
        else:
            yield from below("ptx.data", self.ptx.data.mistakes())

    def _documents_of_a_world(self, ptx: Ptx) -> Iterator[Mistake]:
        for key in OF_WORLD:
            if getattr(ptx, key) is None:
                yield f"ptx.{key}", "missing"
                return
        corpus = ptx.corpus or Corpus()
        for key in ("documents", "mixture"):
            if getattr(corpus, key) is None:
                yield f"ptx.corpus.{key}", "missing"
                return
        yield from placed("ptx.template", ptx.template or "")
        if ptx.task is not None:
            yield from below("ptx.corpus", corpus.mistakes(ptx.task.make_world()))
