"""The scoreboard of the committed records: each claim under its paper, ours and sanity checks apart."""

import re
from pathlib import Path

import pytest
from papers import GRAPH

from analysis.gallery import scoreboard
from analysis.verdicts import reversals, whose

RECORDS = Path(__file__).parents[3] / "results/published"
BOARD = {(line.recipe, line.id): line for line in scoreboard.lines(RECORDS, GRAPH)}

# Claims that once stood, or could stand, under the paper of their recipe, which does not make them.
NOT_OF_THE_PAPER = {
    scoreboard.OWN: [
        ("code", "shown-tests-are-special-cased"),
        ("code", "hidden-tests-teach-programs"),
        ("reward_design", "mix-reaches-outcome-only"),
        ("reward_design", "heuristics-alone-are-had"),
        ("reward_design", "heuristics-alone-teach-nothing"),
        ("reward_design", "heuristics-are-hacked-in-the-mix"),
        ("policy_gradient", "ratio-changes-little"),
        ("policy_gradient", "clipping-changes-little"),
        ("policy_gradient", "log-ratio-unlearns"),
        ("distill", "rl-after-distillation-is-more-than-updates"),
        ("instructgpt", "critic-from-reward-model-starts-closer"),
        ("iterative", "third-round-wins"),
        ("iterative", "pairs-beat-positives-by-gold"),
        ("rlaif", "structured-errors-cost-more"),
        ("tldr", "advantage-whitening-helps"),
    ],
    "arXiv 2601.03525": [("code", "partial-credit-teaches-more")],
    "arXiv 2402.13228": [("dpo", "chosen-log-probability-falls")],
    "arXiv 2503.09516": [("tools", "results-belong-outside-the-loss")],
}
PLACES = [(paper, place) for paper, places in NOT_OF_THE_PAPER.items() for place in places]


@pytest.mark.parametrize(("paper", "place"), PLACES, ids=lambda value: "-".join(value))
def test_a_claim_stands_under_who_makes_it(paper, place):
    assert BOARD[place].paper == paper


def test_what_a_source_calls_ours_stands_under_no_paper():
    said = {place for place, line in BOARD.items() if re.search(r"\bours\b|said here", line.source.lower())}
    ours = {place for place, line in BOARD.items() if line.paper == scoreboard.OWN}
    assert len(said) > 10
    assert said <= ours
    for recipe, claim in ours:
        assert (RECORDS / BOARD[recipe, claim].url).resolve() == GRAPH.recipes[recipe].files.file()


def test_a_claim_of_the_documentation_of_trl_is_not_of_the_paper():
    claim = GRAPH.recipes["tldr"].document.claims["ppo-is-preferred-1b"]
    assert scoreboard.label(claim.url) == "huggingface.co/docs/trl"


def test_sanity_checks_are_counted_apart_from_findings():
    papers, ours, sanity = scoreboard.groups([*BOARD.values()])
    assert len(papers) + len(ours) + len(sanity) == len(BOARD)
    assert ("gspo", "gspo-token-is-gspo") in {(line.recipe, line.id) for line in sanity}
    held = f"{whose.SANITY} {sum(line.word == whose.SHOWN for line in sanity)} of {len(sanity)}"
    assert held in scoreboard.markdown([*BOARD.values()])


def test_asked_and_published_stand_apart():
    head, row = re.findall(r"\| (?:paper|\[arXiv 2503.14476\]).*", scoreboard.markdown([*BOARD.values()]))[:2]
    assert head == "| paper | primary claim | published | asked | ours | seeds | verdict |"
    assert "far above naive GRPO. | AIME 2024: 30 to 50 | d > 0.05 |" in row


def test_second_hand_sources_are_marked():
    marked = {claim for (recipe, claim), line in BOARD.items() if recipe == "tools" and line.second_hand}
    assert len(marked) == 5
    row = next(
        row for row in scoreboard.markdown([*BOARD.values()]).splitlines() if "it comes to call" in row
    )
    assert "(second-hand, sanity check)" in row


def test_a_reversed_line_says_what_may_cause_it():
    reverse = [line for line in BOARD.values() if line.word == reversals.REVERSED]
    assert len(reverse) > 10
    for line in reverse:
        assert line.cause.endswith(".")
    assert not any(line.cause for line in BOARD.values() if line.word != reversals.REVERSED)
