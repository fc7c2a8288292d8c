"""The command that carries the files of a job from and to the bucket of a run, around the job's own command.

    python -m encore.workflow.carry s3://BUCKET/FOLDER --result results/…/metrics.json \
        --state checkpoints/… --product results/…/metrics.json[@STEP] -- COMMAND …

Before the command, the products of the stages that it reads come, and the state of its own training, if an
earlier attempt has left one. While the command runs, its state is stored whenever it has changed, in one
object, so that the bucket never has half a state. After it, its product and the files of its result are
stored. Snakemake carries the files that it knows of, such as metrics.json, by itself.

The connection is boto3's: the variables AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL and so on, or a role.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.errors import UserError
from encore.runtime import digests, sentinel
from encore.workflow.after_job import BY_SIGNAL

EVERY = 60.0  # seconds between two looks whether the training state has changed
TRIES = 3  # attempts to pack a state that changes meanwhile


@dataclass(frozen=True)
class Bucket:
    """The part of a bucket of S3 that lies below a URL; its keys are paths relative to the run's folder."""

    bucket: Any  # boto3's Bucket
    folder: str  # the URL's path with a slash at its end, or ""

    @classmethod
    def at(cls, url: str) -> "Bucket":
        """Return the part of a bucket that `url`, s3://BUCKET/FOLDER, names."""
        import boto3  # imported here, because only runs with a bucket have it

        bucket, _, folder = url.removeprefix("s3://").partition("/")
        return cls(boto3.resource("s3").Bucket(bucket), f"{folder}/" if folder else "")

    def files(self, prefix: str) -> Iterator[tuple[Path, Any]]:
        """Yield path and boto3's summary of each object whose path begins with `prefix`."""
        for entry in self.bucket.objects.filter(Prefix=f"{self.folder}{prefix}"):
            path = Path(entry.key.removeprefix(self.folder))
            if ".." not in path.parts and not path.is_absolute() and not entry.key.endswith("/"):
                yield path, entry

    def get(self, path: Path, to: Path) -> None:
        """Write the object of a path into the file `to`, completely or not at all."""
        to.parent.mkdir(parents=True, exist_ok=True)
        partial = to.with_name(f".{to.name}.partial")
        self.bucket.download_file(f"{self.folder}{path.as_posix()}", str(partial))
        partial.replace(to)

    def put(self, file: Path) -> None:
        """Store a file."""
        self.bucket.upload_file(str(file), f"{self.folder}{file.as_posix()}")

    def delete(self, path: Path) -> None:
        """Delete the object of a path, if there is one."""
        self.bucket.Object(f"{self.folder}{path.as_posix()}").delete()


def get_results(bucket: Bucket) -> None:
    """Bring the files of all results that are not here, or are older here."""
    for path, entry in bucket.files("results/"):
        stored = entry.last_modified.timestamp()
        stat = path.stat() if path.is_file() else None
        if stat and stat.st_size == entry.size and stat.st_mtime >= stored:
            continue
        bucket.get(path, path)
        os.utime(path, (stored, stored))


@contextlib.contextmanager
def told(url: str) -> Iterator[None]:
    """Raise a UserError with one line in place of an error of the connection to the bucket at `url`."""
    from boto3.exceptions import Boto3Error  # imported here, as boto3 is
    from botocore.exceptions import BotoCoreError, ClientError  # imported here, as boto3 is

    try:
        yield
    except (BotoCoreError, ClientError, Boto3Error) as error:
        raise UserError(f"{url}: {error}") from None


def get_product(bucket: Bucket, product: str) -> None:
    """Bring the product of a stage, named by its sentinel and perhaps @STEP, unless it is here.

    Raises UserError if the bucket does not have all its files.
    """
    metrics_json, _, step = product.partition("@")
    entry = sentinel.model_at(sentinel.read_sentinel(Path(metrics_json)), int(step) if step else None)
    folder, sizes = Path(entry["model"]), entry["files"]
    if folder.is_dir() and sentinel.sizes(folder) == sizes:
        return
    partial = folder.with_name(f".{folder.name}.carried")
    shutil.rmtree(partial, ignore_errors=True)
    for path, _ in bucket.files(f"{folder.as_posix()}/"):
        if path.relative_to(folder).as_posix() in sizes:
            bucket.get(path, partial / path.relative_to(folder))
    if not partial.is_dir() or sentinel.sizes(partial) != sizes:
        raise UserError(f"{folder}: not whole in the storage; delete {metrics_json} there to make it again")
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)


class State:
    """The training state of a stage, a folder of checkpoints, and its copy in the bucket, one archive."""

    def __init__(self, bucket: Bucket, folder: Path) -> None:
        self.bucket, self.folder = bucket, folder
        self.archive = folder.with_name(f"{folder.name}.tar")
        self.stored: list[tuple[str, int, int]] = []  # name, size and mtime of each file that was stored

    def get(self) -> None:
        """Unpack the archive, if there is one and the folder is not here."""
        if self.folder.exists() or not any(path == self.archive for path, _ in self._archives()):
            return
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.bucket.get(self.archive, self.archive)
        with tarfile.open(self.archive) as packed:
            packed.extractall(self.folder, filter="data")
        self.archive.unlink()
        self.stored = self._files()

    def put(self) -> None:
        """Store the state if it has changed since it was stored; not now if it changes while it is packed."""
        for _ in range(TRIES):
            files = self._files()
            if not files or files == self.stored:
                return
            with tempfile.TemporaryFile(dir=self.folder.parent) as stream, contextlib.suppress(OSError):
                with tarfile.open(fileobj=stream, mode="w") as packed:
                    for name, _, _ in files:
                        packed.add(self.folder / name, name)
                if self._files() == files:
                    stream.seek(0)
                    key = f"{self.bucket.folder}{self.archive.as_posix()}"
                    self.bucket.bucket.upload_fileobj(stream, key)
                    self.stored = files
                    return

    def delete(self) -> None:
        """Delete the archive: the stage is done."""
        self.bucket.delete(self.archive)

    def _archives(self) -> Iterator[tuple[Path, Any]]:
        return self.bucket.files(self.archive.as_posix())

    def _files(self) -> list[tuple[str, int, int]]:
        """Return name, bytes and mtime of each file of the state, but the lock's."""
        files = []
        for path in sorted(self.folder.rglob("*")):
            with contextlib.suppress(FileNotFoundError):  # a checkpoint that is deleted as it is read
                if path.is_file() and path.name != "lock":
                    stat = path.stat()
                    files.append((path.relative_to(self.folder).as_posix(), stat.st_size, stat.st_mtime_ns))
        return files


def run(command: list[str], state: State | None) -> int:
    """Run a command while its state is stored as it changes, and return its exit status as a shell would.

    A signal that tells this process to end is passed on to the command, which saves its state. A state that
    cannot be stored now is tried again later.
    """
    with subprocess.Popen(command) as process:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda received, _: process.send_signal(received))
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(EVERY)
                return status if status >= 0 else BY_SIGNAL - status
            if state:
                try:
                    with told(str(state.archive)):
                        state.put()
                except UserError as error:  # the connection may be back the next time
                    print(f"warning: not stored: {error}", file=sys.stderr)


def put_result(bucket: Bucket, result: Path) -> None:
    """Store the files of a result and, if it is a stage's, its products."""
    if result.name == "metrics.json":
        for product in sentinel.products(sentinel.read_sentinel(result)):
            for name in sentinel.sizes(Path(product["model"])):
                bucket.put(Path(product["model"], name))
    for file in digests.files_of(result):
        bucket.put(file)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Run a job whose files lie in a bucket of S3.")
    parser.add_argument("url", help="s3://BUCKET/FOLDER")
    parser.add_argument("--result", type=Path, required=True, help="the file that the job writes last")
    parser.add_argument("--state", type=Path, help="the folder of a stage's training state")
    parser.add_argument("--product", action="append", default=[], metavar="METRICS_JSON[@STEP]")
    parser.add_argument("--results", action="store_true", help="bring the files of all results")
    parser.add_argument("command", nargs="+")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; `arguments` defaults to the command line."""
    options = parse(arguments)
    try:
        with told(options.url):
            return _carry(options, Bucket.at(options.url))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _carry(options: argparse.Namespace, bucket: Bucket) -> int:
    """Bring what the job reads, run it, store what it made, and return its exit status."""
    state = State(bucket, options.state) if options.state else None
    for product in options.product:
        get_product(bucket, product)
    if options.results:
        get_results(bucket)
    if state:
        state.get()
    status = run(options.command, state)
    if status == 0:
        put_result(bucket, options.result)
    if state:
        (state.put if status else state.delete)()
    return status


if __name__ == "__main__":
    sys.exit(main())
