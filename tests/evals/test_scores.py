"""Gold, proxy and log-ratio: against plain computations of one completion at a time; what can go wrong."""

import json
import math
import shutil
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from evaluated import parse
from hypothesis import given
from hypothesis import strategies as st
from saved_models import save_reward_model
from scripted import Scripted
from stage_runs import finished
from transformers import AutoModelForSequenceClassification, PreTrainedConfig

from encore import worlds
from encore.models import language_model, reward_model
from encore.recipe.shape import Shape
from encore.runtime import sentinel
from encore.sampling.completion import Completion
from evals import harness, metrics, scores

TASK = {"world": "preferences"}
SHAPE = {"hidden_size": 32, "layers": 1, "max_position_embeddings": 128}
WORDS = worlds.tokenizer([worlds.make(TASK)])


def policy(folder, seed, words=WORDS):
    language_model.build(Shape(**SHAPE), words, seed).save_pretrained(folder / "final")
    words.save_pretrained(folder / "final")
    return finished(folder)


@pytest.fixture(scope="module")
def stages(tmp_path_factory):
    """metrics.json of two random policies, and of a random reward model of two members."""
    folder = tmp_path_factory.mktemp("stages")
    found = {"policy": policy(folder / "policy", 0), "reference": policy(folder / "reference", 1)}
    torch.manual_seed(2)
    members = [
        AutoModelForSequenceClassification.from_pretrained(folder / "policy" / "final", num_labels=1)
        for _ in range(2)
    ]
    save_reward_model(members, WORDS, [0.5, 0.0], [1.0, 2.0], folder / "proxy" / "final")
    return found | {"proxy": finished(folder / "proxy")}


@pytest.fixture
def task():
    return {
        "task": TASK,
        "template": "<user>{question}<assistant>",
        "items": 4,
        "samples": 4,
        "temperature": 1.0,
        "top_p": 1.0,
        "max_gen_toks": 24,
        "k": [1, 4],
        "score": ["gold", "proxy", "kl"],
    }


def tokens(row, i):
    """Token ids of the prompt of an item, and of its i-th completion with the end it came to."""
    prompt = WORDS(f"<user>{row['question']}<assistant>")["input_ids"]
    ids = WORDS(row["completions"][i])["input_ids"]
    return prompt, ids if row["truncated"][i] else [*ids, WORDS.eos_token_id]


def logp(model, prompt, ids):
    """log pi(ids | prompt), one completion alone, in float64."""
    with torch.no_grad():
        logps = model.double()(torch.tensor([prompt + ids])).logits[0].log_softmax(-1)
    return sum(logps[len(prompt) + t - 1, token].item() for t, token in enumerate(ids))


def test_perplexity_is_of_the_reference_token_by_token(command, stages, task):
    status, result, rows = command(
        task | {"score": ["perplexity"]}, stages["policy"], reference=stages["reference"]
    )
    assert status == 0
    reference = language_model.load(language_model.locate(stages["reference"]))
    for row in rows:
        for i, perplexity in enumerate(row["perplexity"]):
            prompt, ids = tokens(row, i)
            assert perplexity == pytest.approx(math.exp(-logp(reference, prompt, ids) / len(ids)), rel=1e-4)
    drawn = [value for row in rows for value in row["perplexity"]]
    assert len(set(drawn)) > 1
    metrics = result["tasks"]["heldout"]["metrics"]
    assert metrics["perplexity"]["value"] == pytest.approx(sum(drawn) / len(drawn))


def test_every_score_is_that_of_a_completion_alone(command, stages, task, capsys):
    status, result, rows = command(
        task, stages["policy"], reference=stages["reference"], proxy=stages["proxy"]
    )
    assert status == 0
    world = worlds.make(TASK)
    own, reference = (
        language_model.load(language_model.locate(stages[name])) for name in ("policy", "reference")
    )
    proxy = reward_model.load(stages["proxy"])
    for row in rows:
        problem = worlds.Problem(row["question"], row["answer"], row["difficulty"])
        assert row["gold"] == [world.rewards["gold"](problem, text) for text in row["completions"]]
        assert row["reference_gold"] == world.rewards["gold"](problem, world.reference(problem))
        for i in range(task["samples"]):
            prompt, ids = tokens(row, i)
            assert len(ids) == row["tokens"][i]
            ratio = logp(own, prompt, ids) - logp(reference, prompt, ids)
            assert row["logratio"][i] == pytest.approx(ratio, abs=1e-4)
            score = proxy.score([f"<user>{row['question']}<assistant>"], [ids]).mean()
            assert row["proxy"][i] == pytest.approx(float(score), abs=1e-5)
    assert {ended for row in rows for ended in row["truncated"]} == {True, False}  # else it proves less
    metrics = result["tasks"]["heldout"]["metrics"]
    drawn = [value for row in rows for value in row["logratio"]]
    assert metrics["kl"]["value"] == pytest.approx(sum(drawn) / len(drawn))
    assert metrics["gold/bon@1"]["value"] == pytest.approx(metrics["gold"]["value"])
    assert metrics["proxy/bon@4"]["value"] == pytest.approx(sum(max(row["proxy"]) for row in rows) / 4)
    for name in ("gold", "win_rate", "proxy", "kl", "gold/bon@4", "proxy/bon@4"):
        assert metrics[name]["low"] <= metrics[name]["value"] <= metrics[name]["high"]
    assert result["inputs"] == {
        role: sentinel.read_sentinel(stages[role])["digest"] for role in ("reference", "proxy")
    }
    line = capsys.readouterr().out.splitlines()[-2]
    assert all(f"{name} {metrics[name]['value']:.3f}" in line for name in ("gold", "win_rate", "proxy", "kl"))


def test_a_reply_votes_by_what_it_states(task):
    world = worlds.make(TASK)
    lm = Scripted(lambda prompt, n: ["It is 7. ", "It is 7. It is 7. ", "7", "It is 7. It is 8. "][n])
    (heldout,) = parse({"tasks": {"heldout": {**task, "score": ["gold"]}}})
    rows = harness.sample(heldout, lm, seed=0)
    assert [row["votes"] for row in rows] == [["7", "7", None, None]] * 4
    scores.score(heldout, rows, scores.Judges())
    problem = worlds.Problem(rows[0]["question"], rows[0]["answer"], rows[0]["difficulty"])
    assert rows[0]["gold"][0] == world.rewards["gold"](problem, "It is 7. ")


def test_a_completion_is_measured_in_the_language_its_question_asks_for(task):
    texts = ["<think>one plus two is </think>", "<think>uno plus </think>", "<answer>3</answer>", ""]
    lm = Scripted(lambda prompt, n: texts[n])
    bilingual = {"world": "bilingual", "language": "spanish"}
    names = ["language_consistency", "readability"]
    (heldout,) = parse({"tasks": {"heldout": {**task, "task": bilingual, "score": names}}})
    rows = harness.sample(heldout, lm, seed=0)
    scores.score(heldout, rows, scores.Judges())
    assert [row["language_consistency"] for row in rows] == [[0.0, 0.5, 0.0, 0.0]] * 4
    assert [row["readability"] for row in rows] == [[0.0] * 4] * 4
    found = metrics.summary(rows, (1,))["metrics"]
    assert found["language_consistency"]["value"] == 1 / 8


def test_what_is_over_no_answer_has_no_number(command, task, tmp_path, capsys):
    """A random policy checks nothing, so none of its checks is sound or unsound."""
    countdown = {"world": "countdown", "numbers": [3, 3], "largest": 9}
    random = policy(tmp_path / "policy", 0, worlds.tokenizer([worlds.make(countdown)]))
    asked = task | {"task": countdown, "score": ["verification", "sound_checks"]}
    status, result, rows = command(asked, random)
    assert status == 0
    found = result["tasks"]["heldout"]["metrics"]
    assert found["verification"]["value"] == 0
    assert found["sound_checks"] == {"value": None, "low": None, "high": None}
    assert rows[0]["sound_checks"] == [0.0] * 4
    said = capsys.readouterr().out
    assert "verification 0.000" in said
    assert "sound_checks" not in said


def test_the_reference_is_no_way_from_itself(command, stages, task, tmp_path):
    copied = tmp_path / "copy"
    shutil.copytree(stages["policy"].parent / "final", copied / "final")
    for reference in (stages["policy"], finished(copied)):
        _, result, rows = command(task | {"score": ["kl"]}, stages["policy"], reference=reference)
        assert result["tasks"]["heldout"]["metrics"]["kl"] == {"value": 0.0, "low": 0.0, "high": 0.0}
        assert not any(any(row["logratio"]) for row in rows)


def test_scores_change_nothing_else(command, stages, task):
    plain = {key: value for key, value in task.items() if key != "score"}
    _, result, rows = command(plain, stages["policy"])
    scored = command(task, stages["policy"], reference=stages["reference"], proxy=stages["proxy"])
    assert "inputs" not in result
    assert not {"gold", "kl", "proxy"} & result["tasks"]["heldout"]["metrics"].keys()
    assert result["tasks"]["heldout"]["metrics"].items() <= scored[1]["tasks"]["heldout"]["metrics"].items()
    assert [scored_row | row for scored_row, row in zip(scored[2], rows, strict=True)] == scored[2]


@pytest.mark.parametrize("role", ["reference", "proxy"])
def test_another_tokenizer_is_one_line(command, stages, task, tmp_path, capsys, role):
    words = worlds.tokenizer([worlds.make({"world": "chain"})])
    other = policy(tmp_path / "other", 0, words)
    if role == "proxy":
        member = AutoModelForSequenceClassification.from_pretrained(other.parent / "final", num_labels=1)
        save_reward_model([member], words, [0.0], [1.0], tmp_path / "rm" / "final")
        other = finished(tmp_path / "rm")
    judges = {"reference": stages["reference"], "proxy": stages["proxy"], role: other}
    status, *_ = command(task, stages["policy"], **judges)
    assert status == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: the re")
    assert "have different tokenizers: " in error


@pytest.mark.parametrize(
    ("changes", "inputs", "says"),
    [
        ({}, ["reference"], "evals.tasks.heldout.score: proxy needs evals.models.proxy"),
        ({}, ["proxy"], "evals.tasks.heldout.score: kl needs evals.models.reference"),
        ({"temperature": 0.7}, ["reference", "proxy"], "kl is of the policy's own samples; expected temp"),
        ({"task": {"world": "sort"}}, [], "evals.tasks.heldout.score: world sort has no gold score"),
    ],
)
def test_a_mistake_is_one_line(command, stages, task, capsys, changes, inputs, says):
    status, *_ = command(task | changes, stages["policy"], **{role: stages[role] for role in inputs})
    assert status == 2
    assert says in capsys.readouterr().err.strip().splitlines()[-1]


def test_a_proxy_that_is_no_reward_model(command, stages, task, capsys):
    status, *_ = command(task, stages["policy"], reference=stages["reference"], proxy=stages["policy"])
    assert status == 2
    assert "its stage has made no reward model" in capsys.readouterr().err.strip().splitlines()[-1]


def test_a_broken_reward_model_is_one_line(command, stages, task, tmp_path, capsys):
    shutil.copytree(stages["proxy"].parent / "final", tmp_path / "rm" / "final")
    facts = json.loads((tmp_path / "rm" / "final" / "reward.json").read_text())
    (tmp_path / "rm" / "final" / "reward.json").write_text(json.dumps(facts | {"bias": [math.nan, 0.0]}))
    status, *_ = command(task | {"score": ["proxy"]}, stages["policy"], proxy=finished(tmp_path / "rm"))
    assert status == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error == "error: evals.tasks.heldout: the proxy of a completion is not a number"


# -- log-ratios ----------------------------------------------------------------------------------------------

A, B, END = 0, 1, 2


class Bigram(torch.nn.Module):
    """A language model whose next token depends on the last one alone: logits are a row of a table."""

    def __init__(self, chances):
        super().__init__()
        self.table = torch.nn.Parameter(torch.tensor(chances).log() + 3.0)  # a constant adds nothing
        self.config = PreTrainedConfig(vocab_size=len(chances))

    def forward(self, input_ids, **options):
        return type("Output", (), {"logits": self.table[input_ids]})()


POLICY = [[0.5, 0.25, 0.25], [0.125, 0.125, 0.75], [0.2, 0.3, 0.5]]
REFERENCE = [[0.25, 0.25, 0.5], [0.5, 0.25, 0.25], [0.4, 0.4, 0.2]]


def completion(context, ids):
    return Completion("", tokens=len(ids), truncated=ids[-1] != END, ids=ids, context=context)


def test_what_rounding_tells_apart_is_a_tie():
    rows = [{"gold": [0.1 + 0.2, 0.2, 0.4], "reference_gold": 0.3}]
    assert metrics.scores(rows, (1,))["win_rate"].tolist() == [pytest.approx((0.5 + 0 + 1) / 3)]


def test_a_case_by_hand():
    """After A the completion A B and its end: (0.5/0.25) (0.25/0.25) (0.75/0.25); no prompt is counted."""
    found = scores.log_ratios(
        Bigram(POLICY), Bigram(REFERENCE), [completion([B, A], [A, B, END]), completion([B, A], [A, B])]
    )
    assert found == pytest.approx([math.log(2 * 1 * 3), math.log(2)])


tokens_of = st.lists(st.sampled_from([A, B]), min_size=1, max_size=9)


@given(st.lists(st.tuples(tokens_of, tokens_of, st.booleans()), min_size=1, max_size=12), st.randoms())
def test_neither_company_nor_order_nor_repetition_matters(drawn, rng):
    """Each ratio is its own, whatever is padded to whatever; the end of sequence is one more factor."""
    batch = [completion(context, ids + [END] * ended) for context, ids, ended in drawn]
    rng.shuffle(batch)
    found = scores.log_ratios(Bigram(POLICY), Bigram(REFERENCE), batch + batch[:1])
    assert found[-1] == found[0]
    for one, ratio in zip(batch, found, strict=False):
        steps = pairwise([one.context[-1], *one.ids])
        by_hand = sum(math.log(POLICY[a][b] / REFERENCE[a][b]) for a, b in steps)
        assert ratio == pytest.approx(by_hand, abs=1e-5)


def test_policy_and_reference_are_computed_in_what_the_recipe_says(stages, task, monkeypatch):
    asked = []
    monkeypatch.setattr(language_model, "load_for_inference", lambda source, dtype: asked.append(dtype))
    source = language_model.locate(stages["policy"])
    outside = SimpleNamespace(model="held by vLLM", tokenizer=WORDS)
    tasks = parse({"tasks": {"heldout": {**task, "score": ["kl"]}}})
    scores.load(tasks, {"reference": stages["reference"]}, source, outside, "bfloat16")
    assert asked == ["bfloat16", "bfloat16"]
