"""The best of n by what selects it: which curves there are, the table of their ends, and the figure."""

import math
from dataclasses import replace

import pandas as pd
import pytest
from toy_run import changed

from analysis import report
from analysis.arms import best_of_n, selectors
from analysis.arms.build import build
from analysis.arms.view import view
from analysis.numbers.recorded import recorded
from analysis.numbers.table import COLUMNS
from analysis.page.palette import colours
from analysis.publish import worth_keeping

KS = (1, 4, 16, 64)
BY_STEPS = {"accuracy/bon_product": 0.07, "accuracy/bon_min": 0.05}
ANY = {"accuracy/bon": 0.04, "maj": 0.03, "pass": 0.1}  # four times as many samples bring so much
STEPS = ["proxy", "proxy_product", "proxy_min"]


@pytest.fixture(scope="module")
def judged(run):
    """The toy run whose policies are judged by a process reward model; of arm `random` by an outcome one."""
    evals = run.recipe.layers.content["evals"]
    heldout = evals["tasks"]["heldout"] | {"score": STEPS, "k": [*KS]}
    verifier = {"run": "reward_model", "needs": {"policy": "tiny_lm/pretrain"}, "labels": "steps"}
    arms = run.recipe.layers.content["arms"] | {
        "random": {
            "about": "an outcome reward model",
            "stages": run.recipe.layers.content["arms"]["random"]["stages"]
            | {"verifier": {"labels": "outcome"}},
            "evals": {"tasks": {"heldout": {"score": ["proxy"]}}},
        }
    }
    new = changed(
        run,
        stages=run.recipe.layers.content["stages"] | {"verifier": verifier},
        arms=arms,
        evals=evals | {"models": {"proxy": "verifier"}, "tasks": evals["tasks"] | {"heldout": heldout}},
    )
    return replace(new, arms=("base-recipe", "no-format", "random"), seeds=(0, 1))


def metrics(node, seed):
    """Accuracies over n of an evaluation: those of `after` higher, of an odd seed as well."""
    start = (0.3 if node.name == "before" else 0.5) + 0.02 * seed
    gains = ANY | ({"accuracy/bon": 0.02} if node.arm == "random" else BY_STEPS)
    found = {f"{name}@{k}": start + gain * math.log(k, 4) for name, gain in gains.items() for k in KS}
    return found | {"accuracy": start}


@pytest.fixture(scope="module")
def known(judged):
    rows = []
    for arm in judged.arms:
        for seed in judged.seeds:
            for name in judged.checkpoints(arm):
                node = judged.graph.owner(judged.evaluation(arm, name, seed))
                place = (judged.name, "cpu", arm, seed, name, math.nan)
                rows += [
                    (*place, f"heldout/{metric}", value, value - 0.05, value + 0.05, node.sentinel)
                    for metric, value in metrics(node, seed).items()
                ]
    return pd.DataFrame(rows, columns=COLUMNS)


@pytest.fixture(scope="module")
def found(judged, known):
    return selectors.selectors(judged, known)


def curve(found, *key):
    return found[(found[["task", "policy", "arm", "selector"]] == ("heldout", *key)).all(axis=1)]


def test_a_policy_that_arms_share_has_the_reward_models_of_all(found):
    """Arms base-recipe and no-format share base and reward model, and so the evaluation."""
    base = found[found.policy == "before"]
    assert list(dict.fromkeys(zip(base.arm, base.selector, strict=True))) == [
        ("base-recipe", "PRM, product"),
        ("base-recipe", "PRM, minimum"),
        ("base-recipe", "PRM, last step"),
        ("random", "ORM"),
        ("", "majority"),
        ("", "oracle (pass@n)"),
    ]
    after = found[found.policy == "random"]
    assert set(after.selector) == {"ORM", "majority", "oracle (pass@n)"}
    assert list(found.policy.unique()) == ["before", "base-recipe", "no-format", "random"]


def test_a_curve_is_the_mean_over_models_with_its_interval(found):
    one = curve(found, "base-recipe", "base-recipe", "PRM, product")
    assert list(one.n) == [*KS]
    assert one.accuracy.tolist() == pytest.approx([0.51 + 0.07 * step for step in range(4)])
    assert one.low.tolist() == pytest.approx([0.50 + 0.07 * step for step in range(4)])  # the range of two


def test_of_one_model_the_interval_is_that_of_its_evaluation(judged, known):
    found = selectors.selectors(replace(judged, seeds=(0,)), known[known.seed == 0])
    one = curve(found, "random", "random", "ORM")
    assert one.accuracy.tolist() == pytest.approx([0.5, 0.52, 0.54, 0.56])
    assert (one.accuracy - one.low).tolist() == pytest.approx([0.05] * 4)


def test_the_table_has_the_largest_n(judged, found):
    shown = selectors.selectors_shown(found)
    assert list(shown.columns) == ["policy", "selected by", "reward model of", "n", "accuracy"]
    row = shown[(shown.policy == "before") & (shown["selected by"] == "ORM")].iloc[0]
    assert (row["reward model of"], row.n) == ("random", 64)
    assert row.accuracy.startswith("0.370 [")
    alone = selectors.selectors_shown(found[found.arm.isin(["", "base-recipe"])])
    assert "reward model of" not in alone  # there is one


@pytest.mark.parametrize("names", ["accuracy/bon", "accuracy/bon[^@]*@(?:4|16|64)$"])
def test_without_two_n_by_a_reward_model_there_is_nothing(judged, known, names):
    few = known[~known.metric.str.contains(names)]
    empty = selectors.selectors(judged, few)
    assert not len(empty)
    assert best_of_n.draw(empty, {}) is None
    assert not len(selectors.selectors_shown(empty))
    assert "best_of_n" not in [table.name for table in view(judged, few, build(judged, few), set()).tables]


def test_a_reward_model_that_compares_is_named_so(judged, known):
    stages = judged.recipe.layers.content["stages"]
    compares = {key: value for key, value in stages["verifier"].items() if key != "labels"}
    other = changed(judged, stages=stages | {"verifier": compares})
    found = selectors.selectors(replace(other, arms=judged.arms[:1]), known)
    assert {"reward model", "PRM, product"} <= set(found.selector)


def test_the_figure_has_a_line_a_selector_and_arm_and_bands_within_it(judged, found):
    palette = colours(judged.recipe.arms("cpu"))
    figure = best_of_n.draw(found, palette)
    titles = [axis.get_title("left") for axis in figure.axes]
    assert titles == [f"heldout, {policy}" for policy in ("before", "base-recipe", "no-format", "random")]
    base = figure.axes[0]
    drawn = {(line.get_label(), line.get_color()): list(line.get_ydata()) for line in base.lines}
    assert len(drawn) == 6
    assert drawn["ORM", palette["random"]] == curve(found, "before", "random", "ORM").accuracy.tolist()
    assert drawn["PRM, minimum", palette["base-recipe"]][-1] == pytest.approx(0.31 + 3 * 0.05)
    assert base.get_xscale() == "log"
    low, high = base.get_ylim()
    assert low < 0.3 < 0.61 < high
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[-3:] == ["base-recipe", "random", "no-format"]  # in the recipe's order
    words = best_of_n.in_words(found)
    assert words.startswith("heldout, before at n = 64: PRM, product of base-recipe 52%")
    assert "ORM of random 37%, majority 40%, oracle (pass@n) 61%; heldout, base-recipe" in words


def test_a_record_has_the_same(judged, known, found):
    """Of numbers alone."""
    again = recorded(judged, worth_keeping(known).drop(columns=["step", "source"]))
    pd.testing.assert_frame_equal(selectors.selectors(judged, again), found)


def test_the_page_shows_the_table(judged, known, found):
    def page(numbers):
        shown = view(judged, numbers, build(judged, numbers), set())
        return report.TEMPLATES.get_template("arms.html").render(arms=shown.page, figures={"arms": []})

    assert "selects it" not in page(known[~known.metric.str.contains("accuracy/bon")])
    shown = page(known)
    assert all(f"<td>{name}</td>" in shown for name in found.selector.unique())
    assert shown.count("oracle (pass@n)") == found.policy.nunique()
