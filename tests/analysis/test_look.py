"""What a look finds, and a report of arms that looks have stopped."""

from dataclasses import asdict, replace

import pytest
from judged_claims import flat
from toy_run import ARMS, changed, load_all, make

from analysis import command_line, look
from analysis.arms import uncertainty
from analysis.numbers.run import Run
from analysis.numbers.table import collect, final
from analysis.provenance import configuration
from analysis.provenance.jobs import jobs
from analysis.verdicts import claims, summary
from analysis.verdicts.decision import judge_run
from encore.recipe import load, looks
from encore.recipe.graph import Graph
from encore.recipe.looks import Look
from encore.runtime import files


@pytest.fixture
def stopped(run) -> Run:
    """The run with two arms stopped after two of its three seeds, and one after one."""
    return replace(run, by_looks=dict.fromkeys(run.arms, 3) | {"random": 2, "no-format": 2, "longer-cap": 1})


def verdicts(run: Run, **given: str) -> list[claims.Verdict]:
    """The run's verdicts; of these claims another."""
    judged = judge_run(run, final(collect(run)))[-1]
    return [replace(one, word=given.get(one.id.replace("-", "_"), "shown")) for one in judged]


def test_open_claims_name_the_arms_they_need_in_the_order_of_the_recipe(run):
    found = look.found(run, verdicts(run, format_alone_falls_short="open"))
    assert found.open == ["format-alone-falls-short"]
    assert found.arms == ["base-recipe", "format-only"]
    assert found.seeds == len(run.seeds)
    assert look.found(run, verdicts(run)).arms == []


def test_a_claim_that_cannot_be_tested_asks_for_no_seeds(run):
    assert look.found(run, verdicts(run, rl_lifts_accuracy="not tested")).open == []
    assert look.found(run, verdicts(run, rl_lifts_accuracy="open")).open


def test_the_arms_of_a_gate_go_on_with_its_claim(run):
    gates = {"apart": {"metric": "heldout/accuracy", "of": "random/after"}}
    stated = [{**one, "needs": "apart >= 0.1"} for one in flat(run.recipe.layers.content)[:1]]
    gated = changed(run, gates=gates, claims=stated)
    assert "random" in look.found(gated, verdicts(gated, rl_lifts_accuracy="open")).arms
    assert "random" not in look.found(run, verdicts(run, rl_lifts_accuracy="open")).arms


def test_the_arms_of_a_frontier_go_on_with_its_claim(run):
    """And no claim that has been decided asks for them."""
    asked = {"metric": "heldout/accuracy_at_kl/1", "of": "frontier/swept", "against": "frontier/other"}
    frontiers = {"swept": ["random/before", "random/after"], "other": ["no-format/after", "random/before"]}
    at_kl = changed(run, frontiers=frontiers, claims=[flat(run.recipe.layers.content)[0] | asked])
    found = look.found(at_kl, verdicts(at_kl, rl_lifts_accuracy="open"))
    assert found.arms == ["random", "no-format"]
    assert look.found(at_kl, verdicts(at_kl)).arms == []


@pytest.mark.slow
def test_the_command_judges_the_seeds_that_the_looks_before_it_left(tmp_path, monkeypatch, capsys):
    """Of eight and sixteen seeds on disk: an arm that the first look stopped is read no further."""
    root = make(tmp_path, seeds=tuple(range(16)))
    monkeypatch.chdir(root)
    seen = {}

    def judge(run, numbers):
        seen.update(rows=numbers, seeds=run.seeds, stopped=run.stopped)
        return judge_run(run, numbers)

    monkeypatch.setattr(look, "judge_run", judge)
    run = Run(Graph(load_all(root)), "toy_zero", "cpu", ARMS, tuple(range(16)), root)
    monkeypatch.setattr(load, "load_sound", lambda folder, own: (run.graph.recipes, {}))
    argv = ["--recipe", "toy_zero", "--scale", "cpu", "--seeds"]

    def take(seeds: str) -> int:
        return command_line.main(
            "", look.command, [*argv, seeds, "--out", f"results/toy_zero/cpu/looks/{seeds}.json"]
        )

    assert take("8") == 0
    first = looks.read_look(looks.path("toy_zero", "cpu", 8))
    assert set(first.verdicts) == {claim.id for claim in run.recipe.claims("cpu")}
    assert seen["stopped"] == {}
    files.write_json(looks.path("toy_zero", "cpu", 8), asdict(replace(first, arms=["base-recipe"])))
    assert take("16") == 0
    assert len(seen["seeds"]) == 16
    assert seen["stopped"] == dict.fromkeys([arm for arm in run.arms if arm != "base-recipe"], 8)
    counts = seen["rows"].groupby("arm").seed.nunique()
    assert counts["base-recipe"] == 16
    assert counts["random"] == 8
    assert capsys.readouterr().out.startswith("[toy_zero/cpu] look at 8 seeds: ")
    assert take("5") == 2
    assert capsys.readouterr().err == "error: --seeds: expected the number of a look (8, 16, 32), got 5\n"


@pytest.mark.parametrize(
    ("arms", "more"), [([], ""), (["base-recipe", "random"], "; more seeds for base-recipe, random")]
)
def test_a_look_says_who_goes_on(arms, more):
    verdicts = {"a": "shown", "b": "open"}
    found = Look(8, verdicts, ["b"] if arms else [], arms)
    assert look.line(found) == f"look at 8 seeds: {1 if arms else 2} of 2 claims decided{more}"
    assert "more seeds" not in look.line(replace(found, seeds=32))


def test_a_run_has_no_more_of_an_arm_than_its_looks_took(run, stopped):
    assert stopped.nodes("random", 2) == []
    assert stopped.nodes("random", 1) == run.nodes("random", 1)
    counts = collect(stopped).groupby("arm").seed.nunique()
    assert counts.to_dict() == dict.fromkeys(run.arms, 3) | {"random": 2, "no-format": 2, "longer-cap": 1}
    left = {node for node in stopped.all_nodes() if node.arm == "random"}
    assert {node.seed for node in left} == {0, 1}
    late = run.graph.owner(run.evaluation("random", "after", 2))
    assert list(run.samples(late))
    assert not list(stopped.samples(late))
    assert set(jobs(stopped).seed[jobs(stopped).arm == "random"]) == {0, 1}


def test_a_first_arm_that_was_stopped_still_has_its_base_model(run):
    """What every seed shares is found among the seeds that the arm has."""
    first = replace(run, by_looks=dict.fromkeys(run.arms, 3) | {run.arms[0]: 2})
    assert uncertainty.shares_base(run)
    assert uncertainty.shares_base(first)


def test_the_summary_says_which_arms_were_stopped(stopped):
    assert summary.stopped(stopped) == " (stopped once decided: 1 at 1 seed, 2 at 2 seeds)"


def test_the_page_tells_how_to_get_it_again(run, stopped):
    assert configuration.commands(stopped, "report").endswith("report.html --config scale=cpu seeds=auto")
    assert configuration.commands(run, "report").endswith("report.html --config scale=cpu seeds=3")


def test_seeds_auto_reads_the_looks(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(load, "load_sound", lambda folder, own: (run.graph.recipes, {}))
    monkeypatch.chdir(tmp_path)
    argv = ["--recipe", run.name, "--scale", "cpu", "--seeds", "auto", "--out", "out"]
    seen: list[Run] = []
    assert command_line.main("", lambda run, *rest: seen.append(run), argv) == 2
    assert "no look was taken" in capsys.readouterr().err
    for seeds, arms in ((8, ["base-recipe"]), (16, [])):
        found = Look(seeds, {}, [], arms)
        files.write_json(looks.path(run.name, "cpu", seeds), asdict(found))
    assert command_line.main("", lambda run, *rest: seen.append(run), argv) == 0
    assert len(seen[0].seeds) == 16
    assert set(seen[0].stopped) == set(run.arms) - {"base-recipe"}
    quick = [*argv, "--report", "quickstart"]
    assert command_line.main("", lambda run, *rest: seen.append(run), quick) == 0
    assert seen[1].by_looks is None
