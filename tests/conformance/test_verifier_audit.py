"""results/published/verifier_audit.csv is what the verifiers do now; and what they must never do."""

import pins
import pytest
import verifier_audit
from verifier_audit import BY_HAND, COMMAND, COUNTS, SOURCES, by_hand, committed
from verifier_variants import GAMING, variants

AGAIN = f"write the table again: {COMMAND}"


def test_there_are_enough_labelled_answers_and_each_has_one_label():
    given = variants()
    assert len(given) >= 300
    assert sum(one.right for one in given) >= 150
    labels = {(one.verifier, one.problem.answer, one.completion): one.right for one in given}
    assert all(labels[one.verifier, one.problem.answer, one.completion] is one.right for one in given)


def test_the_table_has_a_row_for_each_group_and_set():
    """Rows of published sets name the commit they are of, and lose no answer."""
    rows = committed()
    groups = {(one.verifier, one.group) for one in variants()}
    assert {(row["verifier"], row["answers"]) for row in rows if row["source"] == BY_HAND} == groups, AGAIN
    sets = [row for row in rows if row["source"] != BY_HAND]
    assert [row["answers"] for row in sets] == [source.answers for source in SOURCES], AGAIN
    for row, source in zip(sets, SOURCES, strict=True):
        assert source.commit[:12] in row["source"], AGAIN
        assert sum(int(row[name]) for name in COUNTS) > 0


def test_nothing_hostile_is_accepted_in_the_table():
    hostile = [row for row in committed() if row["answers"] in ("hostile", GAMING)]
    assert len(hostile) == 4
    assert all(row["wrong: accepted"] == "0" for row in hostile)


@pytest.mark.slow
def test_the_variants_are_judged_as_the_table_says():
    pins.hold("audit of the verifiers", by_hand(), [row for row in committed() if row["source"] == BY_HAND])
    assert (
        verifier_audit.COMPARER.algebra.server is None
        or verifier_audit.COMPARER.algebra.server.poll() is None
    )
