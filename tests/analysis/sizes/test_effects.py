"""The effects of a run at another size: kept beside the records, and shown with the record's own."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from papers import GRAPH

from analysis.provenance import jobs
from analysis.sizes import effects, trends
from analysis.sizes import page as pages
from analysis.verdicts.claims import read_verdicts
from encore.errors import UserError

PUBLISHED = Path(__file__).parents[3] / "results/published"
RECIPE = "r1_zero"


@pytest.fixture(scope="module")
def at_base():
    return effects.of_base(PUBLISHED, RECIPE, GRAPH)


def tenfold(of_base, added=0.0, seeds=4):
    """Effects at ten times the size: those of the base's first seeds, and `added`."""
    chosen = sorted({effect.seed for effect in of_base})[:seeds]
    return [
        replace(e, scale="1m", parameters=e.parameters * 10, difference=e.difference + added)
        for e in of_base
        if e.seed in chosen
    ]


def test_the_effects_of_a_record_are_the_differences_of_its_primary_claims(at_base):
    judged = read_verdicts(PUBLISHED / "r1_zero-cpu/claims.csv")
    primary = {
        v.id: dict(zip(v.seeds, v.differences, strict=True))
        for v in judged
        if v.family == "primary" and v.differences
    }
    assert {e.claim for e in at_base} == set(primary)
    assert all(e.difference == pytest.approx(primary[e.claim][e.seed], abs=1e-6) for e in at_base)
    assert {e.parameters for e in at_base} == {134_848}


def test_effects_are_read_as_they_were_kept_and_a_run_replaces_its_own_alone(at_base, tmp_path):
    larger = tenfold(at_base)
    other = [replace(e, scale="8m", parameters=e.parameters * 8) for e in larger]
    effects.keep(larger, tmp_path)
    effects.keep(other, tmp_path)
    effects.keep([replace(e, difference=0.5) for e in larger], tmp_path)
    kept = effects.read_effects(tmp_path)
    assert sorted(e.difference for e in kept if e.scale == "8m") == sorted(e.difference for e in other)
    assert {e.difference for e in kept if e.scale == "1m"} == {0.5}


def seeds_kept(folder: Path) -> list[int]:
    return sorted(effect.seed for effect in effects.read_effects(folder))


def test_further_seeds_of_a_size_are_added_and_another_size_replaces_it(at_base, tmp_path):
    first = tenfold(at_base)
    further = [replace(effect, seed=effect.seed + 100, difference=0.5) for effect in first]
    effects.keep(first, tmp_path)
    effects.keep(further, tmp_path)
    assert seeds_kept(tmp_path) == sorted(effect.seed for effect in first + further)
    effects.keep(first, tmp_path)
    assert seeds_kept(tmp_path) == sorted(effect.seed for effect in first + further)
    resized = [replace(effect, parameters=effect.parameters + 1) for effect in first]
    effects.keep(resized, tmp_path)
    assert seeds_kept(tmp_path) == sorted(effect.seed for effect in first)


def test_the_page_shows_each_claim_at_each_size_with_its_slope(at_base, tmp_path):
    shutil.copytree(PUBLISHED / "r1_zero-cpu", tmp_path / "r1_zero-cpu")
    effects.keep(tenfold(at_base, added=0.3), tmp_path / effects.FOLDER)
    by_recipe = trends.trends(tmp_path, GRAPH)
    text = pages.page(by_recipe)
    for trend in by_recipe[RECIPE]:
        seeds, four = trend.effects[134_848], trend.effects[1_348_480]
        assert trend.slope.estimate == pytest.approx(sum(four) / len(four) - sum(seeds) / len(seeds))
        row = next(line for line in text.splitlines() if f"`{trend.claim.id}`" in line)
        assert f"({len(seeds)} seeds)" in row
        assert "(4 seeds)" in row
        assert f"| {trend.word} |" in row
    assert "| 0.13M | 1.3M |" in text
    pages.pictures(by_recipe, tmp_path / effects.FOLDER)
    first = (tmp_path / "sizes/r1_zero.svg").read_bytes()
    pages.pictures(by_recipe, tmp_path / effects.FOLDER)
    assert (tmp_path / "sizes/r1_zero.svg").read_bytes() == first
    assert all(trend.claim.id in first.decode() for trend in by_recipe[RECIPE])


def test_a_run_gives_the_differences_of_its_primary_claims(run):
    accuracies = {
        (name, seed): json.loads(run.sentinel(run.evaluation("base-recipe", name, seed)).read_text())
        for name in ("before", "after")
        for seed in run.seeds
    }
    value = {
        place: read["tasks"]["heldout"]["metrics"]["accuracy"]["value"] for place, read in accuracies.items()
    }
    kept = effects.of_run(run)
    assert [(e.claim, e.seed, e.parameters) for e in kept] == [
        ("rl-lifts-accuracy", seed, 500_000) for seed in run.seeds
    ]
    for effect in kept:
        gained = value["after", effect.seed] - value["before", effect.seed]
        assert effect.difference == pytest.approx(gained, abs=1e-6)


def test_a_run_that_has_not_finished_is_named_in_one_line(run, tmp_path):
    with pytest.raises(
        UserError, match="no finished run; run `snakemake --cores toy_zero --config scale=cpu`"
    ):
        effects.of_run(replace(run, root=tmp_path))


def test_a_claim_that_a_later_run_did_not_test_keeps_its_seeds(at_base, tmp_path):
    first = tenfold(at_base)
    claim = first[0].claim
    later = [replace(effect, difference=0.5) for effect in first if effect.claim == claim]
    effects.keep(first, tmp_path / effects.FOLDER)
    effects.keep(later, tmp_path / effects.FOLDER)
    kept = effects.read_effects(tmp_path / effects.FOLDER)
    assert sorted((e.claim, e.seed) for e in kept) == sorted((e.claim, e.seed) for e in first)
    assert {e.difference for e in kept if e.claim == claim} == {0.5}


def test_a_size_of_one_seed_has_no_part_in_a_slope(at_base, tmp_path):
    shutil.copytree(PUBLISHED / "r1_zero-cpu", tmp_path / "r1_zero-cpu")
    larger = tenfold(at_base)
    alone = [replace(e, scale="8m", parameters=10 * e.parameters) for e in larger if e.seed == larger[0].seed]
    effects.keep(larger, tmp_path / effects.FOLDER)
    effects.keep(alone, tmp_path / effects.FOLDER)
    for trend in trends.trends(tmp_path, GRAPH)[RECIPE]:
        assert list(trend.effects) == [134_848, 1_348_480]


def test_effects_of_code_that_no_commit_has_are_not_kept(run, monkeypatch):
    monkeypatch.setattr(jobs, "jobs", lambda run, every=jobs.jobs: every(run).assign(dirty=True))
    with pytest.raises(UserError, match="trained from files that differ from 0123456789ab; a record"):
        effects.of_run(run)


def test_one_seed_has_no_effect_to_keep(run):
    with pytest.raises(UserError, match="none of its primary claims was tested in two seeds or more"):
        effects.of_run(replace(run, seeds=(0,)))


@pytest.mark.slow
def test_the_committed_page_and_pictures_are_what_the_files_say(tmp_path):
    """If not: python -m analysis.publish --index"""
    by_recipe = trends.trends(PUBLISHED, GRAPH)
    assert pages.page(by_recipe) == (PUBLISHED / pages.FILE).read_text(encoding="utf-8")
    pages.pictures(by_recipe, tmp_path)
    for recipe in by_recipe:
        assert (tmp_path / f"{recipe}.svg").read_text() == (PUBLISHED / f"sizes/{recipe}.svg").read_text()


def test_the_effects_that_are_kept_are_of_primary_claims_and_of_sizes_that_exist():
    for effect in effects.read_effects(PUBLISHED / effects.FOLDER):
        recipe = GRAPH.recipes[effect.recipe]
        assert effect.scale in recipe.scales
        assert recipe.document.claims[effect.claim].primary
    if (PUBLISHED / effects.FOLDER / effects.FILE).exists():
        rows = pd.read_csv(PUBLISHED / effects.FOLDER / effects.FILE)
        assert not rows.duplicated(["recipe", "scale", "claim", "seed"]).any()
