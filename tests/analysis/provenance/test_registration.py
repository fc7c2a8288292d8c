"""Whether claims were registered is what git says of the commits that the runs name."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from judged_claims import flat
from papers import GRAPH, RECIPES
from toy_run import changed

from analysis.provenance import registration as judged
from analysis.provenance.jobs import jobs
from encore.recipe import registration
from encore.recipe.registration import RegisteredGate

ROOT = Path(__file__).parents[3]
RECORDS = [path.parent for path in sorted(ROOT.glob("results/published/*/registered.yaml"))]
FILES = [path for recipe in RECIPES.values() if (path := registration.path(recipe.files)).exists()]
GATE = {"metric": "heldout/length", "of": "base-recipe/after"}
MEASURED = RegisteredGate(**GATE, values={"1000": 40.0}, mean=40.0, low=40.0, high=40.0)


@pytest.fixture
def git(tmp_path):
    """A repository in `tmp_path`: git(...) runs a command there, and returns the commit that it is at."""

    def run_git(*words: str) -> str:
        author = ["-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *author, *words], cwd=tmp_path, check=True, capture_output=True)
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, capture_output=True, text=True)
        return head.stdout.strip()

    run_git("init", "-q")
    return run_git


@pytest.fixture
def here(run, tmp_path):
    """The toy run, with a claim that needs a gate, as if its recipe lay in `tmp_path`."""
    claims = flat(run.recipe.layers.content)
    claims[1]["needs"] = "lengths >= 10"
    run = changed(run, claims=claims, gates={"lengths": GATE})
    files = replace(run.recipe.files, path=tmp_path / "toy_zero.yaml")
    recipe = replace(run.recipe, files=files)
    return replace(run, graph=replace(run.graph, recipes={**run.graph.recipes, run.name: recipe}))


def register(run, git) -> str:
    """Register the claims of a run as `encore register` does, in a commit; return it."""
    written = registration.of(run.graph, run.recipe, run.scale, {"lengths": MEASURED})
    registration.write(registration.path(run.recipe.files), run.scale, written)
    git("add", ".")
    return git("commit", "-qm", "registered")


def ran_at(run, commit: str, **changes) -> pd.DataFrame:
    return jobs(run).assign(commit=commit, dirty=False, **changes)


def with_margin(run, margin: float):
    claims = flat(run.recipe.layers.content)
    claims[0]["margin"] = margin
    return changed(run, claims=claims)


def test_claims_that_stood_in_the_commit_of_the_runs_are_registered(here, git):
    commit = register(here, git)
    git("commit", "-qm", "later", "--allow-empty")
    later = git("commit", "-qm", "later still", "--allow-empty")
    for ran in (commit, later):
        table = judged.of_run(here, ran_at(here, ran))
        assert set(table.registered) == {"yes"}
        assert set(table.commit) == {commit}
        standing = judged.standing(table)
        assert standing.word == "registered"
        assert commit[:7] in standing.said
        assert "2026-11-21 02:00" in standing.said


def test_runs_before_the_registration_are_not_registered(here, git):
    """The failure that it is there for: a claim written down once its runs had been seen."""
    before = git("commit", "-qm", "no registration", "--allow-empty")
    register(here, git)
    table = judged.of_run(here, ran_at(here, before))
    assert set(table.registered) == {"no"}
    assert judged.standing(table).word == "not registered"
    assert f"was run at commit {before[:7]}, which registers nothing of it" in judged.standing(table).said


def test_one_run_before_the_registration_is_enough(here, git):
    before = git("commit", "-qm", "no registration", "--allow-empty")
    commit = register(here, git)
    trained = ran_at(here, commit)
    early = (trained.arm == "random") & (trained.seed == 2)
    assert early.sum() == 1
    trained.loc[early, "commit"] = before
    table = judged.of_run(here, trained).set_index("claim")
    assert table.registered["random-reward-does-not-help"] == "no"
    assert (table.drop("random-reward-does-not-help").registered == "yes").all()
    standing = judged.standing(table.reset_index())
    assert standing.word == "partly registered"
    assert "Not so random-reward-does-not-help: random/seed2/grpo was run at" in standing.said


def test_a_base_that_another_recipe_trained_may_be_older(here, git):
    before = git("commit", "-qm", "no registration", "--allow-empty")
    trained = ran_at(here, register(here, git))
    trained.loc[trained.stage == "tiny_lm/pretrain", "commit"] = before
    assert set(judged.of_run(here, trained).registered) == {"yes"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"commit": None}, "was run outside git"),
        ({"dirty": True}, "was run from files that differ from commit"),
        ({"commit": "f" * 40}, "registers nothing of it"),
    ],
)
def test_a_run_whose_code_is_unknown_is_not_registered(here, git, changes, why):
    trained = ran_at(here, register(here, git)).assign(**changes)
    assert why in judged.standing(judged.of_run(here, trained)).said


def test_the_page_names_the_package_whose_runs_are_not_registered(here, git):
    trained = ran_at(here, register(here, git)).assign(commit=None)
    trained["versions"] = [{"encore-rl": "9.8 (files ab)"}] * len(trained)
    said = judged.standing(judged.of_run(here, trained)).said
    assert "was run outside git, from the package encore-rl 9.8 (files ab)" in said


def test_a_claim_that_was_changed_is_not_registered(here, git):
    commit = register(here, git)
    table = judged.of_run(with_margin(here, 0.2), ran_at(here, commit))
    assert table.registered.tolist() == ["no", *["yes"] * (len(table) - 1)]
    assert "registers margin 0.25, not 0.2" in table.why[0]


def test_a_gate_that_was_changed_takes_the_claims_that_need_it(here, git):
    commit = register(here, git)
    changed_gate = changed(here, gates={"lengths": GATE | {"of": "base-recipe/before"}})
    table = judged.of_run(changed_gate, ran_at(here, commit)).set_index("claim")
    assert table.index[table.registered == "no"].tolist() == ["length-grows"]
    assert "another gate lengths" in table.why["length-grows"]


def test_an_arm_that_was_changed_takes_the_claims_that_compare_it(here, git):
    commit = register(here, git)
    arms = {**here.recipe.layers.content["arms"]}
    arms["random"] = arms["random"] | {"stages": {"grpo": {"args": {"learning_rate": 3e-4}}}}
    table = judged.of_run(changed(here, arms=arms), ran_at(here, commit)).set_index("claim")
    assert table.index[table.registered == "no"].tolist() == ["random-reward-does-not-help"]
    assert "other stages or evaluations of random" in table.why["random-reward-does-not-help"]


def test_other_seeds_than_the_registered_ones_are_not_registered(here, git):
    commit = register(here, git)
    moved = changed(here, first_seed=3)
    assert "registers first_seed 0, not 3" in judged.of_run(moved, ran_at(here, commit)).why[0]


def test_another_rule_or_other_looks_than_the_registered_ones_are_not_registered(here, git, monkeypatch):
    commit = register(here, git)
    assert judged.of_run(here, ran_at(here, commit)).why[0] == ""
    with monkeypatch.context() as context:
        context.setattr(judged, "RULE", registration.RULE + 1)
        now = f"registers rule {registration.RULE}, not {registration.RULE + 1}"
        assert now in judged.of_run(here, ran_at(here, commit)).why[0]
    monkeypatch.setattr(judged, "LOOKS", (4, 8))
    assert "registers looks 8, 16, 32, not 4, 8" in judged.of_run(here, ran_at(here, commit)).why[0]


def test_a_record_keeps_what_git_said(here, git, tmp_path):
    """Without git a record's claims are registered as they were, and not what was changed after it."""
    commit, out = register(here, git), tmp_path / "record"
    out.mkdir()
    trained = ran_at(here, commit)
    table = judged.of_run(here, trained)
    table.to_csv(out / "registration.csv", index=False)
    judged.keep(here, table, out)
    (tmp_path / ".git").rename(tmp_path / "no_git")
    again = judged.of_run(replace(here, record=out), trained)
    pd.testing.assert_frame_equal(again, table)
    after = judged.of_run(replace(with_margin(here, 0.2), record=out), trained)
    assert after.registered.tolist() == ["no", *["yes"] * (len(table) - 1)]
    assert "changed after the record, which registers margin 0.25, not 0.2" in after.why[0]


def test_a_record_of_unregistered_runs_says_so(here, git, tmp_path):
    before, out = git("commit", "-qm", "no registration", "--allow-empty"), tmp_path / "record"
    out.mkdir()
    table = judged.of_run(here, ran_at(here, before))
    judged.keep(here, table, out)
    assert not [*out.iterdir()]
    assert judged.standing(judged.of_run(replace(here, record=out), jobs(here))).word == "not registered"


def test_a_registration_can_be_read_again_and_keeps_other_scales(here, tmp_path):
    file = tmp_path / "registered.yaml"
    of_cpu = registration.of(here.graph, here.recipe, "cpu", {"lengths": MEASURED})
    of_paper = registration.of(here.graph, here.recipe, "paper", {})
    registration.write(file, "cpu", of_cpu)
    registration.write(file, "paper", of_paper)
    assert registration.parse(file.read_text(), str(file)) == {"cpu": of_cpu, "paper": of_paper}
    assert "aime-majority" in of_paper.claims
    assert "aime-majority" not in of_cpu.claims


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_a_recipe_is_what_it_has_registered(file):
    """A change of a claim, a gate or an arm needs another registration before another judged run."""
    recipe = RECIPES[file.parent.name]
    for scale, registered in registration.parse(file.read_text(), str(file)).items():
        now = registration.of(GRAPH, recipe, scale, registered.gates)
        assert now == registered
        assert all(gate.asks_as(recipe.document.gates[name]) for name, gate in registered.gates.items())


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_git_still_says_what_a_record_has_kept(record):
    """What was registered when a stage ran is registered still; claims on new arms may have come since."""
    kept = pd.read_csv(record / "registration.csv", dtype=str, keep_default_na=False)
    runs = pd.read_csv(record / "runs.csv.xz")
    name, _, scale = record.name.rpartition("-")
    own = runs[~runs.stage.str.contains("/")]
    history = judged.History(registration.path(RECIPES[name].files), scale)
    if judged.git(ROOT, "rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("the history of this checkout was cut off")
    (registered,) = registration.parse((record / "registered.yaml").read_text(), record.name).values()
    assert (kept.registered == "yes").any()
    at_runs = [history.at(commit) for commit in own.commit.unique()]
    assert registered in at_runs
    for then in at_runs:
        assert (then.rule, then.looks, then.first_seed) == (
            registered.rule,
            registered.looks,
            registered.first_seed,
        )
        for section in ("claims", "gates", "arms"):
            now = getattr(registered, section)
            assert getattr(then, section) == {name: now[name] for name in getattr(then, section)}
