"""The learning curves of a page: the metrics, title and caption of each figure."""

from collections.abc import Collection
from dataclasses import dataclass

from analysis.numbers.curve_metrics import COUNTED


@dataclass(frozen=True)
class Series:
    """A figure of learning curves; an entry of `metrics` has a metric's name, label and line style."""

    name: str
    title: str
    caption: str
    metrics: tuple[tuple[str, str, str], ...]
    log: bool = False  # whether the y axis is logarithmic, if any value is above zero
    older: str = ""  # metric to draw for older runs, which did not log the first of `metrics`


TRAINING = (
    Series(
        "accuracy",
        "Accuracy of training rollouts",
        "Share of sampled answers that the verifier accepts. It should rise and flatten.",
        (("accuracy", "", "-"),),
    ),
    Series(
        "length",
        "Response length in tokens",
        "Correct (solid) and incorrect (dashed) apart: growth of the incorrect alone is length bias. "
        "Dotted: the cap on a reply, where it is near.",
        (("length/correct", "correct", "-"), ("length/incorrect", "incorrect", "--")),
    ),
    Series(
        "reward",
        "Reward",
        "What the arm was trained on: compare it with accuracy; reward that rises alone is being gamed.",
        (("reward", "", "-"),),
    ),
    Series(
        "entropy",
        "Entropy of the policy, nats per token",
        "Exploration left: near zero the samples of a group no longer differ and learning stops.",
        (("entropy", "", "-"),),
    ),
    Series(
        "kl",
        "KL divergence to the reference policy",
        "How far the policy has moved from the reference",
        (("kl", "", "-"),),
    ),
    Series(
        "kl-estimators",
        "KL divergence to the reference policy, estimated",
        "From sampled tokens: the log ratio (k1), its square (k2), Schulman's k3; beside the exact one.",
        (("kl/exact", "exact", "-"), ("kl/k1", "k1", ":"), ("kl/k2", "k2", "-."), ("kl/k3", "k3", "--")),
    ),
    Series(
        "clip",
        "Share of clipped tokens",
        "Tokens whose gradient the clip cuts: where there are none (below the axis), it plays no part.",
        (("clip_fraction", "", "-"),),
        log=True,
        older="clip_ratio/region_mean",
    ),
    Series(
        "regret",
        "Objective of RLHF below its optimum",
        "What is lacking of E[r] - beta KL, where the optimum is known: it should fall to zero.",
        (("regret", "", "-"),),
        log=True,
    ),
    Series(
        "gradient-angle",
        "Angle between the estimator's mean and the true gradient, degrees",
        "0: unbiased in direction; 90: of no use. Arms of one objective and rate have the same policies.",
        (("gradient/angle", "", "-"),),
    ),
    Series(
        "gradient-variance",
        "Variance of the gradient per string that is drawn",
        "As many more draws are needed for the same noise. Arms of one objective have the same policies.",
        (("gradient/variance", "", "-"),),
        log=True,
    ),
    Series(
        "zero-variance",
        "Share of groups with zero variance",
        "Groups whose rewards are all alike teach nothing: here the batch shrinks without saying so.",
        (("frac_reward_zero_std", "", "-"),),
    ),
    Series(
        "calls",
        "Calls of a tool",
        "When the policy learns to call: calls an answer (solid), share of answers that call (dashed), and "
        "share of calls that are malformed (dotted).",
        (
            ("tool/calls", "calls an answer", "-"),
            ("tool/used", "answers that call", "--"),
            ("tool/malformed", "malformed calls", ":"),
        ),
    ),
    Series(
        "habits",
        "Habits of a search",
        "Share of training rollouts with each habit: those that pay should come, and the idle one go.",
        (
            ("rewards/verification/mean", "verification", "-"),
            ("rewards/backtracking/mean", "backtracking", "--"),
            ("rewards/backward_chaining/mean", "backward chaining", "-."),
            ("rewards/idling/mean", "idling", ":"),
        ),
    ),
)
PREFERENCES = (
    Series(
        "gold-proxy",
        "Gold and proxy reward of training rollouts",
        "What the reward model says (dashed) and what is true (solid): apart, the model is being exploited.",
        (("rewards/gold/mean", "gold", "-"), ("rewards/reward_model/mean", "proxy", "--")),
    ),
    Series(
        "explained-variance",
        "What the critic explains",
        "Share of the variance of returns that the critic foresaw; below 0 it is worse than a constant.",
        (("explained_variance", "", "-"),),
    ),
    Series(
        "value-loss",
        "Loss of the critic",
        "Squared error of its values: a critic that starts from the reward model should start low.",
        (("value_loss", "", "-"),),
    ),
    Series(
        "implicit-reward",
        "Accuracy of the implicit reward",
        "Share of training pairs whose chosen reply gained more log-probability than the rejected one.",
        (("rewards/accuracies", "", "-"),),
    ),
    Series(
        "pair-logps",
        "Log-probability of chosen and rejected replies",
        "Both may fall while the margin grows: then neither reply becomes likelier.",
        (("logps/chosen", "chosen", "-"), ("logps/rejected", "rejected", "--")),
    ),
)

# figures that show best how the arms learned, the best first
MAIN = ("accuracy", "regret", "gold-proxy", "implicit-reward", "reward")


def main(names: Collection[str], measure: str) -> str:
    """Return the figure among `names` that shows best how the arms learned; "" if `names` has none of MAIN.

    `measure` is the metric that arms are compared by.
    """
    wanted = (*(("gold-proxy",) if measure == "gold" else ()), *MAIN)
    return next((name for name in wanted if name in names), "")


def drawn() -> set[str]:
    """Return the names of the metrics that figures of training show, and of the counts on their x axes."""
    names = {name for series in (*TRAINING, *PREFERENCES) for name, _, _ in series.metrics}
    return names | {series.older for series in TRAINING if series.older} | {*COUNTED}
