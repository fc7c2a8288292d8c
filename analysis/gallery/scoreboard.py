"""The scoreboard: a line for each claim of each record, and its primary claims as Markdown."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.numbers.means import DASH, shown
from analysis.numbers.recorded import current
from analysis.page.markdown import lines as table_lines
from analysis.verdicts import claims, reversals, whose
from analysis.verdicts.claims_table import holds_when
from encore.recipe.claims import OURS, Claim
from encore.recipe.graph import Graph
from encore.recipe.kinds.grpo import GrpoStage
from encore.recipe.recipe import Recipe

OWN = "Encore's own"  # name used instead of a paper's if no paper makes the claim


@dataclass(frozen=True)
class Line:
    """A judged claim as a line of the scoreboard.

    `paper` names who made the claim, and `method` is the kind of the last stage of the claim's first arm.
    """

    recipe: str
    record: str
    paper: str
    url: str
    id: str
    says: str
    published: str  # the number that the paper reports, with its scale; empty if the recipe does not say
    source: str
    second_hand: bool
    kind: str  # finding | sanity
    family: str
    asked: str
    metric: str
    ours: str
    seeds: int
    word: str
    method: str
    note: str
    cause: str  # possible cause in our world, for a claim that came out reversed


def lines(folder: Path, graph: Graph) -> list[Line]:
    """Return a line for each claim of the records in `folder`, without records of an earlier world."""
    return [line for record in current(folder, graph) for line in of_record(record, graph)]


def of_record(record: Path, graph: Graph) -> list[Line]:
    """Return a line for each claim of a record."""
    name, _, scale = record.name.rpartition("-")
    return list(of_claims(graph.recipes[name], scale, record / "claims.csv"))


def of_claims(recipe: Recipe, scale: str, judged: Path) -> Iterator[Line]:
    """Yield a line for each claim of a recipe at a scale that has a verdict in `judged`, a claims.csv."""
    stated = {claim.id: claim for claim in recipe.claims(scale)}
    verdicts = [v for v in claims.read_verdicts(judged) if v.id in stated]
    causes = reversals.causes(recipe, verdicts)
    for v in verdicts:
        claim = stated[v.id]
        url, paper = _origin(claim, recipe)
        yield Line(
            recipe=recipe.name,
            record=f"{recipe.name}-{scale}",
            paper=paper,
            url=url,
            id=v.id,
            says=claim.says,
            published=claim.published or "",
            source=claim.source,
            second_hand=claim.second_hand,
            kind=claim.kind,
            family=v.family,
            asked=holds_when(v),
            metric=v.metric,
            ours=shown(v.difference, v.metric) if v.n else DASH,
            seeds=v.n,
            word=v.word,
            method=_method(recipe, scale, claim),
            note=v.note,
            cause=causes.get(v.id, ""),
        )


def _origin(claim: Claim, recipe: Recipe) -> tuple[str, str]:
    """Return the address and the name of a claim's paper.

    For our own claims, they are the path of the recipe, from the folder of records on, and OWN.
    """
    if claim.paper == OURS:
        return f"../../{next(iter(recipe.files.shown))}", OWN
    return claim.url, label(claim.url)


def groups(board: Sequence[Line]) -> tuple[list[Line], list[Line], list[Line]]:
    """Return the claims of papers, our own claims, and the sanity checks of the code."""
    findings = [line for line in board if line.kind != "sanity"]
    return (
        [line for line in findings if line.paper != OWN],
        [line for line in findings if line.paper == OWN],
        [line for line in board if line.kind == "sanity"],
    )


def markdown(board: Sequence[Line]) -> str:
    """Return a Markdown section with the tally and the primary claims, for sites that show no HTML page."""
    head = ("paper", "primary claim", "published", "asked", "ours", "seeds", "verdict")
    rows = [head, ("---",) * len(head), *(_row(line) for line in board if line.family == "primary")]
    table = table_lines(rows)
    return (
        f"## Scoreboard\n\nOf {len(board)} claims: {_told(board)}. The primary ones are here, all in "
        "[`index.html`](index.html). *Published* is the paper's, of its models and tasks; *asked* is our "
        f"test of the difference d in our world.\n\n{table}"
    )


def _row(line: Line) -> tuple[str, ...]:
    verdict = f"[{line.word}]({line.record})" + (f": {line.cause}" if line.cause else "")
    cells = (marked(line), line.published or DASH, line.asked, line.ours, str(line.seeds), verdict)
    return (f"[{line.paper}]({line.url})", *(cell.replace("|", "\\|") for cell in cells))


def marked(claim: Claim | Line) -> str:
    """Return a claim in words, with `second-hand` or `sanity check` in brackets if it is one."""
    marks = [
        *(["second-hand"] if claim.second_hand else []),
        *(["sanity check"] if claim.kind == "sanity" else []),
    ]
    return claim.says + (f" ({', '.join(marks)})" if marks else "")


def _told(board: Sequence[Line]) -> str:
    """Return a text with the number of claims with each verdict: papers' claims, ours, and sanity checks."""
    papers, ours, sanity = groups(board)
    return (
        f"of papers {whose.counts(papers)}; our own {whose.counts(ours)}; {whose.SANITY} "
        f"{whose.passed(sanity) or 'none'}"
    )


def label(url: str) -> str:
    """Return a short name of an address: `arXiv 2503.14476`, or host, owner and repository."""
    number = re.search(r"arxiv\.org/abs/(\d{4}\.\d{4,5})", url)
    return f"arXiv {number[1]}" if number else "/".join(url.removeprefix("https://").split("/")[:3])


def _method(recipe: Recipe, scale: str, claim: Claim) -> str:
    """Return the kind of the last stage of a claim's first arm, for `grpo` with its loss: `grpo (dapo)`."""
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
