"""The choice of the engine, and what vLLM is told."""

import inspect
import sys
import types
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import pytest
from lm_eval.api.instance import Instance
from lm_eval.api.registry import model_registry
from pydantic import ValidationError
from true_tokenizers import llama

from encore.errors import UserError
from encore.models.language_model import Source
from encore.recipe.machine import BackendArgs, Engine
from encore.sampling import engine

SOURCE = Source("org/model", "0" * 40, "hub:org/model@0")


def output(ids, finish, stop=None):
    """A completion as vLLM gives it; its text begins as in the middle of one."""
    return SimpleNamespace(text=" It is 7.", token_ids=ids, finish_reason=finish, stop_reason=stop)


@pytest.fixture
def vllm(monkeypatch):
    """Stands for the vLLM package: enough of it to import lm-eval's class, which is the real one."""
    made = {}

    class LLM:
        def __init__(self, **arguments):
            made["engine"] = arguments
            self.llm_engine = SimpleNamespace(model_config=SimpleNamespace(max_model_len=64))

        def generate(self, prompts, sampling_params, **kwargs):
            made["sampling"] = sampling_params[0]
            made["prompts"] = prompts
            return [SimpleNamespace(outputs=[each]) for each in made["outputs"]]

    tokenizer = SimpleNamespace(
        eos_token="<eos>",
        eos_token_id=1,
        bos_token_id=None,
        pad_token="<pad>",
        pad_token_id=0,
        unk_token=None,
        decode=lambda token: "<eos>",
    )
    fakes = {
        "vllm": {"LLM": LLM, "SamplingParams": lambda **options: options, "TokensPrompt": dict},
        "vllm.lora.request": {"LoRARequest": object},
        "vllm.renderers.hf": {"resolve_chat_template": lambda **kwargs: None},
        "vllm.tokenizers": {"get_tokenizer": lambda *args, **kwargs: tokenizer},
    }
    for name, content in fakes.items():
        for parent in (name.rpartition(".")[0], name):
            if parent and parent not in sys.modules:
                module = types.ModuleType(parent)
                module.__spec__ = ModuleSpec(parent, None)
                monkeypatch.setitem(sys.modules, parent, module)
        for key, value in content.items():
            monkeypatch.setattr(sys.modules[name], key, value, raising=False)
    for name in ("lm_eval.models.vllm_causallms", "encore.sampling.vllm"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    lazy = "lm_eval.models.vllm_causallms:VLLM"  # as it is before the first import
    monkeypatch.setitem(model_registry._objs, "vllm", lazy)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.31.0")
    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", lambda *args, **kwargs: SimpleNamespace())
    own = llama()
    own.add_special_tokens({"eos_token": "<eos>"})
    monkeypatch.setattr(engine.language_model, "load_tokenizer", lambda source: own)
    return made


def test_no_engine_argument_has_vllm_run_code_of_a_model(vllm):
    for code in ({"trust_remote_code": True}, {"load_format": "pt"}):
        with pytest.raises(ValidationError, match="unknown key"):
            Engine.model_validate({"backend": "vllm", "backend_args": code})
    engine.load(SOURCE, Engine(backend="vllm"), 7, lambda done, total: None)
    assert (vllm["engine"]["trust_remote_code"], vllm["engine"]["load_format"]) == (False, "safetensors")


def test_what_vllm_is_told_and_what_it_says(vllm):
    reports = []
    given = BackendArgs(max_model_len=64, tensor_parallel_size=2)
    lm = engine.load(
        SOURCE,
        Engine(backend="vllm", backend_args=given),
        7,
        lambda done, total: reports.append((done, total)),
    )
    assert (
        vllm["engine"].items()
        >= {
            "model": "org/model",
            "revision": "0" * 40,
            "trust_remote_code": False,
            "dtype": "float32",
            "load_format": "safetensors",
            "seed": 7,
            "max_model_len": 64,
            "tensor_parallel_size": 2,
        }.items()
    )
    lm.end_with([7])
    options = {
        "until": [],
        "do_sample": True,
        "temperature": 0.6,
        "top_p": 0.95,
        "top_k": 0,
        "max_gen_toks": 32,
    }
    ids = lm.tokenizer("It is 7.", add_special_tokens=False)["input_ids"]
    vllm["outputs"] = [
        output([*ids, lm.tokenizer.eos_token_id], "stop"),
        output([*ids, 7], "stop", 7),
        output(ids, "length"),
    ]
    said = lm.generate_until([Instance("generate_until", {}, ("2+2=", options), 0)] * 3)
    assert (
        vllm["sampling"].items()
        >= {
            "max_tokens": 32,
            "stop": ["<eos>"],
            "stop_token_ids": [7],
            "temperature": 0.6,
            "top_p": 0.95,
            "top_k": 0,
        }.items()
    )
    counts = [(len(ids) + 1, False), (len(ids) + 1, False), (len(ids), True)]
    assert [(c, c.tokens, c.truncated) for c in said] == [("It is 7.", *count) for count in counts]
    assert reports == [(3, 3)]
    asked = lm.tokenizer("2+2=")["input_ids"]
    assert asked[0] == lm.tokenizer.bos_token_id
    assert lm.tok_encode("2+2=") == asked  # of which likelihoods are scored
    assert [prompt["prompt_token_ids"] for prompt in vllm["prompts"]] == [asked] * 3
    assert [one.context for one in said] == [asked] * 3
    with pytest.raises(UserError, match="exceed the model's 64 positions"):
        lm.generate_until([Instance("generate_until", {}, ("2" * 40, options), 0)])


def test_a_stop_string_ends_what_vllm_says(vllm):
    lm = engine.load(SOURCE, Engine(backend="vllm"), 7, lambda done, total: None)
    ids, shown = (lm.tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("It is 7.", "It is"))
    vllm["outputs"] = [output(ids, "stop", " 7")]
    options = {"until": [" 7"], "do_sample": False, "temperature": 0.0, "max_gen_toks": 32}
    (said,) = lm.generate_until([Instance("generate_until", {}, ("2+2=", options), 0)])
    assert (said, said.tokens, said.truncated) == ("It is", len(shown), False)  # as transformers' are counted


def test_an_engine_that_does_not_start_is_told_in_one_line(vllm, monkeypatch):
    def broken(**_):
        raise RuntimeError("Engine core initialization failed.\nSee root cause above.")

    monkeypatch.setattr(sys.modules["vllm"], "LLM", broken)
    says = (
        r"^evals\.backend: vLLM does not start: Engine core initialization failed\. See root cause above\.$"
    )
    with pytest.raises(UserError, match=says):
        engine.load(SOURCE, Engine(backend="vllm"), 7, lambda done, total: None)


def test_vllm_arguments_are_those_lm_eval_takes(vllm):
    from lm_eval.models.vllm_causallms import VLLM

    names = set(inspect.signature(VLLM.__init__).parameters)
    assert set(engine.vllm_arguments(SOURCE, Engine(), 0)) - names == {"load_format"}  # goes on to the engine
