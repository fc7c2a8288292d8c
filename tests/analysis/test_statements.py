"""Statements beside our claims: mistakes in a file are told; a claim without a record has no verdict."""

import pytest
import yaml
from papers import GRAPH, RECIPES

from analysis import guides, papers, statements
from analysis.statements import Answer, Statement
from encore.errors import UserError


def of_file(folder, **statement):
    path = folder / "guides.yaml"
    path.write_text(yaml.safe_dump([{"name": "KL", "statements": [statement]}]), encoding="utf-8")
    return statements.read_groups(path, GRAPH)


@pytest.mark.parametrize("file", [guides.FILE, papers.FILE])
def test_no_statement_is_lost(file):
    """One whose recipe is misspelt would be left out, as if the recipe were another user's."""
    groups = yaml.safe_load(file.read_text(encoding="utf-8"))
    read = statements.read_groups(file, GRAPH)
    assert [len(group.statements) for group in read] == [len(group["statements"]) for group in groups]


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ({"claims": ["bandit/k3-is-bost"]}, r'k3 is best\.: unknown claim of bandit "k3-is-bost"'),
        ({"claims": ["bandit"]}, r'k3 is best\.: unknown claim of bandit ""'),
        ({}, r"k3 is best\.: expected either claims or why"),
        (
            {"why": "No arm.", "claims": ["bandit/k3-is-unbiased-as-a-number"]},
            "expected either claims or why",
        ),
        ({"reason": "No arm."}, r"guides\.yaml: groups\[0\]\.statements\[0\]\.reason: unknown key"),
    ],
)
def test_a_mistake_is_told_in_one_line(statement, told, tmp_path):
    with pytest.raises(UserError, match=told) as caught:
        of_file(tmp_path, says="k3 is best.", **statement)
    assert "\n" not in str(caught.value)


def test_a_statement_about_a_recipe_that_is_not_here_is_left_out(tmp_path):
    assert of_file(tmp_path, says="k3 is best.", claims=["elsewhere/k3-is-best"]) == []


def test_a_claim_without_a_record_has_no_verdict(tmp_path):
    answered = statements.answers(tmp_path, GRAPH)
    (at_cpu,) = answered["objectives/kl-not-needed"]
    says = RECIPES["objectives"].document.claims["kl-not-needed"].says
    assert at_cpu == Answer(says, statements.UNJUDGED, "", "")
    assert answered["r1_zero/rl-lifts-aime"][0].word == f"{statements.UNJUDGED}, at scale paper"
    statement = Statement(says="It helps.", claims=("objectives/kl-not-needed",))
    shown = statements.table("a guide", [statement], answered)
    assert f"| It helps. | {says} | {statements.UNJUDGED} |" in shown


def test_the_place_has_a_column_where_one_is_given():
    answered = {
        "r/one": [Answer("One.", "open", "0.1", "r-cpu")],
        "r/two": [Answer("a | b", "shown", "", "r-cpu")],
    }
    placed = Statement(says="Both.", where="Table 2", claims=("r/one", "r/two"))
    lines = statements.table(
        "the paper", [placed, Statement(says="Not.", why="No arm.")], answered
    ).splitlines()
    assert lines[0] == "| the paper says | where | we ask | we found |"
    assert lines[2:] == [
        "| Both. | Table 2 | One. | [**open**](r-cpu) 0.1 |",
        r"|  |  | a \| b | [**shown**](r-cpu) |",
        "| Not. |  | No arm. |  |",
    ]
