import toy_ladder as toy
from toy_run import HOSTILE

from analysis.stage_ladder.build import disagreement, one_prompt


def test_the_item_on_which_steps_disagree_most(run, ladder):
    chosen = one_prompt(run, ladder)
    assert list(chosen) == ["heldout", "requests"]
    heldout = chosen["heldout"]
    assert heldout.question == f"1+{toy.DECISIVE}"
    assert [side.checkpoint for side in heldout.sides] == list(toy.LEVELS)
    assert [side.correct for side in heldout.sides] == [False] * 3 + [True] * 3
    assert heldout.sides[1].completion == HOSTILE
    assert heldout.sides[5].scores.startswith("language consistency 1.00, readability 0.80, ")
    assert chosen["requests"].question == "1+5"  # all are right on all: the gold rewards lie farthest apart


def test_more_pairs_of_right_and_wrong_come_first():
    def rows(*right, gold=None):
        return [{"correct": [one]} | ({"gold": [g]} if gold else {}) for one, g in
                zip(right, gold or right, strict=True)]  # fmt: skip

    assert disagreement(rows(True, True, False, False)) > disagreement(rows(True, False, False, False))
    assert disagreement(rows(None, None)) == (0, 0.0)
    assert disagreement(rows(True, True, gold=[1.0, -2.0])) == (0, 3.0)


def test_a_step_whose_samples_are_gone_is_left_out(run, ladder, monkeypatch):
    read = type(run).samples
    monkeypatch.setattr(
        type(run), "samples", lambda self, node: iter(()) if node.name == "dev2" else read(self, node)
    )
    names = [side.checkpoint for side in one_prompt(run, ladder)["heldout"].sides]
    assert names == [name for name in toy.LEVELS if name != "Dev2"]
    monkeypatch.setattr(type(run), "samples", lambda self, node: iter(()))
    assert one_prompt(run, ladder) == {}
