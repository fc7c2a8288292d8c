"""The reader of a file that W&B writes offline, `offline-run-*/run-*.wandb`; it needs no network.

The records are protocol buffers, which the package `wandb` defines. They are stored in the log format of
LevelDB: blocks of 32 KiB with fragments of records. A fragment begins with its checksum, length and kind.
"""

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from encore.errors import UserError, first_line

HEAD = b":W&B"
START = 7  # bytes before the first fragment: HEAD, a number and a version
BLOCK = 1 << 15
FRAGMENT = struct.Struct("<IHB")
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4  # kinds of fragments


class Run(NamedTuple):
    """A run: its name, and metric -> value for each call of wandb.log, in order."""

    name: str
    entries: list[Mapping[str, object]]


def run(path: Path) -> Run:
    """Return the run in a file, without a last record that was cut off.

    Raises UserError if the package `wandb` is missing, or if the file is damaged or names no run.
    """
    try:
        # imported here because few studies have such files, and the packages may be missing
        from google.protobuf.message import DecodeError
        from wandb.proto.wandb_internal_pb2 import Record  # type: ignore[attr-defined]  # made at run time
    except ImportError:
        raise UserError(f"{path}: to read it: pip install wandb, or export the run as CSV") from None
    name, entries = "", list[Mapping[str, object]]()
    try:
        for content in records(path.read_bytes()):
            record = Record.FromString(content)
            if record.HasField("run"):
                name = record.run.display_name or record.run.run_id
            if record.HasField("history"):
                items = record.history.item
                entries.append(
                    {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in items}
                )
    except (DecodeError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: damaged: {first_line(error)}") from None
    if not name:
        raise UserError(f"{path}: it names no run: was W&B killed before it wrote one?")
    return Run(name, entries)


def records(content: bytes) -> Iterator[bytes]:
    """Yield the bytes of each record in a file. Raises ValueError if a fragment is bad or out of order."""
    at, parts = START, list[bytes]()
    while at + FRAGMENT.size <= len(content):
        room = BLOCK - at % BLOCK
        if room < FRAGMENT.size:  # too little for a head, so the block was filled up
            at += room
            continue
        _, length, kind = FRAGMENT.unpack_from(content, at)
        begins = kind in (WHOLE, FIRST)
        if kind not in (WHOLE, FIRST, MIDDLE, LAST) or begins == bool(parts) or length > room:
            raise ValueError(f"no record of W&B at byte {at}")
        at += FRAGMENT.size + length
        if at > len(content):
            return
        parts.append(content[at - length : at])
        if kind in (WHOLE, LAST):
            yield b"".join(parts)
            parts = []
