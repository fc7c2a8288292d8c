"""Stage `bandit`: an estimator of the policy gradient on a set of strings small enough to be listed."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from encore.recipe.args import Args, Batch, Rate
from encore.recipe.base import Mistake, NotNegative, Positive
from encore.recipe.kinds.stage import Stage, rule

MOST_GROUPS = 20_000  # largest number of groups of draws, or of dpo's pairs, that are listed
COMPARING = (
    "leave_one_out",
    "centered",
    "normalized",
)  # advantages that compare the draws of a group with each other


class BanditArgs(Args):
    """The `args` of a stage `bandit`; encore/bandit/estimators.py has the equations."""

    learning_rate: Rate  # step size of gradient ascent along the estimator's mean
    steps: Positive
    inner_steps: Positive = 1  # number of updates on one rollout, drawn by the policy before them
    letters: Annotated[int, Field(ge=1, le=8)] = 2  # number of letters of the alphabet, besides the end token
    longest: Annotated[int, Field(ge=1, le=8)] = 3  # largest number of tokens of a string
    # graded: between 0 and 1; right: 1 for a fifth of the strings
    rewards: Literal["graded", "right"] = "graded"
    objective: Literal["policy_gradient", "fine_tuning", "dpo"] = "policy_gradient"
    group: Batch = 1  # number of strings that are drawn together
    # mean: reward minus the exact mean of all rewards; optimal: reward minus the scalar with the least
    # variance
    advantage: Literal["raw", "mean", "optimal", "leave_one_out", "centered", "normalized", "gae"] = "mean"
    lam: Annotated[float, Field(ge=0, le=1)] = 1.0  # lambda of advantage gae
    critic_error: NotNegative = 0.0  # standard deviation of the errors of gae's critic
    # the policy in the denominator of the ratio; with `current` the ratio is 1
    old: Literal["sampler", "current"] = "sampler"
    epsilon: NotNegative = 0.2  # clip range
    beta: NotNegative = 0.0  # coefficient of the KL penalty in the objective
    # the place of the penalty: in the reward, or in the loss by an estimator; k3_weighted is k3 times the
    # ratio; guide is the mean of log pi_ref - log pi
    kl: Literal["none", "reward", "k1", "k2", "k3", "k3_weighted", "guide"] = "none"

    @property
    def strings(self) -> int:
        """The number of possible strings: with an end token, or cut at the largest length."""
        return sum(self.letters**size for size in range(self.longest)) + self.letters**self.longest


class BanditStage(Stage):
    """A stage that measures an estimator by listing all possible draws; a tabular policy follows its mean."""

    product: ClassVar[str] = "a table of strings"
    required = ("args",)

    run: Literal["bandit"]
    args: BanditArgs

    @rule
    def _strings_that_can_be_listed(self) -> Iterator[Mistake]:
        """Yield mistakes: too many groups of strings to list, or groups of 1 with nothing to compare."""
        args = self.args
        of, size = ("pairs", 2) if args.objective == "dpo" else ("groups", args.group)
        if (groups := args.strings**size) > MOST_GROUPS:
            words = f"{args.strings} strings make {groups:,} {of}; at most {MOST_GROUPS:,} are listed"
            yield "args.group" if args.group > 1 else "args.longest", words
        if args.group < 2 and args.advantage in COMPARING:
            yield "args.group", f"advantage {args.advantage} compares at least 2 strings, got {args.group}"

    @rule
    def _a_penalty_in_one_place(self) -> Iterator[Mistake]:
        """Yield mistakes: a KL penalty without coefficient or place, or in a place that is not possible."""
        args = self.args
        if args.objective == "dpo":
            if not args.beta or args.kl != "none":
                yield "args.beta", "dpo sets the KL penalty by its beta alone; write beta, and kl: none"
        elif (args.kl == "none") != (args.beta == 0):
            yield "args.beta", "beta and kl go together: a penalty has a coefficient and a place"
        if args.kl == "reward" and args.advantage != "gae":
            yield "args.kl", "a penalty in the reward of each token needs advantage gae"

    @rule
    def _a_critic_of_gae(self) -> Iterator[Mistake]:
        """Yield keys that belong to another advantage or to another objective."""
        args = self.args
        if args.advantage != "gae":
            for name in ("lam", "critic_error"):
                if name in args.model_fields_set:
                    yield f"args.{name}", f"it belongs to advantage gae, not to {args.advantage}; remove it"
        if args.objective == "fine_tuning" and args.rewards != "right":
            yield "args.rewards", "fine_tuning learns from right strings; write rewards: right"
        if args.objective != "policy_gradient" and args.group != 1:
            yield "args.group", f"it belongs to policy_gradient, not to {args.objective}; remove it"
