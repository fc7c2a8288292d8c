"""Several tasks of a stage, each with its share of the prompts and its rewards."""

import math
from collections.abc import Iterator, Mapping

from encore.recipe.base import Mistake, PartOfAll, Positive, below
from encore.recipe.kinds.rollout import REWARD_MODEL
from encore.recipe.task import Rewarded


class Domain(Rewarded):
    """One of several tasks of a stage, with its share of the prompts and its rewards."""

    learned = (REWARD_MODEL,)

    longest_prompt: Positive | None = None
    share: PartOfAll | None = None  # of the prompts; all shares come to 1

    def lacking(self) -> Iterator[Mistake]:
        """Yield what a domain must have and this one has not."""
        for key in ("task", "template", "share", "rewards"):
            if getattr(self, key) is None and not (key == "template" and self.chat):
                yield key, "missing"
        if self.rewards is not None and not any(self.rewards.values()):
            yield "rewards", "expected one with a weight other than 0"


def misshapen(domains: Mapping[str, Domain]) -> Iterator[Mistake]:
    """Yield domains that are not two or more, or not complete."""
    if len(domains) < 2:
        words = f"expected at least two, got {', '.join(domains) or 'none'}"
        yield "domains", f"{words}; one task is written as task, template and rewards"
        return
    for name, domain in domains.items():
        yield from below(f"domains.{name}", domain.lacking())
    shares = [domain.share for domain in domains.values() if domain.share is not None]
    if len(shares) == len(domains) and not math.isclose(sum(shares), 1, abs_tol=1e-6):
        yield "domains", f"their shares come to {sum(shares):g}; expected 1"


def needs_answers(part: Rewarded) -> bool:
    """Whether the rewards of a task need answers; they do not where a reward model alone judges."""
    rewards = part.rewards or {}
    return REWARD_MODEL not in rewards or "accuracy" in rewards
