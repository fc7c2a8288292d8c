"""All claims of all records, a row each, for the scoreboard and its filters."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.numbers.means import DASH, shown
from analysis.numbers.recorded import current
from analysis.verdicts import claims
from analysis.verdicts.claims_table import holds_when
from encore.recipe.claims import Claim
from encore.recipe.graph import Graph
from encore.recipe.kinds.grpo import GrpoStage
from encore.recipe.recipe import Recipe

OWN = "Encore's own"  # in place of a paper: no paper makes the claim


@dataclass(frozen=True)
class Line:
    """One judged claim. `paper`: whose claim it is; `method`: the kind of stage its first arm ends with."""

    recipe: str
    record: str
    paper: str
    url: str
    id: str
    says: str
    source: str
    family: str
    claimed: str
    metric: str
    ours: str
    seeds: int
    word: str
    method: str
    note: str


def lines(folder: Path, graph: Graph) -> list[Line]:
    """Every claim that the records in `folder` judge, in the records' order; none of an earlier world."""
    return [line for record in current(folder, graph) for line in _of_record(record, graph)]


def _of_record(record: Path, graph: Graph) -> Iterator[Line]:
    name, _, scale = record.name.rpartition("-")
    recipe = graph.recipes[name]
    stated = {claim.id: claim for claim in recipe.claims(scale)}
    for v in claims.read(record / "claims.csv"):
        if v.id in stated:
            url, paper = _origin(v, recipe)
            yield Line(
                recipe=name,
                record=record.name,
                paper=paper,
                url=url,
                id=v.id,
                says=v.says,
                source=v.source,
                family=v.family,
                claimed=holds_when(v),
                metric=v.metric,
                ours=shown(v.difference, v.metric) if v.n else DASH,
                seeds=v.n,
                word=v.word,
                method=_method(recipe, scale, stated[v.id]),
                note=v.note,
            )


def _origin(verdict: claims.Verdict, recipe: Recipe) -> tuple[str, str]:
    """Return the address of who first made a claim, from the folder of records, and the name shown for it."""
    if verdict.paper == claims.OURS:
        return f"../../{next(iter(recipe.files.shown))}", OWN
    url = address(verdict.paper) if verdict.paper else recipe.document.url
    return url, label(url)


def markdown(board: Sequence[Line]) -> str:
    """The primary claims as a Markdown section, for a forge that shows no page."""
    head = ("paper", "primary claim", "claimed", "ours", "seeds", "verdict")
    rows = [head, ("---",) * len(head)]
    for one in board:
        if one.family == "primary":
            says, claimed = (text.replace("|", "\\|") for text in (one.says, one.claimed))
            link = f"[{one.paper}]({one.url})"
            rows.append((link, says, claimed, one.ours, str(one.seeds), f"[{one.word}]({one.record})"))
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return (
        f"## Scoreboard\n\nThe primary claims; all {len(board)} are in [`index.html`](index.html).\n\n{table}"
    )


def address(paper: str) -> str:
    """The address of a claim's `paper`: an arXiv number or an address already."""
    return paper if paper.startswith("https://") else f"https://arxiv.org/abs/{paper}"


def label(url: str) -> str:
    """`arXiv 2503.14476`, or the address without its scheme, up to the repository."""
    found = re.search(r"arxiv\.org/abs/(\d{4}\.\d{4,5})", url)
    return f"arXiv {found[1]}" if found else "/".join(url.removeprefix("https://").split("/")[:3])


def _method(recipe: Recipe, scale: str, claim: Claim) -> str:
    """`grpo (dapo)`: the kind, and the loss where it has several, of the last stage of the claim's arm."""
    arm = claim.test.of.partition("/")[0]
    if arm not in recipe.arms(scale):
        return "frontier"
    names = recipe.stages(scale, arm)
    if not names:
        return "evaluation"
    stage = recipe.stage(scale, arm, names[-1])
    if isinstance(stage, GrpoStage):
        return f"{stage.run} ({stage.objective or stage.args.loss_type})"
    return stage.run
