"""The stages with prompts of several tasks, which are called domains."""

import math
from collections.abc import Iterator, Mapping

from encore.recipe.base import Identifier, Mistake, PartOfAll, Positive, below
from encore.recipe.kinds.rollout import REWARD_MODEL, RolloutStage
from encore.recipe.task import Rewarded


class Domain(Rewarded):
    """One of several tasks of a stage, with its share of the prompts and its rewards."""

    learned = (REWARD_MODEL,)

    longest_prompt: Positive | None = None
    share: PartOfAll | None = None  # share of the prompts; the shares of all domains come to 1

    def lacking(self) -> Iterator[Mistake]:
        """Yield the keys that a domain must have and this one lacks."""
        for key in ("task", "template", "share", "rewards"):
            if getattr(self, key) is None and not (key == "template" and self.chat):
                yield key, "missing"
        if self.rewards is not None and not any(self.rewards.values()):
            yield "rewards", "expected one with a weight other than 0"


class DomainStage(RolloutStage):
    """A stage that is trained on one task or on several."""

    # Several tasks instead of task, template, problems and rewards. Every rollout has each domain's share of
    # the prompts (if the share is no whole number, the running sum is as close to it as possible), and a
    # prompt has only its domain's rewards. All rewards that a domain names are measured, even at weight 0.
    domains: dict[Identifier, Domain] | None = None

    @property
    def weights(self) -> dict[str, dict[str, float]]:
        """The weights of rewards by their place: `rewards`, or `domains.NAME.rewards` of each domain."""
        if self.domains is None:
            return super().weights
        return {f"domains.{name}.rewards": domain.rewards or {} for name, domain in self.domains.items()}

    @property
    def parts(self) -> Mapping[str, Rewarded]:
        """The domains by name, or the stage itself if it has no domains."""
        return {"": self} if self.domains is None else self.domains

    def unsound(self) -> Iterator[Mistake]:
        """Yield the mistakes within the one task, or within the domains and their tasks."""
        if self.domains is None:
            yield from self.asked_mistakes(_needs_answers(self.rewards))
            return
        mistakes = [*self._misshapen(self.domains)]
        yield from mistakes
        for name, domain in () if mistakes else self.domains.items():
            yield from below(f"domains.{name}", domain.asked_mistakes(_needs_answers(domain.rewards)))

    def _misshapen(self, domains: dict[str, Domain]) -> Iterator[Mistake]:
        """Yield mistakes: fewer than two domains, incomplete domains, or a task beside the domains."""
        for key in ("task", "template", "chat", "problems", "rewards"):
            if getattr(self, key) is not None:
                yield key, f"each domain has its own; remove {key} or domains"
        if len(domains) < 2:
            words = f"expected at least two, got {', '.join(domains) or 'none'}"
            yield "domains", f"{words}; one task is written as task, template and rewards"
            return
        for name, domain in domains.items():
            yield from below(f"domains.{name}", domain.lacking())
        shares = [domain.share for domain in domains.values() if domain.share is not None]
        if len(shares) == len(domains) and not math.isclose(sum(shares), 1, abs_tol=1e-6):
            yield "domains", f"their shares come to {sum(shares):g}; expected 1"


def _needs_answers(rewards: dict[str, float] | None) -> bool:
    """Return whether rewards need answers; they do not if a reward model alone judges."""
    return REWARD_MODEL not in (rewards or {}) or "accuracy" in (rewards or {})
