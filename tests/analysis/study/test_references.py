"""Published curves: ours is read at their points, drawn over them, and judged by its largest distance."""

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from analysis.study import document, references
from analysis.study.judge import command, judge, lines
from encore.errors import UserError

CLAIM = {
    "says": "Ours follows the published curve.",
    "source": "Figure 2, <script>exported</script> by its authors",
    "reference": "published.csv",
    "test": {"metric": "distance/reward", "of": "a/train", "direction": "equal", "margin": 0.1},
}


@pytest.fixture
def folder(tmp_path):
    """Eight seeds along y = x / 100 at each of 100 steps, and that line at 11 points, published."""
    steps = np.arange(1, 101)
    for seed in range(1, 9):
        noise = np.random.default_rng(seed).normal(0, 0.01, 100)
        rows = {"step": steps, "reward": steps / 100 + noise, "samples": steps * 64}
        pd.DataFrame(rows).to_csv(tmp_path / f"a-{seed}.csv", index=False)
    published = pd.DataFrame({"step": np.linspace(0, 100, 11), "value": np.linspace(0, 1, 11)})
    (tmp_path / "published.csv").write_text("# exported\n" + published.to_csv(index=False))
    published.assign(samples=published.step * 64).to_csv(tmp_path / "by_samples.csv", index=False)
    return tmp_path


def write(folder, also=None, **changes):
    test = CLAIM["test"] | changes.pop("test", {})
    study = {"title": "A", "runs": {"train": {"files": ["{arm}-{seed}.csv"]}}}
    claim = {key: value for key, value in (CLAIM | {"test": test} | changes).items() if value is not None}
    study["claims"] = {"follows": claim, **(also or {})}
    (folder / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    return folder / "study.yaml"


def judged(folder, **changes):
    return judge(document.load(write(folder, **changes)), folder)


def change(path, **columns):
    rows = pd.read_csv(path)
    rows.assign(**{name: new(rows) for name, new in columns.items()}).to_csv(path, index=False)


@pytest.mark.parametrize("axis", [{}, {"axis": "samples", "reference": "by_samples.csv"}])
def test_ours_within_the_band_is_shown_on_any_axis(folder, axis):
    result = judged(folder, **axis)
    (verdict,) = result.verdicts
    assert (verdict.word, verdict.n) == ("shown", 8)
    assert 0 < verdict.estimate < 0.06
    assert result.collected.notes == []


def test_one_excursion_counts_however_short(folder):
    """Above the band near one point of eleven, in every seed; its mean over the curve is small."""
    for seed in range(1, 9):
        change(folder / f"a-{seed}.csv", reward=lambda rows: rows.reward + 0.4 * rows.step.between(45, 55))
    (verdict,) = judged(folder).verdicts
    assert verdict.word == "reversed" or verdict.low > 0.1
    assert verdict.estimate == pytest.approx(0.4, abs=0.03)


def test_excursions_to_both_sides_do_not_cancel(folder):
    for seed in range(1, 9):
        sign = 1 if seed % 2 else -1
        change(folder / f"a-{seed}.csv", reward=lambda rows, sign=sign: rows.reward + sign * 0.4)
    assert judged(folder).verdicts[0].estimate == pytest.approx(0.4, abs=0.05)


@pytest.mark.parametrize(
    ("spoil", "note"),
    [
        (lambda rows: rows.iloc[:60], "a/train, seed 3 ended at step 60 of 100: left out"),
        (
            lambda rows: rows.assign(reward=rows.reward.where(rows.step != 7, np.inf)),
            "a/train, seed 3 is not finite everywhere: left out",
        ),
        (
            lambda rows: rows.assign(samples=rows.samples[::-1].to_numpy()),
            "a/train, seed 3: samples falls from one step to a later one: left out",
        ),
        (
            lambda rows: rows.assign(samples=rows.samples + 1e9),
            "a/train, seed 3 has nothing near by_samples.csv on the axis samples: left out",
        ),
    ],
)
def test_a_run_that_cannot_be_laid_over_it_is_named(folder, spoil, note):
    spoil(pd.read_csv(folder / "a-3.csv")).to_csv(folder / "a-3.csv", index=False)
    result = judged(folder, axis="samples", reference="by_samples.csv")
    assert note in result.collected.notes
    assert result.verdicts[0].n == 7


def test_a_reference_that_goes_on_is_compared_as_far_as_ours_goes(folder):
    longer = pd.DataFrame({"step": [0, 50, 100, 200], "value": [0, 0.5, 1, 9]})
    longer.to_csv(folder / "published.csv", index=False)
    result = judged(folder)
    assert "our runs end at step 100 of 200: published.csv is compared up to there" in lines(result)[-1]
    assert result.verdicts[0].estimate < 0.3


@given(
    st.lists(st.integers(-100, 100), min_size=2, max_size=8, unique=True),
    st.lists(st.tuples(st.integers(-120, 120), st.floats(-5, 5)), max_size=20),
)
def test_a_distance_is_the_mean_over_what_is_nearest_to_a_point(points, logged):
    """By whole numbers, so that none lies between two points by rounding alone."""
    at = np.sort(points).astype(float)
    reference = references.Reference(at, at**2 / 100)
    near = reference.near(*(np.array([pair[i] for pair in logged], dtype=float) for i in (0, 1)))
    away = {place: [] for place in at}
    for x, y in logged:
        if at[0] <= x <= at[-1]:
            nearest = max(at, key=lambda place: (-abs(place - x), place))  # of two, the later one
            away[nearest].append(y - np.interp(x, at, reference.value))
    for place, found, published in zip(at, near, reference.value, strict=True):
        expected = published + np.mean(away[place]) if away[place] else np.nan
        assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"source": "ours"}, "claims.follows.source: missing; where was the curve of reference published?"),
        ({"test": {"metric": "last/reward"}}, "with reference expected distance/METRIC, got last/reward"),
        (
            {"test": {"against": "b/train"}},
            "claims.follows.test.against: the curve is compared with reference",
        ),
        ({"test": {"direction": "higher"}}, "claims.follows.test.direction: with reference expected equal"),
        ({"reference": None}, "claims.follows.reference: missing; the file of the published curve"),
        ({"reference": "publishd.csv"}, "publishd.csv: not a CSV: "),
        ({"axis": "samples"}, 'published.csv: no column "samples"'),
        ({"axis": "flops"}, 'runs.train: no file has a metric "flops"'),
        ({"also": {"too": CLAIM}}, "claims.too.test: the same curve as of claims.follows"),
    ],
)
def test_a_mistake_is_one_line(folder, changes, said):
    with pytest.raises(UserError) as error:
        judged(folder, **changes)
    assert said in str(error.value)
    assert len(error.value.lines) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("step,value\n1,x\n2,3\n", "expected finite numbers"),
        ("step,value\n1,1\n1,3\n", "two points or more, each at a step of its own"),
        ("step,value\n1,1\n", "two points or more"),
        ("", "not a CSV"),
        ("\0\0\0", "not a CSV|no column"),
    ],
)
def test_a_reference_that_is_no_curve_is_one_line(folder, content, said):
    (folder / "published.csv").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=said) as error:
        judged(folder)
    assert len(error.value.lines) == 1


def test_the_page_shows_the_curve_with_its_source_and_no_markup(folder):
    command(write(folder), None)
    page = (folder / "study/index.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "Published: Figure 2, &lt;script&gt;" in page
    assert (folder / "study/curve-follows.svg").is_file()
