"""lm-eval's own tasks, as they are installed, on rows of ours."""

import json

import pytest
from evaluated import task_of, values
from lm_eval_tasks import on_rows
from scripted import Scripted

from encore.errors import UserError
from encore.models import language_model
from encore.recipe.machine import Engine
from encore.sampling import engine
from evals import benchmarks, harness

SAMPLED = {"samples": 1, "temperature": 0.0, "top_p": 1.0, "max_gen_toks": 64, "k": [1]}
SUMS = [{"question": f"What is {n} and {n}?", "answer": f"{n}+{n}={2 * n}\n#### {2 * n}"} for n in range(8)]
CHAT = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[bot]"


def mistake(folder, **spec):
    """The one line by which a task is refused."""
    with pytest.raises(UserError) as error:
        benchmarks.load(task_of(**spec), 0, folder)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture
def gsm8k(tmp_path):
    return on_rows(tmp_path, "gsm8k", {"train": SUMS[:5], "test": SUMS[5:]})


@pytest.mark.parametrize(
    ("filter_name", "right"),
    [("strict-match", [True, False, False]), ("flexible-extract", [True, True, False])],
)
def test_the_filter_of_gsm8k_is_the_named_one(gsm8k, filter_name, right):
    said = iter(["5 and 5 is\n#### 10", "That makes 12.", "#### 13"])
    task = task_of(lm_eval="gsm8k", filter=filter_name, fewshot=0, **SAMPLED)
    rows = harness.sample(task, Scripted(lambda text, n: next(said)), seed=0, folder=gsm8k)
    assert [row["correct"] for row in rows] == [[one] for one in right]
    assert rows[0]["votes"] == ["10"]
    assert values(rows, task)["accuracy"] == values(rows, task)["score"] == sum(right) / 3


@pytest.mark.parametrize("fewshot", [0, 2, None])
def test_so_many_examples_stand_before_the_question(gsm8k, fewshot):
    asked = []
    keys = {} if fewshot is None else {"fewshot": fewshot}
    task = task_of(lm_eval="gsm8k", filter="strict-match", **keys, **SAMPLED)
    rows = harness.sample(task, Scripted(lambda text, n: asked.append(text) or ""), seed=0, folder=gsm8k)
    for text, row, own in zip(asked, rows, SUMS[5:], strict=True):
        assert text.count("Question:") == 1 + (5 if fewshot is None else fewshot)  # gsm8k's own number is 5
        assert text.endswith(f"Question: {own['question']}\nAnswer:")
        assert row["question"] == text


def test_mistakes_in_the_keys_of_a_task(gsm8k):
    one = {"lm_eval": "gsm8k", "filter": "strict-match", **SAMPLED}
    assert mistake(gsm8k, **{**one, "filter": "strict"}) == (
        'evals.tasks.heldout.filter: unknown filter of gsm8k "strict"; did you mean "strict-match"?'
    )
    assert mistake(gsm8k, lm_eval="gsm8k", **SAMPLED) == (
        "evals.tasks.heldout.filter: missing; name a filter of gsm8k: strict-match, flexible-extract"
    )
    assert mistake(gsm8k, **one, metric="exact") == (
        'evals.tasks.heldout.metric: unknown metric of gsm8k "exact"; did you mean "exact_match"?'
    )
    told = "evals.tasks.heldout.fewshot: 6 asked for, but gsm8k has 5 examples"
    assert mistake(gsm8k, **one, fewshot=6) == told
    assert mistake(gsm8k, lm_eval="gsm8k", filter="strict-match").startswith(
        'evals.tasks.heldout: "samples" is missing: gsm8k draws samples; expected samples, temperature'
    )
    assert mistake(gsm8k, **{**one, "lm_eval": "gms8k"}).endswith('no task "gms8k"; did you mean "gsm8k"?')
    assert mistake(gsm8k, **{**one, "lm_eval": "minerva_math"}).startswith(
        'evals.tasks.heldout.lm_eval: "minerva_math" is a group of tasks; name one of them, such as "minerva_'
    )


def test_an_example_is_never_the_item_itself(tmp_path):
    """aime25 takes its examples from the split it asks."""
    rows = [{"problem": f"Find {n}.", "answer": str(n)} for n in (11, 12, 13)]
    folder = on_rows(tmp_path, "aime25", {"test": rows})
    spec = {"lm_eval": "aime25", **SAMPLED}
    assert mistake(folder, **spec, fewshot=3).endswith("fewshot: 3 asked for, but aime25 has 2 examples")
    asked = []
    harness.sample(
        task_of(**spec, fewshot=2), Scripted(lambda text, n: asked.append(text) or ""), seed=0, folder=folder
    )
    assert all(text.count(f"Find {row['answer']}.") == 1 for text in asked for row in rows)


def test_aime24_reads_the_box(tmp_path):
    folder = on_rows(tmp_path, "aime24", {"train": [{"Problem": "Find it.", "Answer": "33"}]})
    said = [r"so \boxed{33}.", "33", r"\boxed{34}", "none"]
    task = task_of(lm_eval="aime24", **{**SAMPLED, "samples": 4, "temperature": 1.0, "k": [1, 4]})
    [row] = harness.sample(task, Scripted(lambda text, n: said[n]), seed=0, folder=folder)
    assert row["correct"] == [True, True, False, False]
    found = values([row], task)
    assert [found[name] for name in ("accuracy", "pass@4", "score")] == [0.5, 1.0, 0.5]


def test_a_metric_between_right_and_wrong_is_a_score(tmp_path):
    """drop's f1: right is what scores 1."""
    fox = {"number": "", "date": {"day": "", "month": "", "year": ""}, "spans": ["red fox"]}
    ids = {"worker_id": "", "hit_id": ""}
    none = {"number": [], "date": [], "spans": [], "worker_id": [], "hit_id": []}
    row = {"section_id": "s", "passage": "A red fox ran.", "question": "Who ran?", "query_id": "q"}
    row |= {"answer": fox | ids, "validated_answers": none}
    folder = on_rows(tmp_path, "drop", {"train": [row], "validation": [row, {**row, "query_id": "r"}]})
    spec = {"lm_eval": "drop", **SAMPLED}
    assert mistake(folder, **spec).endswith("metric: missing; name a metric of drop: em, f1")
    said = iter([" red fox", " grey fox"])
    task = task_of(**spec, metric="f1")
    rows = harness.sample(task, Scripted(lambda text, n: next(said)), seed=0, folder=folder)
    assert [one["scores"] for one in rows] == [[[1.0]], [[0.5]]]
    found = values(rows, task)
    assert (found["score"], found["accuracy"]) == (0.75, 0.5)


PARTS = """
def process_results(doc, results):
    return {"all": all(word in results[0] for word in doc["words"]),
            "each": [word in results[0] for word in doc["words"]],
            "pair": (1, 2)}


def over_parts(items):
    flat = [part for item in items for part in item]
    return sum(flat) / len(flat)


def first(items):
    return items[0][0]
"""


@pytest.fixture
def instructions(tmp_path):
    """A task of the form of ifeval, whose items have several instructions; one metric is no mean."""
    (tmp_path / "instructions.jsonl").write_text(
        "\n".join(json.dumps({"prompt": p, "words": w}) for p, w in (("one", ["a", "b"]), ("two", ["c"])))
    )
    (tmp_path / "parts.py").write_text(PARTS)
    (tmp_path / "instructions.yaml").write_text(
        f"""
task: instructions
dataset_path: json
dataset_kwargs: {{data_files: {{train: {tmp_path}/instructions.jsonl}}, cache_dir: {tmp_path}/cache}}
test_split: train
output_type: generate_until
doc_to_text: prompt
doc_to_target: 0
generation_kwargs: {{until: []}}
process_results: !function parts.process_results
metric_list:
  - {{metric: all, aggregation: mean, higher_is_better: true}}
  - {{metric: each, aggregation: !function parts.over_parts, higher_is_better: true}}
  - {{metric: pair, aggregation: !function parts.first, higher_is_better: true}}
"""
    )
    return tmp_path


def test_items_of_several_parts(instructions):
    said = {"one": "a", "two": "c"}
    for metric, score in (("all", 1 / 2), ("each", 2 / 3)):
        task = task_of(lm_eval="instructions", metric=metric, **SAMPLED)
        rows = harness.sample(task, Scripted(lambda text, n: said[text]), seed=0, folder=instructions)
        assert values(rows, task)["score"] == pytest.approx(score)
        assert values(rows, task)["accuracy"] == 0.5  # right is what has all parts


def test_a_metric_that_is_no_mean_is_refused(instructions):
    assert mistake(instructions, lm_eval="instructions", metric="pair", **SAMPLED) == (
        "evals.tasks.heldout.metric: pair of instructions is no mean over items; its means: all, each"
    )


def test_packages_that_a_task_needs(instructions):
    (instructions / "parts.py").write_text("import no_such_package\n")
    said = mistake(instructions, lm_eval="instructions", metric="all", **SAMPLED)
    assert said.startswith("evals.tasks.heldout.lm_eval: instructions needs more packages: No module named")
    assert said.endswith("pip install -e '.[benchmarks]'")


# -- likelihoods ---------------------------------------------------------------------------------------------


def test_perplexity_is_no_mean_but_lambadas_accuracy_is(tmp_path):
    folder = on_rows(tmp_path, "lambada_openai", {"test": [{"text": "a b c"}]})
    assert mistake(folder, lm_eval="lambada_openai", metric="perplexity").endswith("its means: acc")
    said = mistake(folder, lm_eval="lambada_openai", metric="acc", **SAMPLED)
    assert said.startswith("evals.tasks.heldout.samples: lambada_openai scores likelihoods, without samples")


class Chatting(Scripted):
    """Speaks by the chat template of another model."""

    tokenizer_name = "that of the other model"

    def __init__(self, lm, say):
        super().__init__(say)
        self.tokenizer, self.apply_chat_template = lm.tokenizer, lm.apply_chat_template

    def end_with(self, also):
        self.ends = also


def test_a_chat_has_the_template_of_the_tokenizer_and_an_example_a_turn(gsm8k, checkpoint):
    lm = engine.load(language_model.locate(checkpoint), Engine(), 0, lambda done, total: None)
    task = task_of(lm_eval="gsm8k", filter="strict-match", fewshot=2, chat=True, items=1, **SAMPLED)
    lm.tokenizer.chat_template = None
    with pytest.raises(UserError, match=r"^evals\.tasks\.heldout\.chat: the model's tokenizer has no chat"):
        harness.sample(task, lm, seed=0, folder=gsm8k)
    lm.tokenizer.chat_template = CHAT
    chatting = Chatting(lm, lambda text, n: "#### 10")
    [row] = harness.sample(task, chatting, seed=0, folder=gsm8k)
    assert chatting.ends == (lm.tokenizer.eos_token_id,)  # the template has no end of a turn
    turns = row["question"].split("[")[1:]
    assert [turn.partition("]")[0] for turn in turns] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "bot",
    ]
    assert turns[4] == f"user]Question: {SUMS[5]['question']}\nAnswer:"
    assert row["correct"] == [True]
