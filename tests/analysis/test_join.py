"""Records that are joined: the whole from its parts, and what cannot be joined."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from papers import GRAPH

from analysis import join
from analysis.numbers.means import DASH
from analysis.numbers.recorded import with_curves, write
from analysis.preferences.build import build
from analysis.preferences.view import view
from analysis.provenance import health, registration
from encore.errors import UserError

PUBLISHED = Path(__file__).parents[2] / "results/published"
NAME = "gdpo-cpu"  # a record in which each seed has a base model of its own
BY_SEED = ("numbers.csv.xz", "curves.csv.xz", "runs.csv.xz")


def cut(out: Path, even: bool, name: str = NAME) -> Path:
    """Write the even or the odd seeds of a published record into a folder; return its path."""
    shutil.copytree(PUBLISHED / name, out / name)
    for file in BY_SEED:
        rows = pd.read_csv(out / name / file, low_memory=False)
        rows = rows[(rows.seed % 2 == 0) == even]
        if file.endswith(".xz"):
            write(rows, out / name / file)
        else:
            rows.to_csv(out / name / file, index=False)
    checks = pd.read_csv(out / name / "health.csv", dtype=str, keep_default_na=False)
    passed, of = zip(*(map(int, text.split("/")) for text in checks.passed), strict=True)
    half = [f"{n // 2 if even else -(-n // 2)}/{all_ // 2}" for n, all_ in zip(passed, of, strict=True)]
    checks.assign(passed=half).to_csv(out / name / "health.csv", index=False)
    return out / name


def test_the_halves_of_a_record_are_the_record(tmp_path, monkeypatch):
    record, part = cut(tmp_path / "a", even=True), cut(tmp_path / "b", even=False)
    (record / "left.csv").write_text("of an earlier version")
    files, plain = [], pd.read_csv
    monkeypatch.setattr(pd, "read_csv", lambda file, **how: files.append(Path(file)) or plain(file, **how))
    join.join(record, part, GRAPH)
    monkeypatch.undo()
    for file in ("numbers.csv.xz", "curves.csv.xz"):
        assert [files.count(folder / file) for folder in (record, part)] == [1, 1]
    whole = PUBLISHED / NAME
    assert {path.name for path in record.iterdir()} == {path.name for path in whole.iterdir()}
    for path in whole.glob("*.csv*"):
        old, new = (pd.read_csv(folder / path.name, low_memory=False) for folder in (whole, record))
        if path.name == "cost.csv":  # times are planned and summed by the present rules
            old, new = (frame[["stage", "arm", "runs", "cpu_s", "tokens", "flops"]] for frame in (old, new))
        by = [name for name in ("arm", "seed", "node", "step", "metric", "stage", "check") if name in old]
        old, new = (frame.sort_values(by, ignore_index=True) if by else frame for frame in (old, new))
        pd.testing.assert_frame_equal(new[old.columns], old, rtol=1e-4, obj=path.name)


def test_a_seed_that_both_have_is_named_and_nothing_changes(tmp_path):
    record = cut(tmp_path / "a", even=True)
    before = {path.name: path.read_bytes() for path in record.iterdir()}
    with pytest.raises(UserError, match=r"gdpo-cpu has seed 100, 102, 104, [0-9, ]*114 already"):
        join.join(record, cut(tmp_path / "b", even=True), GRAPH)
    assert {path.name: path.read_bytes() for path in record.iterdir()} == before


def test_another_record_or_none_is_refused(tmp_path):
    record = cut(tmp_path / "a", even=True)
    with pytest.raises(UserError, match=r"expected a record called gdpo-cpu"):
        join.join(record, cut(tmp_path / "b", even=False, name="reward_design-cpu"), GRAPH)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"empty: expected the folder of a record"):
        join.join(record, tmp_path / "empty", GRAPH)


def without(record: Path, arm: str) -> None:
    """Leave out an arm of a record."""
    for file in BY_SEED:
        rows = pd.read_csv(record / file, low_memory=False)
        write(rows[rows.arm != arm], record / file)


def test_a_part_may_lack_arms_and_their_claims_stay_as_they_are(tmp_path):
    record, part = cut(tmp_path / "a", even=True), cut(tmp_path / "b", even=False)
    without(part, "no-std")
    join.join(record, part, GRAPH)
    claims = pd.read_csv(record / "claims.csv").set_index("id")
    whole = pd.read_csv(PUBLISHED / NAME / "claims.csv").set_index("id")
    assert claims.n["without-std-is-no-remedy"] == 8
    assert claims.estimate["gdpo-is-more-accurate"] == whole.estimate["gdpo-is-more-accurate"]


def test_other_arms_are_refused(tmp_path):
    record, part = cut(tmp_path / "a", even=True), cut(tmp_path / "b", even=False)
    without(record, "no-std")
    with pytest.raises(UserError, match=r"has other arms, without no-std"):
        join.join(record, part, GRAPH)


def test_win_rates_stay_those_of_the_first_seeds_and_the_page_says_so(tmp_path):
    name = "razor-cpu"
    record, part = cut(tmp_path / "a", even=True, name=name), cut(tmp_path / "b", even=False, name=name)
    first = pd.read_csv(record / "win_rates.csv")
    first.assign(seeds=4).to_csv(record / "win_rates.csv", index=False)  # as a record of four seeds has it
    controlled = (record / "length_controlled.csv").read_bytes()
    join.join(record, part, GRAPH)
    assert (pd.read_csv(record / "win_rates.csv").seeds == 4).all()
    assert (record / "length_controlled.csv").read_bytes() == controlled
    run, table = with_curves(record, GRAPH)
    section = view(run, table, build(run, table))
    captions = {table.title: table.caption for table in section.page.tables}
    words = f"Of 4 of {len(run.seeds)} seeds: the record lacks the completions of the others."
    assert captions["Win rates by gold"].endswith(words)
    assert captions["Win rates at equal length"].endswith(words)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("tools-cpu", "its seeds share base model"),
        ("r1_zero-cpu", "sensitivity.* cannot be made without the completions"),
    ],
)
def test_what_needs_all_seeds_at_once_is_refused(tmp_path, name, why):
    record, part = cut(tmp_path / "a", even=True, name=name), cut(tmp_path / "b", even=False, name=name)
    if name == "tools-cpu":
        runs = pd.concat(pd.read_csv(folder / "runs.csv.xz") for folder in (record, part))
        for folder in (record, part):
            shared = runs[runs.stage == "tiny_lm/pretrain"]
            pd.concat([shared, pd.read_csv(folder / "runs.csv.xz")]).drop_duplicates().to_csv(
                folder / "runs.csv.xz", index=False
            )
    with pytest.raises(UserError, match=why):
        join.join(record, part, GRAPH)


def test_the_worst_check_of_both_is_kept():
    def table(state: str, passed: str, value: str) -> pd.DataFrame:
        row = {"state": state, "check": "entropy", "stage": "grpo", "arm": "a", "passed": passed}
        return pd.DataFrame([row | {"value": value, "limit": "0.1", "message": value}])

    (row,) = health.joined([table("ok", "4/4", "0.2"), table("ok", "2/2", "0.15")]).to_dict("records")
    assert (row["state"], row["passed"], row["value"], row["message"]) == ("ok", "6/6", "0.15", "0.15")
    (row,) = health.joined([table("ok", "4/4", "0.11"), table("warning", "1/2", "0.05")]).to_dict("records")
    assert (row["state"], row["passed"], row["message"]) == ("warning", "5/6", "0.05")
    (row,) = health.joined([table("ok", "1/1", DASH), table("ok", "1/1", DASH)]).to_dict("records")
    assert row["value"] == DASH


def test_a_claim_is_registered_if_all_seeds_registered_it():
    def table(**registered: str) -> pd.DataFrame:
        rows = [{"claim": claim, "registered": word} for claim, word in registered.items()]
        return pd.DataFrame(rows, columns=registration.COLUMNS).fillna("")

    both = registration.joined([table(x="yes", y="yes", z="no"), table(x="yes", y="no", z="yes")])
    assert dict(zip(both.claim, both.registered, strict=True)) == {"x": "yes", "y": "no", "z": "no"}


def test_a_claim_that_one_record_has_not_run_is_registered_by_the_other():
    columns = ["claim", "registered", "why"]
    ran = [("x", "yes", ""), ("y", "no", "run before"), ("z", "no", registration.NOT_RUN)]
    tables = [
        pd.DataFrame(rows, columns=columns).reindex(columns=registration.COLUMNS, fill_value="")
        for rows in (ran, [(claim, "no", registration.NOT_RUN) for claim in "xyz"])
    ]
    for order in (tables, tables[::-1]):
        both = registration.joined(order).set_index("claim")
        assert both.registered.to_dict() == {"x": "yes", "y": "no", "z": "no"}
        assert both.why.to_dict() == {"x": "", "y": "run before", "z": registration.NOT_RUN}


def test_the_command_says_in_one_line_what_is_wrong(tmp_path, capsys):
    assert join.main([str(tmp_path), str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: ")
