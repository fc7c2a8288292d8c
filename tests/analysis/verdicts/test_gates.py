"""The preconditions of claims, as a table."""

from judged_claims import flat
from toy_run import changed

from analysis.numbers.means import DASH
from analysis.verdicts import gates


def test_every_condition_is_listed_once_with_what_was_measured(run, numbers):
    first, second, *rest = flat(run.recipe.layers.content)
    gated = changed(
        run,
        gates={
            "learnt": {"metric": "heldout/accuracy", "of": "base-recipe/after", "about": "it learnt"},
            "gained": {
                "metric": "heldout/accuracy",
                "of": "base-recipe/after",
                "against": "base-recipe/before",
            },
            "unknown": {"metric": "mean/nothing", "of": "base-recipe/grpo"},
        },
        claims=[
            {**first, "needs": ["learnt >= 0.5", "gained >= 0.9"]},
            {**second, "needs": "learnt >= 0.5"},
            {**rest[0], "needs": "unknown >= 1"},
            {**rest[1], "needs": "learnt >= 0.6", "scales": ["paper"]},
        ],
    )
    table = gates.table(gated, numbers).set_index("precondition")
    assert list(table.index) == ["it learnt", "gained", "unknown"]
    assert table.needed.tolist() == ["at least 0.5", "at least 0.9", "at least 1"]
    assert table.met.tolist() == ["yes", "no", "no"]
    assert table.claims.tolist() == [f"{first['id']}, {second['id']}", first["id"], rest[0]["id"]]
    assert table.value.tolist() == ["0.8", "0.61", DASH]
    assert table.measured["gained"].startswith("heldout/accuracy: base-recipe/after ")
