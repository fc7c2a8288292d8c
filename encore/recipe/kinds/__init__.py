"""The kinds of stages. Each kind has its file, with the keys that a stage of the kind may have."""

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import ValidationError

from encore.errors import UserError
from encore.recipe.args import Args
from encore.recipe.kinds.bandit import BanditStage
from encore.recipe.kinds.distillation import DistillationStage
from encore.recipe.kinds.dpo import DpoStage
from encore.recipe.kinds.grpo import GrpoStage
from encore.recipe.kinds.kto import KtoStage
from encore.recipe.kinds.label import LabelStage
from encore.recipe.kinds.label_steps import LabelStepsStage
from encore.recipe.kinds.policy_gradient import PolicyGradientStage
from encore.recipe.kinds.ppo import PpoStage
from encore.recipe.kinds.pretrain import PretrainStage
from encore.recipe.kinds.rejection_sampling import RejectionSamplingStage
from encore.recipe.kinds.reward_model import RewardModelStage
from encore.recipe.kinds.sample import SampleStage
from encore.recipe.kinds.sft import SftStage
from encore.recipe.kinds.stage import Stage
from encore.recipe.mistakes import lines

KINDS: dict[str, type[Stage]] = {
    "pretrain": PretrainStage,
    "grpo": GrpoStage,
    "ppo": PpoStage,
    "distillation": DistillationStage,
    "dpo": DpoStage,
    "kto": KtoStage,
    "policy_gradient": PolicyGradientStage,
    "bandit": BanditStage,
    "rejection_sampling": RejectionSamplingStage,
    "sample": SampleStage,
    "label": LabelStage,
    "label_steps": LabelStepsStage,
    "sft": SftStage,
    "reward_model": RewardModelStage,
}


def read_stage(stage: Mapping[str, Any], path: str = "", where: str = "") -> Stage:
    """Return the typed stage from `stage`, merged from all layers, without a check of the stage's rules.

    Raises UserError with all other mistakes, in lines that begin with `path` and end with `where`.
    """
    try:
        return KINDS[stage["run"]].model_validate(stage)
    except ValidationError as error:
        raise UserError("\n".join(lines(error, stage, [path], where))) from None


def check_layer(layer: Mapping[str, Any], run: str, path: str) -> None:
    """Raise UserError with all mistakes in one layer of a stage; keys that it lacks are no mistake."""
    try:
        KINDS[run].model_validate({**layer, "run": run})
    except ValidationError as error:
        if mistakes := lines(error, layer, [path], whole=False):
            raise UserError("\n".join(mistakes)) from None


def args_of(run: str) -> type[Args] | None:
    """Return the class of the key `args` in a kind of stage; None if the kind has no such key."""
    field = KINDS[run].model_fields.get("args")
    classes = (field.annotation, *get_args(field.annotation)) if field else ()
    return next((each for each in classes if isinstance(each, type) and issubclass(each, Args)), None)
