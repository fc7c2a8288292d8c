"""Judged claims as a table that can be read again."""

from dataclasses import asdict

import pytest
from judged_claims import judge

from analysis.verdicts import claims
from encore.errors import UserError

EIGHT = [0.8, 0.81, 0.79, 0.82, 0.8, 0.78, 0.8, 0.81]


def test_a_csv_gives_the_same_verdicts(tmp_path):
    verdicts = [
        judge([0.8, 0.5, 0.9], [0.2, 0.2, 0.25], says='NA, "quoted", 1'),
        judge(EIGHT, primary=True, smallest_effect=0.02),
        judge([0.8], source="1"),
        judge([0.8], of="x/after", against=""),
        judge([3.0, -3.0] * 4, margin=0.0, smallest_effect=0.1),
    ]
    path = tmp_path / "claims.csv"
    claims.frame(verdicts).to_csv(path, index=False)
    read = claims.read_verdicts(path)
    for before, after in zip(verdicts, read, strict=True):
        old, new = asdict(before), asdict(after)
        assert new.pop("seeds") == old.pop("seeds")
        assert new.pop("differences") == pytest.approx(old.pop("differences"))
        assert new == pytest.approx(old, nan_ok=True)
    claims.frame([]).to_csv(path, index=False)
    assert claims.read_verdicts(path) == []
    claims.frame(verdicts).drop(columns="level").to_csv(path, index=False)
    with pytest.raises(UserError, match="no column level: an older version"):
        claims.read_verdicts(path)


def test_frame_and_tally():
    verdicts = [judge([0.8, 0.9], 0.2), judge([0.8], of="x/after")]
    frame = claims.frame(verdicts)
    assert frame.differences[0] == "0:0.6 1:0.7"
    assert claims.tally(verdicts) == {"open": 1, "not tested": 1}
    assert list(claims.frame([]).columns) == list(frame.columns)


@pytest.mark.parametrize(
    ("seeds", "stands_at"),
    [(5, "5 of 8 seeds"), (8, "look 1, 8 seeds"), (12, "look 1, 8 seeds"), (16, "look 1, 8 seeds")],
)
def test_a_verdict_says_at_which_look_it_stands(seeds, stands_at):
    assert judge((EIGHT * 2)[:seeds]).stands_at == stands_at


def test_an_open_claim_says_how_many_seeds_the_next_look_takes():
    noisy = [3.0, -3.0] * 4
    assert judge(noisy).stands_at == "8 of 16 seeds"
    assert judge(noisy * 2).stands_at == "16 of 32 seeds"
    assert judge(noisy * 4).stands_at == ""
