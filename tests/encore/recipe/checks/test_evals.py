"""What tasks score by: its place in the graph, in the command line and in claims, and every mistake in it."""

import copy
import json
from types import SimpleNamespace

import pytest
from data_set_files import DATA
from scored_stages import STAGES

from encore.errors import UserError
from encore.recipe.document import Document, read_content
from encore.recipe.graph import Graph, Node
from encore.recipe.layers import Layers
from encore.recipe.load import _check_names, check_resolved
from encore.recipe.recipe import Recipe
from encore.runtime import digests, files
from encore.workflow import marks
from encore.workflow.jobs import Jobs
from encore.workflow.targets import Choice

TASK = "evals/tasks/heldout"
CLAIM = "claims/lifts/test/metric"


@pytest.fixture
def scored(folder, monkeypatch):
    """Recipe `paper`: checkpoints `before` (of a pinned model) and `after`, scored by `rm` and `sft`."""
    del folder.specs["paper"]["scales"]["paper"]
    del folder.specs["paper"]["arms"]["only-cpu"]
    for name, stage in STAGES.items():
        folder.set("paper", f"stages/{name}", copy.deepcopy(stage))
    folder.set("paper", "evals/models", {"reference": "sft", "proxy": "rm"})
    folder.set("paper", f"{TASK}/task", {"world": "preferences"})
    folder.set("paper", f"{TASK}/score", ["gold", "proxy", "kl"])
    monkeypatch.setattr(folder, "load", lambda: checked(folder.specs))
    return folder


def recipes_of(specs):
    copies = copy.deepcopy(specs)
    return {name: Recipe(name, Layers(spec)) for name, spec in copies.items()}


def checked(specs):
    """The recipes, `paper` checked but for the keys of its stages: no file is written or read."""
    recipes = recipes_of(specs)
    read_content(specs["paper"], Document)
    _check_names(specs["paper"])
    check_resolved(Graph(recipes), recipes["paper"])
    return recipes


def evaluation(name="after", arm="base-recipe", seed=2):
    return Node("paper", "cpu", arm, seed, name, "eval")


def test_what_a_task_scores_by_is_an_input(scored):
    recipes = scored.load()
    found = Graph(recipes).inputs(evaluation())
    assert {role: node.name for role, node in found.items()} == {
        "model": "grpo",
        "reference": "sft",
        "proxy": "rm",
    }
    assert {node.seed for node in found.values()} == {2}
    assert "models" not in Graph(recipes).config(evaluation())
    scored.set("paper", f"{TASK}/score", ["gold", "kl"])
    assert list(Graph(scored.load()).inputs(evaluation())) == ["model", "reference"]
    scored.remove("paper", f"{TASK}/score")
    assert list(Graph(scored.load()).inputs(evaluation())) == ["model"]


def test_what_a_stage_begins_with_stands_before_what_it_makes(scored):
    """Else a report would take the product as before training, and its beginning as after."""
    scored.remove("paper", "evals/checkpoints")
    scored.set("paper", "evals/checkpoints", {"after": "grpo", "other": "sft", "before": "grpo.policy"})
    with pytest.raises(UserError, match=r"evals\.checkpoints\.before: written after after, which is trained"):
        scored.load()


def test_an_evaluation_that_scores_by_nothing_has_the_lineage_it_had(scored):
    scored.remove("paper", f"{TASK}/score")
    with_models = Graph(scored.load()).lineage(evaluation())
    scored.remove("paper", "evals/models")
    assert Graph(scored.load()).lineage(evaluation()) == with_models


def test_another_reference_is_another_evaluation(scored):
    before = {name: Graph(scored.load()).lineage(evaluation(name)) for name in ("before", "after")}
    scored.set("paper", "stages/sft/args/learning_rate", 1e-3)
    after = {name: Graph(scored.load()).lineage(evaluation(name)) for name in ("before", "after")}
    assert not set(before.values()) & set(after.values())


def test_a_pinned_model_is_evaluated_per_seed_where_its_problems_or_what_it_is_scored_by_are(scored):
    assert Graph(scored.load()).owner(evaluation("before")).seed == 2
    scored.set("paper", f"{TASK}/task", DATA)
    scored.set("paper", f"{TASK}/score", ["kl"])
    assert Graph(scored.load()).owner(evaluation("before")).seed == 2
    scored.set("paper", "stages/sft/seed", 7)
    recipes = scored.load()
    assert Graph(recipes).owner(evaluation("before")).seed == 0  # all it stands on is pinned, itself to 0
    assert Graph(recipes).inputs(evaluation("before"))["reference"].seed == 7
    for seed in (0, 2, 7):
        assert Graph(recipes).owner(evaluation("before", seed=seed)).seed == 0
        assert Graph(recipes).owner(evaluation("after", seed=seed)).seed == seed


def test_an_arm_is_scored_by_its_own_models(scored):
    scored.set("paper", "arms/hot/stages/rm", {"args": {"learning_rate": 1e-3}})
    recipes = scored.load()
    found = {role: node.arm for role, node in Graph(recipes).inputs(evaluation(arm="hot")).items()}
    assert found == {"model": "hot", "reference": "base-recipe", "proxy": "hot"}
    scored.set("paper", "evals/models/proxy", "rm@base-recipe")
    assert Graph(scored.load()).inputs(evaluation(arm="hot"))["proxy"].arm == "base-recipe"


def test_the_command_line_names_them(scored):
    recipes = scored.load()
    jobs = Jobs(Graph(recipes), Choice("cpu", None))
    wildcards = {"recipe": "paper", "scale": "cpu", "arm": "base-recipe", "seed": "1", "checkpoint": "after"}
    w = SimpleNamespace(**wildcards, keys=wildcards.keys)
    folder = "results/paper/cpu/base-recipe/seed1"
    assert jobs.model(w) == f"{folder}/grpo/metrics.json"
    assert (
        jobs.judges(w)
        == f"--input reference={folder}/sft/metrics.json --input proxy={folder}/rm/metrics.json"
    )
    assert set(jobs.upstream(w)) == {"model", "reference", "proxy", "stale"}
    scored.remove("paper", f"{TASK}/score")
    assert Jobs(Graph(scored.load()), Choice("cpu", None)).judges(w) == ""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"digest": "sha256:0"}, "its checkpoint has changed"),
        ({"inputs": {"reference": "sha256:sft", "proxy": "sha256:0"}}, "its proxy model has changed"),
        ({"inputs": {}}, "its reference model has changed"),
    ],
)
def test_it_is_redone_when_one_of_them_has_changed(scored, tmp_path, monkeypatch, change, reason):
    recipes = scored.load()
    monkeypatch.chdir(tmp_path)
    node = evaluation()
    for source in Graph(recipes).inputs(node).values():
        record = {"digest": f"sha256:{source.name}", "model": "x"}
        files.write_json(tmp_path / source.sentinel, record)
    made = {"digest": "sha256:grpo", "inputs": {"reference": "sha256:sft", "proxy": "sha256:rm"}}
    path = tmp_path / node.sentinel
    files.write_json(path, made | change)
    digests.record(path).write_text(Graph(recipes).lineage(node))
    (tmp_path / ".snakemake").mkdir()
    lines = marks.mark(Graph(recipes), [node], {})
    assert lines == ([f"{node.sentinel}: {reason}; redoing it"] if reason else [])
    assert json.loads(path.read_text()) == made | change


def test_prompts_of_the_hub_need_no_answer_where_something_else_scores_them(scored):
    posts = {"hub": "org/posts", "revision": "0" * 40, "split": "test", "question": "prompt"}
    scored.set("paper", f"{TASK}/task", posts)
    scored.set("paper", f"{TASK}/score", ["proxy", "kl"])
    scored.set("paper", CLAIM, "heldout/proxy")
    scored.load()
    scored.set("paper", CLAIM, "heldout/accuracy")
    with pytest.raises(UserError, match=r'claims\.lifts\.test\.metric: unknown metric "accuracy"; valid: '):
        scored.load()
    scored.set("paper", CLAIM, "heldout/kl")
    scored.load()
    scored.set("paper", f"{TASK}/task", {**posts, "verifier": "math"})
    with pytest.raises(UserError, match=r"evals\.tasks\.heldout\.task\.answer: missing"):
        scored.load()
    scored.set("paper", f"{TASK}/task", posts)
    scored.remove("paper", f"{TASK}/score")
    with pytest.raises(UserError, match=r"evals\.tasks\.heldout\.task\.(answer|verifier): missing"):
        scored.load()


@pytest.mark.parametrize(
    "metric",
    ["gold", "win_rate", "proxy", "kl", "gold/bon@1", "proxy/bon@4", "accuracy", "pass@4", "maj@1"],
)
def test_a_claim_may_be_about_what_is_scored(scored, metric):
    scored.set("paper", CLAIM, f"heldout/{metric}")
    assert scored.load()["paper"].claims("cpu")[0].test.metric == f"heldout/{metric}"


@pytest.mark.parametrize("metric", ["language_consistency", "readability"])
def test_measures_of_world_bilingual_are_metrics_of_its_tasks_alone(scored, metric):
    scored.set("paper", CLAIM, f"heldout/{metric}")
    scored.set("paper", f"{TASK}/task", {"world": "bilingual"})
    scored.set("paper", f"{TASK}/score", ["language_consistency", "readability"])
    assert scored.load()["paper"].claims("cpu")[0].test.metric == f"heldout/{metric}"
    scored.remove("paper", f"{TASK}/score")
    with pytest.raises(UserError, match=f'claims.lifts.test.metric: unknown metric "{metric}"'):
        scored.load()
    scored.set("paper", f"{TASK}/score", [metric])
    scored.set("paper", f"{TASK}/task", {"world": "chain"})
    with pytest.raises(
        UserError, match=f"heldout.score: world chain has no {metric} score; leave {metric} out"
    ):
        scored.load()


@pytest.mark.parametrize(
    "metric", ["accuracy/bon@4", "accuracy/bon_product@4", "accuracy/bon_min@1", "proxy_min", "trace_correct"]
)
def test_a_process_reward_model_selects_by_its_steps(scored, metric):
    scored.set("paper", CLAIM, f"heldout/{metric}")
    scored.set("paper", f"{TASK}/task", {"world": "chain"})
    scored.set("paper", f"{TASK}/score", ["proxy", "proxy_product", "proxy_min", "trace"])
    with pytest.raises(
        UserError, match="score: proxy_product needs a reward model with labels: steps, which"
    ):
        scored.load()
    scored.remove("paper", "stages/rm/comparisons")
    scored.set("paper", "stages/rm/labels", "steps")
    scored.set("paper", "stages/rm/needs/data", "replies")
    assert scored.load()["paper"].claims("cpu")[0].test.metric == f"heldout/{metric}"
    scored.set("paper", f"{TASK}/score", ["gold", "proxy"])
    with pytest.raises(UserError, match=r"unknown metric|has no gold score"):
        scored.load()


def test_sound_checks_are_over_the_answers_that_verify(scored):
    scored.set("paper", CLAIM, "heldout/sound_checks")
    scored.set("paper", f"{TASK}/task", {"world": "countdown"})
    scored.set("paper", f"{TASK}/score", ["sound_checks"])
    with pytest.raises(UserError, match="sound_checks is over the answers of verification; add verification"):
        scored.load()
    scored.set("paper", f"{TASK}/score", ["sound_checks", "verification"])
    assert scored.load()["paper"].claims("cpu")[0].test.metric == "heldout/sound_checks"


@pytest.mark.parametrize("metric", ["unrepaired", "unrepaired_correct", "unrepaired_incorrect"])
def test_so_is_what_shows_in_a_sum_and_by_right_and_wrong(scored, metric):
    scored.set("paper", CLAIM, f"heldout/{metric}")
    scored.set("paper", f"{TASK}/task", {"world": "chain"})
    scored.set("paper", f"{TASK}/score", ["unrepaired"])
    assert scored.load()["paper"].claims("cpu")[0].test.metric == f"heldout/{metric}"
    scored.set("paper", f"{TASK}/task", {"world": "sort"})
    with pytest.raises(UserError, match=r"heldout\.score: world sort has no unrepaired score"):
        scored.load()


@pytest.mark.parametrize(
    ("scores", "metric", "says"),
    [
        (["gold", "proxy", "kl"], "gold/bon@16", 'unknown metric "gold/bon@16"; did you mean "gold/bon@1"?'),
        (["gold", "proxy", "kl"], "winrate", 'unknown metric "winrate"; did you mean "win_rate"?'),
        (["gold"], "gold/bon@4", 'unknown metric "gold/bon@4"; did you mean "gold"?'),
        (["proxy"], "gold/bon@4", 'unknown metric "gold/bon@4"; did you mean "proxy/bon@4"?'),
        (["kl"], "gold", 'unknown metric "gold"; valid: '),
        (["gold"], "kl", 'unknown metric "kl"; valid: '),
    ],
)
def test_a_claim_about_what_is_not_scored_is_one_line(scored, scores, metric, says):
    scored.set("paper", f"{TASK}/score", scores)
    scored.set("paper", CLAIM, f"heldout/{metric}")
    with pytest.raises(UserError) as error:
        scored.load()
    assert f"claims.lifts.test.metric: {says}" in str(error.value)


@pytest.mark.parametrize(
    ("keys", "value", "says"),
    [
        (f"{TASK}/score", ["golde"], 'evals.tasks.heldout.score[0]: unknown value the text "golde"; did you'),
        (f"{TASK}/task", {"world": "chain"}, "evals.tasks.heldout.score: world chain has no gold score"),
        (f"{TASK}/temperature", 0.7, "evals.tasks.heldout.score: kl is of the policy's own samples; exp"),
        (f"{TASK}/top_p", 0.9, "evals.tasks.heldout.score: kl is of the policy's own samples; exp"),
        ("evals/models", {"reference": "sft"}, "score: proxy needs evals.models.proxy, which is missing (sc"),
        ("evals/models", {"proxy": "rm"}, "score: kl needs evals.models.reference, which is missing (sc"),
        ("evals/models/proxi", "rm", 'evals.models.proxi: unknown key; did you mean "proxy"?'),
        ("evals/models/proxy", "rn", 'models.proxy: unknown stage of recipe paper "rn"; did you mean "rm"?'),
        ("evals/models/proxy", None, "evals.models.proxy: null, but no layer below has the key"),
        ("evals/models/proxy", "sft", "evals.models.proxy: stage sft makes a model; expected one that makes"),
        ("evals/models/reference", "rm", "evals.models.reference: stage rm makes a reward model; expected"),
        ("evals/models/reference", "tiny/pretrain@othr", "evals.models.reference: unknown arm of recipe"),
        ("evals/checkpoints/after", "rm", "evals.checkpoints.after: rm is a reward model; expected a model"),
        ("evals/tasks/aime", {"lm_eval": "aime24", "samples": 4, "temperature": 1.0, "top_p": 1.0,
                              "max_gen_toks": 8, "k": [1], "score": ["kl"]},
         "evals.tasks.aime.score: lm-eval's aime24 has its own scoring; leave it out"),
        ("evals/tasks/aime", {"lm_eval": "aime_24"},
         'evals.tasks.aime.lm_eval: lm-eval has no task "aime_24"; did you mean "aime24"? (scale cpu'),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(scored, keys, value, says):
    scored.set("paper", keys, value)
    with pytest.raises(UserError) as error:
        scored.load()
    assert says in str(error.value)
    assert "\n" not in str(error.value)
