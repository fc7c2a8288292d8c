"""Judged claims grouped by author: the recipe's paper, other papers, ourselves; and sanity checks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.verdicts import claims
from analysis.verdicts.rule import SHOWN
from encore.recipe.claims import OURS
from encore.recipe.recipe import Recipe

DOT = "\N{MIDDLE DOT}"  # separates words, one of which has a comma
SANITY = "sanity checks of the code"


@dataclass(frozen=True)
class Groups:
    """Judged claims grouped by author; sanity checks of the code are a group of their own."""

    own: list[claims.Verdict]  # claims of the paper that the recipe reproduces
    others: list[claims.Verdict]  # claims of other papers
    ours: list[claims.Verdict]  # claims that no paper makes
    sanity: list[claims.Verdict]

    @property
    def findings(self) -> list[claims.Verdict]:
        """The claims of papers and our own, without the sanity checks."""
        return self.own + self.others + self.ours

    def told(self) -> str:
        """Return a text such as `2 shown; of other papers: 1 shown; our own: …; sanity checks …: 1 of 1`."""
        named = (("", self.own), ("of other papers: ", self.others), ("our own: ", self.ours))
        parts = [f"{label}{counts(some)}" for label, some in named if some]
        if self.sanity:
            parts.append(f"{SANITY}: {passed(self.sanity)}")
        return "; ".join(parts) or counts([])


def counts(verdicts: Iterable[claims.Judged]) -> str:
    """Return a text such as `3 shown · 1 open`."""
    return f" {DOT} ".join(f"{n} {word}" for word, n in claims.tally(verdicts).items()) or "none stated"


def passed(sanity: Sequence[claims.Judged]) -> str:
    """Return how many sanity checks hold, such as `2 of 2`; "" if there are none."""
    held = sum(check.word == SHOWN for check in sanity)
    return f"{held} of {len(sanity)}" if sanity else ""


def of_recipe(recipe: Recipe, verdicts: Iterable[claims.Verdict]) -> Groups:
    """Return the verdicts on claims that the recipe states, grouped by the claims' authors."""
    groups = Groups([], [], [], [])
    for verdict in verdicts:
        claim = recipe.document.claims[verdict.id]
        if claim.kind == "sanity":
            groups.sanity.append(verdict)
        elif claim.paper == OURS:
            groups.ours.append(verdict)
        else:
            (groups.own if claim.url == recipe.document.url else groups.others).append(verdict)
    return groups
