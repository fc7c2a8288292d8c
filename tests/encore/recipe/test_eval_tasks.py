"""Every mistake in a task is one line that names the task and the key."""

import pytest
from evaluated import parse

from encore.errors import UserError
from encore.recipe.form import Chat


def changed(heldout, **changes):
    task = {**heldout, **changes}
    return {"tasks": {"heldout": {key: value for key, value in task.items() if value is not ...}}}


def test_a_world_task(heldout):
    (task,) = parse(changed(heldout))
    assert task.name == "heldout"
    assert task.k == (1, 4, 8)
    assert task.generation() == {
        "do_sample": True,
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 0,
        "max_gen_toks": 40,
    }


def test_a_task_by_chat(heldout):
    (task,) = parse(changed(heldout, template=..., chat={"system": "s"}))
    assert (task.template, task.chat) == (None, Chat(system="s"))
    (task,) = parse({"tasks": {"tax": {"lm_eval": "hellaswag", "chat": True}}})
    assert task.chat is True


def test_greedy(heldout):
    (task,) = parse(changed(heldout, temperature=0, samples=1, k=[1]))
    assert task.generation() == {"do_sample": False, "temperature": 0.0, "max_gen_toks": 40}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sample": 4}, 'evals.tasks.heldout.sample: unknown key; did you mean "samples"?'),
        ({"samples": ...}, "evals.tasks.heldout.samples: missing"),
        ({"items": ...}, "evals.tasks.heldout.items: missing"),
        (
            {"tool": {"name": "frozenlake", "calls": 1, "longest": 2}},
            'evals.tasks.heldout.tool.name: no tool "frozenlake"; did you mean "frozen_lake"?',
        ),
        (
            {"tool": {"name": "shop", "calls": 1, "longest": 2}},
            "evals.tasks.heldout.tool.name: the calls act in world shop, but the task's world is chain; set",
        ),
        ({"template": ...}, "evals.tasks.heldout.template: missing"),
        (
            {"task": ..., "template": ..., "items": ..., "lm_eval": "gsm8k", "chat": {"system": "s"}},
            "evals.tasks.heldout.chat: lm-eval's gsm8k has its own prompt; expected true",
        ),
        (
            {"template": ..., "chat": {"sistem": "s"}},
            'evals.tasks.heldout.chat.sistem: unknown key; did you mean "system"?',
        ),
        ({"template": ..., "chat": "yes"}, "evals.tasks.heldout.chat: expected true or a mapping"),
        ({"template": ..., "chat": {}}, "evals.tasks.heldout.chat: must not be empty"),
        (
            {"template": ..., "chat": {"system": " "}},
            'evals.tasks.heldout.chat.system: expected some text, got " "',
        ),
        ({"samples": 4}, "evals.tasks.heldout.k: 8 is more than samples: 4; pass@k needs k samples"),
        ({"samples": "16"}, 'evals.tasks.heldout.samples: expected a whole number, got the text "16"'),
        ({"samples": True}, "evals.tasks.heldout.samples: expected a whole number, got true"),
        ({"samples": 16.0}, "evals.tasks.heldout.samples: expected a whole number, got 16.0"),
        ({"samples": 0}, "evals.tasks.heldout.samples: expected at least 1, got 0"),
        ({"temperature": "1.0"}, 'evals.tasks.heldout.temperature: expected a number, got the text "1.0"'),
        ({"temperature": 101}, "evals.tasks.heldout.temperature: expected at most 100, got 101"),
        ({"top_p": 0}, "evals.tasks.heldout.top_p: expected more than 0, got 0"),
        ({"k": 4}, "evals.tasks.heldout.k: expected a list"),
        ({"temperature": 0}, "evals.tasks.heldout.samples: temperature 0 gives 8 equal samples"),
        ({"lm_eval": "aime24"}, 'evals.tasks.heldout: expected one of "task"'),
        (
            {"lm_eval": "aime24", "task": ...},
            "evals.tasks.heldout.template: lm-eval's aime24 has its own prompt",
        ),
        (
            {"lm_eval": "gsm8k", "task": ..., "template": ..., "skip": 8},
            "evals.tasks.heldout.skip: lm-eval's gsm8k has its own items; leave it out",
        ),
        ({"skip": -1}, "evals.tasks.heldout.skip: expected at least 0, got -1"),
        ({"filter": "none"}, "evals.tasks.heldout.filter: a key of lm-eval's own tasks, which `lm_"),
        ({"fewshot": -1}, "evals.tasks.heldout.fewshot: expected at least 0, got -1"),
    ],
)
def test_mistakes(heldout, changes, message):
    with pytest.raises(UserError) as error:
        parse(changed(heldout, **changes))
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_a_task_of_lm_eval_without_samples():
    """It scores likelihoods: all keys of sampling are left out, or none."""
    (task,) = parse({"tasks": {"tax": {"lm_eval": "hellaswag", "metric": "acc_norm"}}})
    assert (task.samples, task.k, task.metric, task.filter, task.fewshot, task.chat) == (
        *(None, (), "acc_norm"),
        *(None, None, None),
    )
    with pytest.raises(UserError, match=r"^evals\.tasks\.tax\.samples: missing\n"):
        parse({"tasks": {"tax": {"lm_eval": "gsm8k", "temperature": 0.0}}})


def test_a_job_is_given_the_digests_of_a_file_and_of_own_code(heldout):
    pins = {"sha256": "0" * 64, "code": {"mine:right": "1" * 64}}
    task = {"file": "rows.jsonl", "question": "q", "answer": "a", "verifier": "mine:right", **pins}
    (parsed,) = parse(changed(heldout, task=task))
    assert parsed.task.sha256 == "0" * 64


def test_an_unknown_key_beside_the_tasks(heldout):
    with pytest.raises(UserError, match=r'evals\.backends: unknown key; did you mean "backend"'):
        parse({**changed(heldout), "backends": "vllm"})


@pytest.mark.parametrize("config", [{}, {"tasks": {}}, {"tasks": {"heldout": 3}}])
def test_nothing_to_evaluate(config):
    with pytest.raises(UserError, match=r"evals\.tasks"):
        parse(config)
