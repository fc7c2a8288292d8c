"""Chat templates of true kinds: prompts, ends of turns, replies begun, conversations as documents."""

import json
from pathlib import Path
from typing import Any

import guessing
import pytest
import trl
import typed
from true_tokenizers import MADE, THINKING, chatml, gpt_neox, llama, qwen2, qwen2_base

from encore import worlds
from encore.data import demonstrations, forms
from encore.data.chat import Chat
from encore.errors import UserError
from encore.models.packing import IGNORED
from encore.recipe.task import Asked
from encore.recipe.tool import CHAT_RESULT
from encore.recipe.world_tasks import EnvironmentTask
from encore.stages import sft
from encore.worlds import environment

TEMPLATES = Path(trl.__file__).parent / "chat_templates"  # of published models, as TRL ships them

TALK = [
    {"role": "user", "content": "What is 3?"},
    {"role": "assistant", "content": "It is 3."},
    {"role": "user", "content": "What is 4?"},
    {"role": "assistant", "content": "It is 4."},
]
THOUGHT = [{**turn, "content": turn["content"].replace("It", "<think>\n3\n</think>It")} for turn in TALK]
HUB: dict[str, Any] = {"hub": "org/talks", "split": "train", "prompt": "messages", "completion": "messages"}


@pytest.mark.parametrize(
    ("kind", "end"),
    [("llama", "</s>"), ("qwen2", "<|im_end|>"), ("chatml", "<|im_end|>"), ("qwen2-base", "<|im_end|>")],
)
def test_the_token_that_ends_a_turn(kind, end):
    words = MADE[kind]()
    form = forms.of(typed.form({"chat": True}), words)
    assert form.ends == (words.convert_tokens_to_ids(end),)
    forms.end_turns(words)
    assert words.eos_token == end


def test_a_template_without_a_token_at_the_end_of_turns():
    words = qwen2("{% for m in messages %}{{ m.role + ': ' + m.content + '\\n' }}{% endfor %}")
    assert Chat(words).end == words.eos_token
    assert Chat(words).exchanges(TALK)[1] == [
        ("user: What is 3?\nassistant: It is 3.\nuser: What is 4?\n", "assistant: It is 4.")
    ]


def test_system_request_and_prefill():
    form = forms.of(
        typed.form({"chat": {"system": "It is.", "user": "{question}!", "prefill": "<think>\n"}}), qwen2()
    )
    assert form.fill("3") == (
        "<|im_start|>system\nIt is.<|im_end|>\n"
        "<|im_start|>user\n3!<|im_end|>\n<|im_start|>assistant\n<think>\n"
    )
    assert form.prefill == "<think>\n"


def test_a_chat_template_may_itself_begin_replies():
    form = forms.of(typed.form({"chat": True}), qwen2(THINKING))
    assert form.prefill == "<think>\n"
    assert form.fill("<think>3").endswith("<think>3<|im_end|>\n<|im_start|>assistant\n<think>\n")
    with pytest.raises(UserError, match=r"^chat\.prefill: the chat template itself begins replies"):
        forms.of(typed.form({"chat": {"prefill": "<think>"}}), qwen2(THINKING))


def test_plain_templates_begin_the_answer_with_their_last_word_alone():
    assert forms.plain("{question}<assistant><think> \n").prefill == "<think> \n"
    assert forms.plain("Use <think> </think>. {question}:").prefill == ""
    assert forms.plain("{question}").prefill == ""
    with pytest.raises(UserError, match="template: expected"):
        forms.plain("no question")


def test_chat_of_a_world_is_its_template():
    words = worlds.tokenizer([worlds.make({"world": "chain"})])
    form = forms.of(typed.form({"chat": True}), words)
    assert form.fill("1+2=") == "<user>1+2=<assistant>"
    assert (form.prefill, form.ends) == ("", (words.eos_token_id,))


def test_the_date_is_always_the_same():
    dated = "{{ strftime_now('%d %b %Y') }}{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}"
    assert forms.of(typed.form({"chat": True}), qwen2(dated)).fill("3") == "26 Jul 20243<|im_end|>"


@pytest.mark.parametrize(
    ("words", "chat", "says"),
    [
        (gpt_neox, True, "chat: the model's tokenizer has no chat template; write the turns as a template"),
        (
            lambda: qwen2("{{ raise_exception('System role not supported') }}"),
            True,
            "chat: the model's chat template refuses a conversation: System role not supported",
        ),
        (lambda: qwen2("{% if %}"), True, "chat: the model's chat template refuses a conversation: Expected"),
    ],
)
def test_a_tokenizer_that_does_not_do(words, chat, says):
    with pytest.raises(UserError) as error:
        forms.of(typed.form({"chat": chat}), words())
    assert str(error.value).startswith(says)
    assert "\n" not in str(error.value)


def test_a_chat_template_without_the_tokenizers_bos_is_refused():
    words = llama()
    words.chat_template = chatml().chat_template
    with pytest.raises(UserError, match="begins every text with <s>, its chat template does not"):
        forms.of(typed.form({"chat": True}), words)


# -- demonstrations ------------------------------------------------------------------------------------------


def learnt(document: dict[str, list[int]]) -> list[int]:
    pairs = zip(document["input_ids"], document["labels"], strict=True)
    assert all(label in (IGNORED, token) for token, label in pairs)
    return [label for label in document["labels"] if label != IGNORED]


def rows_of(monkeypatch: pytest.MonkeyPatch, words: Any, talks: list[Any], chat: Any = True) -> Any:
    class Rows(list):
        def select(self, places):
            return [self[place] for place in places]

    given = Rows({"messages": talk} for talk in talks)
    monkeypatch.setattr(demonstrations.hub, "load", lambda task, keys: given)
    return demonstrations.usable(demonstrations.of_task(typed.source({"task": HUB, "chat": chat}), 0, words))


@pytest.mark.parametrize("kind", ["qwen2", "chatml", "llama"])
def test_every_reply_of_a_conversation_is_learnt_in_one_document(kind, monkeypatch):
    words = MADE[kind]()
    rows, skipped = rows_of(monkeypatch, words, [TALK])
    assert not skipped
    (document,) = sft.documents(rows, words, whole=False)
    whole = words.apply_chat_template(TALK)["input_ids"]
    last = len(whole) - whole[::-1].index(words.eos_token_id)  # ChatML has a line break behind it
    assert document["input_ids"] == whole[:last]
    ends = [place for place, token in enumerate(document["labels"]) if token == words.eos_token_id]
    assert len(ends) == 2
    said = "".join(words.decode(learnt(document)).split(words.eos_token))
    assert said.replace(" ", "") == "Itis3.Itis4."
    assert rows[0]["question"] == "What is 3?"  # by which it is compared with evaluations
    assert sft.documents(rows, words, whole=False, max_length=last) == [document]
    assert not sft.documents(rows, words, whole=False, max_length=last - 1)
    (read,) = sft.documents(rows, words, whole=True)
    assert read == dict.fromkeys(read, document["input_ids"])


def test_thinking_that_a_template_drops_later_is_learnt_once_and_in_place(monkeypatch):
    words = qwen2(THINKING)
    rows, _ = rows_of(monkeypatch, words, [THOUGHT])
    first, second = sft.documents(rows, words, whole=False)
    assert words.decode(first["input_ids"]) == (
        "<|im_start|>user\nWhat is 3?<|im_end|>\n"
        "<|im_start|>assistant\n<think>\n3\n</think>It is 3.<|im_end|>"
    )
    assert words.decode(learnt(first)) == "3\n</think>It is 3.<|im_end|>"
    assert words.decode(second["input_ids"]).count("<think>") == 1  # not the one of the first reply
    assert words.decode(learnt(second)) == "3\n</think>It is 4.<|im_end|>"


def test_a_base_model_learns_the_end_of_its_chat_template(monkeypatch):
    words = qwen2_base()
    forms.end_turns(words)
    rows, _ = rows_of(monkeypatch, words, [TALK[:2]])
    (document,) = sft.documents(rows, words, whole=False)
    assert words.decode(learnt(document)) == "It is 3.<|im_end|>"


def test_what_cannot_be_learnt_is_counted(monkeypatch):
    blank = [TALK[0], {"role": "assistant", "content": " "}]
    tool = [TALK[0], {"role": "tool", "content": "3"}, TALK[1]]
    talks = [[], TALK[1:], blank, tool, TALK[:1], [*THOUGHT[:2], *TALK[2:]], TALK]
    rows, skipped = rows_of(monkeypatch, qwen2(THINKING), talks)
    assert skipped == {"malformed": 4, "empty": 1, "unreasoned": 1}
    assert len(rows) == 1


@pytest.mark.parametrize(
    ("asked", "completion", "expected"),
    [
        ("What is 3?", "It is 3.", TALK[:2]),
        (TALK[:1], TALK[1:2], TALK[:2]),
        (TALK[:1], "It is 3.", TALK[:2]),
        (TALK, TALK, TALK),
        ("ignored", TALK[:3], TALK[:2]),
    ],
)
def test_columns_of_texts_and_of_turns(asked, completion, expected):
    assert demonstrations.conversation(asked, completion) == expected


def test_the_request_and_the_system_prompt_of_a_recipe(monkeypatch):
    own = [{"role": "system", "content": "3"}, *TALK]
    chat = {"system": "4", "user": "{question}!"}
    (row, other), _ = rows_of(monkeypatch, qwen2(), [TALK, own], chat)
    assert row["prompt"].startswith(
        "<|im_start|>system\n4<|im_end|>\n<|im_start|>user\nWhat is 3?!<|im_end|>"
    )
    assert other["prompt"].startswith("<|im_start|>system\n3<|im_end|>")
    assert "What is 4?<|im_end|>" in row["further"][0][0]


@pytest.fixture
def guess() -> EnvironmentTask:
    """The task of guessing.py's environment."""
    return EnvironmentTask.model_validate({"environment": "guessing:Guess"})


@pytest.mark.parametrize("family", ["qwen2_5", "qwen3"])
def test_a_chat_template_tells_of_an_environments_tools(family, guess):
    """What Encore puts around a result by default is what the templates of Qwen put there."""
    words = qwen2((TEMPLATES / f"{family}.jinja").read_text(encoding="utf-8"))
    part = Asked.model_validate({"task": guess, "chat": True})
    prompt = forms.of(part.form, words).fill("3")
    assert '"name": "guess"' in prompt
    assert environment.CALL[0] in prompt
    talk: list[dict[str, Any]] = [
        {"role": "user", "content": "3"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"type": "function", "function": {"name": "guess", "arguments": {"number": 3}}}],
        },
        {"role": "tool", "name": "guess", "content": "less"},
    ]
    whole = words.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
    _, _, behind = whole.rpartition(environment.CALL[1])
    assert CHAT_RESULT[0] + "less" + CHAT_RESULT[1] == behind
    call = whole.rpartition(environment.CALL[1])[0].rpartition(environment.CALL[0])[2]
    assert json.loads(call) == json.loads(guessing.call(3))


def test_a_chat_template_without_tools_is_refused_unless_the_system_prompt_names_them(guess):
    keys = {"task": guess, "chat": {"system": "Call guess with a number."}}
    assert forms.of(Asked.model_validate(keys).form, qwen2()).fill("3")
    with pytest.raises(UserError, match="shows no tools, so the policy would not know guess; describe"):
        forms.of(Asked.model_validate({"task": guess, "chat": True}).form, qwen2())
