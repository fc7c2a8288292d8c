"""What a prompt has begun of the answer: known to rewards, health checks, labels and evaluations."""

import json
from pathlib import Path
from types import SimpleNamespace

import jobs
import pytest
import typed
from evaluated import parse
from scripted import Scripted
from true_tokenizers import THINKING, checkpoint, qwen2

from encore import worlds
from encore.data import forms, prompts, samples
from encore.data.token_ids import end_ids
from encore.errors import UserError
from encore.labels import annotators
from encore.rewards import rules
from encore.runtime import reward_checks
from encore.stages import setup
from encore.stages.policy import load_policy
from encore.worlds.answers import begun
from evals import harness, scores

CHAIN = {"world": "chain", "terms": [2, 3]}
TEMPLATE = "<user>{question}<assistant><think>"
WORDS = worlds.tokenizer([worlds.make(CHAIN)])
STAGE = {"task": CHAIN, "template": TEMPLATE, "problems": 8, "rewards": {"accuracy": 1.0, "format": 1.0}}


@pytest.mark.parametrize(
    ("prompt", "found"),
    [("a<think>", "<think>"), ("a<think>\n", "<think>\n"), ("<think>a", ""), ("</think>", ""), ("", "")],
)
def test_where_a_prompt_begins_the_answer(prompt, found):
    assert begun(prompt) == found


@pytest.mark.parametrize(
    "said", [{"template": TEMPLATE}, {"template": None, "chat": {"prefill": "<think>\n"}}]
)
def test_a_stage_rewards_the_whole_answer(said):
    """A format reward of the rest alone would be 0 for ever."""
    stage = {key: value for key, value in (STAGE | said).items() if value is not None}
    grpo, job = jobs.stage("grpo", stage), jobs.job({}, Path())
    (task,) = setup.tasks_of(grpo, job, WORDS, {0: 8}, {}, ())
    rows = task.problems.to_list()
    assert all(row["prompt"].endswith(row["prefill"]) for row in rows)
    rest = [f"1</think><answer>{row['answer']}</answer>" for row in rows]
    assert {*task.rewards} == {"accuracy", "format"}
    for reward in task.rewards.values():
        assert reward_checks.score(reward, rows, rest) == [1.0] * len(rows)


def test_thinking_that_a_prompt_has_begun_and_nobody_ends_is_no_answer():
    (reward,) = rules.build(["accuracy"], None)
    columns = {"question": ["q", "q"], "answer": ["8", "8"], "difficulty": [0, 0]}
    given = {"prompts": ["q", "q"], "completions": [r"\boxed{8}", r"3</think> \boxed{8}"]}
    assert reward(**given, **columns) == [1.0, 1.0]
    assert reward(**given, **columns, prefill=["<think>\n"] * 2) == [0.0, 1.0]
    assert reward(**given, **columns, prefill=[None, None]) == [1.0, 1.0]  # rows of another domain


@pytest.mark.parametrize("prefill", ["", "<think>\n", "<answer>", "Let me see. "])
def test_the_gold_answer_scores_behind_any_beginning(prefill):
    world = worlds.make(CHAIN)
    problems = [vars(problem) for problem in worlds.sample(world, 4, 0, "train")]
    rows = [{"prompt": "p", **problem, **({"prefill": prefill} if prefill else {})} for problem in problems]
    (accuracy,) = rules.build(["accuracy"], world)
    assert reward_checks.gold(accuracy, rows)["ok"]


def test_labels_know_it_too(tmp_path):
    problem = {"question": "1+2=", "answer": "3", "difficulty": 2}
    row = {
        "prompt": "p",
        **problem,
        "completions": ["<think>", "x"],
        "tokens": [1, 1],
        "truncated": [False] * 2,
    }
    samples.save([row | {"prefill": "<think>"}], tmp_path / "with")  # type: ignore[list-item,typeddict-item]
    samples.save([row], tmp_path / "without")  # type: ignore[list-item]
    kept, plain = (json.loads((tmp_path / name / samples.FILE).read_text()) for name in ("with", "without"))
    assert plain == row
    seen: list[str] = []
    annotators.rewarded([kept, plain], lambda problem, text: float(bool(seen.append(text))))
    assert seen == ["<think><think>", "<think>x", "<think>", "x"]


def test_an_evaluation_by_chat(heldout):
    """Prompts by the chat template; accuracy, format and votes of the whole answer; the end of a turn."""
    spec = {key: value for key, value in heldout.items() if key != "template"} | {"chat": True}
    (task,) = parse({"tasks": {"heldout": spec}})
    answers, asked, ended = gold(heldout), [], []

    def say(text, n):
        asked.append(text)
        return f".</think><answer>{answers[text]}</answer>"

    lm = Scripted(say)
    lm.tokenizer, lm.end_with = qwen2(THINKING), ended.append
    rows = harness.sample(task, lm, seed=0)
    assert asked[0].endswith("<|im_end|>\n<|im_start|>assistant\n<think>\n")
    assert ended == [(lm.tokenizer.eos_token_id,)]
    for row in rows:
        assert row["formatted"] == row["correct"] == [True] * heldout["samples"]
        assert set(row["votes"]) == {row["answer"]}


def gold(heldout):
    fill = forms.of(typed.form({"chat": True}), qwen2(THINKING)).fill
    problems = worlds.sample(worlds.make(heldout["task"]), heldout["items"], seed=0, split="test")
    return {fill(problem.question): problem.answer for problem in problems}


def test_scores_of_a_world_read_the_whole_answer(monkeypatch):
    (task,) = parse(
        {
            "tasks": {
                "one": {
                    "task": {"world": "preferences"},
                    "template": "{question}",
                    "items": 1,
                    "samples": 1,
                    "temperature": 1.0,
                    "top_p": 1.0,
                    "max_gen_toks": 4,
                    "k": [1],
                    "score": ["gold"],
                }
            }
        }
    )
    lm = Scripted(lambda prompt, n: " 7. ")
    (row,) = harness.sample(task, lm, seed=0)
    (other,) = harness.sample(task, lm, seed=0)
    row["prefill"] = "It is"
    scores.score(task, [row], scores.Judges())
    reward = worlds.make({"world": "preferences"}).rewards["gold"]
    problem = worlds.Problem(row["question"], row["answer"], row["difficulty"])
    assert row["gold"] == [reward(problem, "It is 7. ")]
    scores.score(task, [other], scores.Judges())
    assert other["gold"] == [reward(problem, " 7. ")]


# -- how completions end -------------------------------------------------------------------------------------


def test_a_policy_trained_by_chat_ends_its_turns(tmp_path):
    place = checkpoint("qwen2-base", tmp_path)
    plain = load_policy(jobs.stage("grpo", {"template": "{question}"}), {"policy": place})
    chat = load_policy(jobs.stage("grpo", {"chat": True}), {"policy": place})
    turn, document = (chat.tokenizer.convert_tokens_to_ids(t) for t in ("<|im_end|>", "<|endoftext|>"))
    assert plain.tokenizer.eos_token_id == plain.generation.eos_token_id == document
    assert chat.tokenizer.eos_token_id == turn
    assert chat.generation.eos_token_id == sorted((turn, document))
    chat.save(tmp_path / "trained")
    saved = SimpleNamespace(**json.loads((tmp_path / "trained/final/generation_config.json").read_text()))
    assert end_ids(saved, chat.tokenizer) == sorted((turn, document))
    for use_vllm, told in (
        (True, {"stop_token_ids": sorted((turn, document)), "seed": 1}),
        (False, {"seed": 1}),
    ):
        args = SimpleNamespace(use_vllm=use_vllm, generation_kwargs={"seed": 1})
        setup.end_with_turns(args, jobs.stage("grpo", {"domains": {"a": {"chat": True}}}), chat)
        assert args.generation_kwargs == told


# -- problems that come with a beginning of their own -----------------------------------------------------

SLIPPED = CHAIN | {"terms": [3, 5], "slipped": 0.5}


def test_prompts_end_with_it_and_rewards_read_it():
    rows = prompts.of_task(typed.task(SLIPPED), forms.plain("{question}<assistant>"), 40, 0).to_list()
    begun = [row["prefill"] for row in rows]
    assert 10 < begun.count("") < 30
    for row in rows:
        assert row["prompt"] == f"{row['question']}<assistant>{row['prefill']}"
    (accuracy, formatted) = rules.build(["accuracy", "format"], worlds.make(SLIPPED))
    assert reward_checks.gold(accuracy, rows)["ok"]
    rest = [f"1</think><answer>{row['answer']}</answer>" for row in rows]
    assert reward_checks.score(accuracy, rows, rest) == [1.0] * 40
    assert reward_checks.score(formatted, rows, rest) == [float(bool(one)) for one in begun]


def test_so_do_those_of_an_evaluation():
    keys = {"items": 12, "samples": 2, "temperature": 1.0, "top_p": 1.0, "max_gen_toks": 4, "k": [1]}
    spec = {"task": SLIPPED, "template": "{question}<assistant>", "score": ["unrepaired"], **keys}
    (task,) = parse({"tasks": {"one": spec}})
    asked = []

    def say(text, n):
        asked.append(text)
        return "2+2=4</think><answer>4</answer>"

    rows = harness.sample(task, Scripted(say), seed=0)
    scores.score(task, rows, scores.Judges())
    problems = worlds.sample(worlds.make(SLIPPED), 12, 0, "test")
    assert {problem.begun[:7] for problem in problems} == {"", "<think>"}
    assert {*asked} == {f"{problem.question}<assistant>{problem.begun}" for problem in problems}
    for row, problem in zip(rows, problems, strict=True):
        assert row.get("prefill", "") == problem.begun
        assert row["formatted"] == [bool(problem.begun)] * 2
        assert row["unrepaired"] == [float(bool(problem.begun))] * 2


def test_a_reply_is_begun_once():
    with pytest.raises(UserError, match=r"^task: its problems begin replies with '<think>.*leave out one"):
        prompts.of_task(typed.task(SLIPPED), forms.plain("{question}<think>"), 40, 0)


def test_the_columns_of_prompts_are_those_of_before():
    assert prompts.of_task(typed.task(CHAIN), forms.plain("{question}"), 2, 0).column_names == [
        "prompt",
        "question",
        "answer",
        "difficulty",
    ]
