"""Dry runs of Snakemake, each in a fork of one process that has read the recipes: 2 s in place of 8.

`python dry_runs.py` reads a list of command lines, as JSON, from stdin, and prints what came of each: its
exit status, and what it wrote. It runs in the folder of a Snakefile. Only for the last command a plan of its
hours is made, which takes the import of torch.
"""

import atexit
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path


def of(commands: list[str], folder: Path) -> dict[str, tuple[int, str]]:
    """Return the exit status and the output of the dry run of each command, such as `snakemake r1_zero`."""
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(commands),
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(commands, map(tuple, json.loads(done.stdout)), strict=True))


def forked(command: str) -> tuple[int, str]:
    """Return the exit status and the output of one command, which a fork of this process runs."""
    from snakemake import cli

    from snakemake_logger_plugin_encore import with_cores, with_targets_first

    with tempfile.TemporaryFile("w+") as log:
        child = os.fork()
        if not child:
            status = 1
            try:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
                words = [*shlex.split(command)[1:], "--dry-run"]
                sys.argv = ["snakemake", *with_cores(with_targets_first(words))]
                status = cli.main()
            except SystemExit as ended:
                status = ended.code
            finally:
                atexit._run_exitfuncs()  # waits for the plan
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status if isinstance(status, int) else int(bool(status)))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        log.seek(0)
        return status, log.read()


def main() -> None:
    """Read the recipes once, for all commands that follow."""
    from encore.recipe.load import load_sound
    from encore.workflow import start

    recipes = load_sound()
    start.load_sound = lambda user_file=None: load_sound(user_file=user_file) if user_file else recipes
    commands, say_planned, results = json.load(sys.stdin), start.say_planned, []
    for number, command in enumerate(commands, start=1):
        start.say_planned = say_planned if number == len(commands) else lambda *_, **__: None
        results.append(forked(command))
    print(json.dumps(results))


if __name__ == "__main__":
    main()
