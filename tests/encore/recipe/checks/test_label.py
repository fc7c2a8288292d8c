"""A stage `label` that lacks a role, has a dial of another labeller or a world without gold: one line."""

import copy
import json
from typing import get_args

import pytest
import typed

from encore import worlds
from encore.data import demonstrations, prompts
from encore.data.forms import plain
from encore.errors import UserError
from encore.recipe.kinds import label as labelling
from encore.recipe.kinds.label import Labeller, LabelStage

DRAW = {"num_generations": 4, "temperature": 1.0, "top_p": 1.0, "max_completion_length": 8}
SAMPLE = {
    "run": "sample",
    "needs": {"policy": "tiny/pretrain"},
    "task": {"world": "preferences"},
    "template": "<user>{question}<assistant>",
    "args": DRAW,
}
LABEL = {"run": "label", "needs": {"data": "sample"}, "by": "annotator", "labeller": {"agreement": 0.73}}
SFT = {
    "run": "sft",
    "needs": {"policy": "tiny/pretrain"},
    "task": {"world": "preferences"},
    "template": "<user>{question}<assistant>",
    "corpus": {"documents": 10, "mixture": {"good": 1.0}},
    "args": {"learning_rate": 1e-4, "lr_scheduler_type": "constant"},
}
HUB = {"hub": "org/name", "revision": "a" * 40, "split": "train"}
PAIRS = HUB | {"chosen": "chosen", "rejected": "rejected"}
AGAIN = {"by": "self", "needs": {"data": "label", "policy": "sft", "reference": "tiny/pretrain"}}
ASKED = {"model": {"path": "x"}, "question": "{prompt} {first} {second}"}


@pytest.fixture
def chain(folder):
    """Recipe `paper` with samples, their labels and a fine-tuning."""
    del folder.specs["paper"]["scales"]["paper"]
    for name, stage in (("sample", SAMPLE), ("label", LABEL), ("sft", SFT)):
        folder.set("paper", f"stages/{name}", copy.deepcopy(stage))
    return folder


@pytest.mark.parametrize(
    "label",
    [
        {"by": "judge", "labeller": {"accuracy": 0.75, "both_orders": False, "position_bias": 0.5}},
        {"by": "judge", "labeller": {"accuracy": 0.75, "temperature": 0.0}},
        {"by": "gold", "labeller": None, "validation": 0.2},
        {"by": "gold", "labeller": None, "keep": "best"},
        {"by": "verifier", "labeller": None, "keep": "right"},
        {"by": "dataset", "labeller": None, "needs": {"data": None}, "task": PAIRS},
        {"by": "self", "labeller": {"beta": 0.1}, "needs": {"policy": "sft", "reference": "tiny/pretrain"}},
        {"by": "language_model", "labeller": ASKED | {"agreement": None}},
        {"by": "language_model", "labeller": {"question": ASKED["question"]}, "needs": {"policy": "sft"}},
    ],
)
def test_labellers_that_go_with_their_dials(chain, label):
    chain.specs["paper"]["stages"]["label"] = merged(LABEL, label)
    chain.load()


def merged(base: dict, over: dict) -> dict:
    """Null deletes, as in a recipe."""
    found = copy.deepcopy(base)
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(found.get(key), dict):
            value = merged({} if key == "labeller" else found[key], value)
        found[key] = value
    return {key: value for key, value in found.items() if value is not None}


@pytest.mark.parametrize(
    ("label", "says"),
    [
        (
            {"by": "reward_model", "labeller": None},
            "needs.reward_model: missing; by: reward_model needs data and",
        ),
        ({"needs": {"policy": "sft"}}, "label.needs.policy: by: annotator does not use it; remove it"),
        (
            {"needs": {"data": "sft"}},
            "label.needs.data: stage sft makes a model; expected one that makes samples or preferences",
        ),
        (
            {"by": "reward_model", "labeller": None, "needs": {"reward_model": "sft"}},
            "needs.reward_model: stage sft makes a model; expected one that makes a reward model",
        ),
        (
            {"labeller": {"accuracy": 0.7, "agreement": 0.7}},
            "labeller: expected one of agreement, accuracy, ",
        ),
        ({"labeller": None}, "labeller: expected one of agreement, accuracy, temperature, got none"),
        ({"labeller": {"position_bias": 1.0}}, "labeller.position_bias: no dial of by: annotator; valid: "),
        ({"by": "gold"}, "labeller.agreement: no dial of by: gold; it has none"),
        ({"by": "human"}, 'label.by: unknown value the text "human"; valid: '),
        (
            {"by": "judge", "labeller": {"accuracy": 0.7, "temperature": 0.1, "bias": 1.0}},
            "labeller.accuracy: it follows from temperature and bias",
        ),
        ({"by": "language_model", "labeller": {"model": {"path": "x"}}}, "labeller.question: missing"),
        (
            {"by": "language_model", "labeller": {"question": ASKED["question"]}},
            "labeller.model: missing; by: language_model needs it, or needs.policy",
        ),
        (
            {"by": "language_model", "labeller": ASKED, "needs": {"policy": "sft"}},
            "labeller.model: needs.policy is given too; remove one of them",
        ),
        (
            {"by": "language_model", "labeller": ASKED | {"question": "{prompt}{first}"}},
            "labeller.question: expected {second} exactly once",
        ),
        ({"keep": "right"}, "keep: right needs by: verifier, got by: annotator; expected best"),
        ({"keep": "best", "validation": 0.1}, "validation: demonstrations (keep: best) have no such split"),
        (
            {"task": {"world": "preferences"}},
            "task: a world has no comparisons; name its samples in needs.data",
        ),
        ({"by": "dataset", "labeller": None, "needs": {"data": None}}, "label.task: missing; by: dataset"),
        (
            {"by": "dataset", "labeller": None, "needs": {"data": None}, "task": HUB | {"chosen": "a"}},
            "label.task.rejected: missing; a pair has chosen and rejected",
        ),
    ],
)
def test_a_mistake_is_one_line(chain, label, says):
    chain.specs["paper"]["stages"]["label"] = merged(LABEL, label)
    with pytest.raises(UserError) as error:
        chain.load()
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_gold_is_of_a_world_that_has_it(chain):
    chain.set("paper", "stages/sample/task", {"world": "chain"})
    with pytest.raises(
        UserError, match=r"label.by: annotator needs a world with the reward gold, but stage sample"
    ):
        chain.load()
    chain.set("paper", "stages/label", merged(LABEL, {"by": "verifier", "labeller": None}))
    chain.load()


def test_a_model_labels_preferences_once_more(chain):
    chain.set("paper", "stages/again", {"run": "label", "needs": {"data": "label"}, "by": "gold"})
    with pytest.raises(UserError, match=r"again.by: gold takes samples, but stage label makes preferences"):
        chain.load()
    chain.set("paper", "stages/again", {**chain.specs["paper"]["stages"]["again"], **AGAIN})
    chain.load()


def test_labels_may_be_demonstrations(chain):
    del chain.specs["paper"]["stages"]["sft"]["task"]
    for key in ("template", "corpus"):
        del chain.specs["paper"]["stages"]["sft"][key]
    chain.set("paper", "stages/sft/needs/data", "label")
    with pytest.raises(
        UserError, match="stage label makes preferences; expected one that makes demonstrations"
    ):
        chain.load()
    chain.set("paper", "stages/label/keep", "best")
    chain.load()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"needs": SFT["needs"] | {"data": "label"}},
            "stages.sft.task: needs.data has the demonstrations; remove",
        ),
        ({"task": None}, "stages.sft.needs.data: missing; or give the task, template and corpus"),
        ({"corpus": None}, "stages.sft.corpus: missing; a world writes its demonstrations by it"),
        ({"corpus": {"documents": 3}}, "stages.sft.corpus.mixture: missing"),
        ({"corpus": {"documents": 3, "mixture": {"god": 1}}}, 'has no kind "god"; did you mean "good"?'),
        ({"problems": 3}, "stages.sft.problems: of a Hub dataset"),
        ({"task": HUB | {"prompt": "a"}}, "stages.sft.task.completion: missing"),
    ],
)
def test_demonstrations_have_one_source(chain, changes, says):
    chain.set("paper", "stages/label/keep", "best")
    chain.specs["paper"]["stages"]["sft"] = {
        key: value for key, value in (SFT | changes).items() if value is not None
    }
    with pytest.raises(UserError) as error:
        chain.load()
    assert says in str(error.value)


def test_every_labeller_is_of_the_schema():
    assert get_args(LabelStage.model_fields["by"].annotation) == tuple(labelling.NEEDS)
    dials = {dial for own in labelling.DIALS.values() for dial in own}
    assert dials == Labeller.model_fields.keys()


def test_demonstrations_of_the_hub(tmp_path):
    line = {"text": "c", "summary": [{"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]}
    (tmp_path / "train.jsonl").write_text(json.dumps(line) + "\n")
    task = {"hub": str(tmp_path), "revision": "", "split": "train", "prompt": "text", "completion": "summary"}
    found = demonstrations.of_task(typed.source({"task": task, "template": "{question}:"}), 0)
    assert found == [{"prompt": "c:", "completion": "d", "question": "c"}]
    assert demonstrations.usable(found) == (found, {})
    with pytest.raises(UserError, match=r"problems: 2 asked, but .* has 1"):
        demonstrations.of_task(typed.source({"task": task, "problems": 2}), 0)
    with pytest.raises(UserError, match=r"task.completion: no column .reply. in .*; valid: summary, text"):
        demonstrations.of_task(typed.source({"task": task | {"completion": "reply"}}), 0)


def test_of_several_turns_none_is_taken_for_the_only_one(tmp_path):
    """The prompt's column is not all that the last reply answers."""
    roles = ("user", "assistant", "user", "assistant")
    turns = [{"role": role, "content": text} for role, text in zip(roles, "abcd", strict=True)]
    system = [{"role": "system", "content": "s"}, *turns[:2]]
    replies = [turns, system, turns[:3], [], turns[:2], [turns[0], turns[1] | {"content": " "}]]
    lines = [{"text": "a", "reply": reply} for reply in replies]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    task = {"hub": str(tmp_path), "revision": "", "split": "train", "prompt": "text", "completion": "reply"}
    kept, skipped = demonstrations.usable(demonstrations.of_task(typed.source({"task": task}), 0))
    assert kept == [{"prompt": "a", "completion": "b", "question": "a"}]
    assert skipped == {"multi-turn": 4, "empty": 1}
    both = demonstrations.of_task(
        typed.source({"task": task | {"prompt": "reply"}, "template": "{question}:"}), 0
    )
    assert demonstrations.usable(both) == ([{"prompt": "a:", "completion": "b", "question": "a"}], skipped)


def test_long_prompts_are_left_out():
    given = prompts.of_task(typed.task({"world": "sort"}), plain("<user>{question}<assistant>"), 20, 0)
    words = worlds.tokenizer([worlds.make({"world": "sort"})])
    lengths = [len(ids) for ids in words(given["prompt"][:])["input_ids"]]
    limit = sorted(lengths)[10]
    kept, longest = prompts.fitting(given, words, limit)
    assert kept["prompt"][:] == [p for p, n in zip(given["prompt"], lengths, strict=True) if n <= limit]
    assert longest == limit
    assert prompts.fitting(given, words, None)[0].to_list() == given.to_list()
    with pytest.raises(
        UserError, match=f"longest_prompt: 1 tokens, but the shortest prompt has {min(lengths)}"
    ):
        prompts.fitting(given, words, 1)


def test_prompts_of_the_hub_that_nobody_verifies(tmp_path):
    (tmp_path / "train.jsonl").write_text(json.dumps({"post": "p"}) + "\n")
    task = {"hub": str(tmp_path), "revision": "", "split": "train", "question": "post"}
    assert prompts.of_task(typed.task(task), plain("{question}:"), None, 0).to_list() == [
        {"prompt": "p:", "question": "p", "answer": "", "difficulty": 0}
    ]


def test_demonstrations_of_a_world():
    found = demonstrations.of_task(typed.source(SFT), 3)
    assert len(found) == 10
    assert all(row["prompt"].startswith("<user>") and row["completion"].strip() for row in found)
    assert (
        found == demonstrations.of_task(typed.source(SFT), 3) != demonstrations.of_task(typed.source(SFT), 4)
    )
