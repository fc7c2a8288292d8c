"""The commands of `encore`. The library typer writes their help and completes them on the command line.

Each command is in a separate module, which is imported when the command is called, because help must not load
torch.
"""

import os
import shlex
import sys
import webbrowser
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from encore.commands import reward
from encore.errors import UserError
from encore.recipe.document import REPORTS
from encore.recipe.machine import Backend
from encore.runtime import suite

app = typer.Typer(
    help="Reproduce papers of RL for language models, and make the suite your own.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(reward.app, name="reward")
Recipe = Annotated[str, typer.Argument(help="A name (encore list), or the file of a recipe of your own.")]
Scale = Annotated[str, typer.Option(help="cpu, small, gpu-offline, gpu, paper, or one of your own.")]
Model = Annotated[
    str, typer.Argument(help="metrics.json of a stage, a folder, or org/name@commit of the Hub.")
]


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="The recipe's name, or its file: NAME.yaml is written.")],
    world: Annotated[str, typer.Option(help="chain (sums) or countdown.")] = "chain",
    data: Annotated[
        Path | None, typer.Option(help="Your JSON lines, in place of the world's problems.")
    ] = None,
    question: Annotated[str, typer.Option(help="Column of --data.")] = "question",
    answer: Annotated[str, typer.Option(help="Column of --data.")] = "answer",
    reward: Annotated[str | None, typer.Option(help="Your own reward: my_module:function.")] = None,
    model: Annotated[
        str | None, typer.Option(help="What it starts from: a folder, or org/name@commit.")
    ] = None,
) -> None:
    """Write a recipe that runs. It has a base model, two arms, one claim, and comments."""
    # imported late, as in all commands below: help must not wait for it
    from encore.commands import new as made

    file = made.write(name, made.Wanted(world, data, question, answer, reward, model))
    typer.echo(f"wrote {file}; see what would run, and run it:\n  encore run {file} -n\n  encore run {file}")


@app.command()
def run(
    recipe: Recipe,
    scale: Scale = "cpu",
    quickstart: Annotated[
        bool, typer.Option("--quickstart", help="Run only the arms and seeds of its quickstart.")
    ] = False,
    arms: Annotated[str | None, typer.Option(help="Run only these arms: a,b.")] = None,
    claims: Annotated[str | None, typer.Option(help="Run only the arms of these claims: a,b.")] = None,
    seeds: Annotated[str | None, typer.Option(help="A number (8), a list (0,2), or auto.")] = None,
    cores: Annotated[str, typer.Option(help="Processor cores: a number, or all.")] = "all",
    dry: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Say what would run, why, and its cost.")
    ] = False,
) -> None:
    """Run a recipe by snakemake, or continue it. Results that are still valid are kept."""
    from encore.recipe.load import own_file  # imported late

    user_file = own_file({"recipe": recipe})
    name = user_file.stem if user_file else recipe
    chosen = {"scale": scale, "arms": arms, "claims": claims, "seeds": seeds}
    if quickstart or name != recipe:
        chosen["recipe"] = recipe
    words = [f"{key}={value}" for key, value in chosen.items() if value is not None]
    target = [] if quickstart else [name]
    command = [*shlex.split(suite.snakemake()), "--cores", cores, *(["-n"] if dry else [])]
    command += [*target, "--config", *words]
    typer.echo(shlex.join(command), err=True)
    # jobs call `python`: this one, also if the virtual environment was not activated
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    os.execve(sys.executable, [sys.executable, "-m", *command], os.environ | {"PATH": path})


@app.command()
def register(recipe: Recipe, scale: Scale = "cpu") -> None:
    """Register in a file what decides the claims of a recipe. Commit it before the first judged run."""
    from encore.commands.register import register as written  # imported late

    for line in written(recipe, scale):
        typer.echo(line)


@app.command("list")
def _list(scale: Scale = "cpu") -> None:
    """List the recipes: their cost, what has run here, their verdicts."""
    from encore.commands.catalogue import table  # imported late

    typer.echo(table(scale))


@app.command("eval")
def evaluate(
    model: Model,
    tasks: Annotated[list[str], typer.Argument(help="Names of lm-eval, recipe/task, or your file.jsonl.")],
    items: Annotated[int | None, typer.Option(help="Number of items of each task: the first ones.")] = None,
    question: Annotated[str, typer.Option(help="Column of your file.")] = "question",
    answer: Annotated[str, typer.Option(help="Column of your file.")] = "answer",
    tokens: Annotated[int, typer.Option(help="Most tokens of an answer.")] = 512,
    out: Annotated[Path, typer.Option(help="Folder of the results and of all completions.")] = Path(
        "results/evals"
    ),
    gpus: Annotated[int, typer.Option(help="Number of GPUs; 0: on the CPU.")] = 0,
    backend: Annotated[Backend, typer.Option(help="What samples.")] = "hf",
) -> None:
    """Measure a model on tasks, and keep every completion."""
    from encore.commands.measure import Asked, measure  # imported late

    raise typer.Exit(measure(model, tasks, Asked(items, question, answer, tokens), out, gpus, backend))


@app.command()
def chat(
    model: Model,
    prompt: Annotated[str | None, typer.Option(help="Answer only this prompt, and end.")] = None,
    template: Annotated[str | None, typer.Option(help='Such as "<user>{question}<assistant>".')] = None,
    tokens: Annotated[int, typer.Option(help="Most tokens of an answer.")] = 256,
    temperature: Annotated[float, typer.Option(help="0: always the likeliest token.")] = 0.0,
) -> None:
    """Ask a model, one question a line, until the input ends (Ctrl-D)."""
    from encore.commands.chat import converse  # imported late, because it loads torch

    converse(model, [prompt] if prompt is not None else sys.stdin, template, tokens, temperature)


@app.command()
def report(
    recipe: Recipe,
    scale: Scale = "cpu",
    which: Annotated[str, typer.Option(help=f"{', '.join(REPORTS)}.")] = "report",
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Print the summary of a finished report, and where its page is."""
    page = Path("results", Path(recipe).stem, scale, f"{which}.html")
    summary = page.with_suffix("") / "summary.txt"
    if not page.exists() or not summary.exists():
        others = [name for name in REPORTS if page.with_name(f"{name}.html").exists()]
        hint = f"; there is --which {', '.join(others)}" if others else ""
        raise UserError(f"{page}: not made yet; encore run {recipe} --scale {scale}{hint}")
    typer.echo(f"{summary.read_text(encoding='utf-8').rstrip()}\n{page}")
    if show:
        webbrowser.open(page.resolve().as_uri())


@app.command()
def watch(
    recipes: Annotated[list[str] | None, typer.Argument(help="Only these recipes. [default: all]")] = None,
    results: Annotated[
        Path, typer.Option(help="The folder of results; checkpoints/ is looked for beside it.")
    ] = Path("results"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8700,
) -> None:
    """Serve, on this machine, a page that follows runs. It shows jobs, curves, rollouts and warnings."""
    from encore.commands.watch import serve  # imported late

    serve(results, recipes or [], port)


@app.command()
def judge(
    study: Annotated[Path, typer.Argument(help="The file of a study: where logs lie, and claims.")],
    out: Annotated[Path | None, typer.Option(help="The folder of the page. [default: beside it]")] = None,
) -> None:
    """Judge runs that were made elsewhere, by their logs. It writes verdicts, a page and CSV files."""
    from analysis.study.judge import command  # imported late

    for line in command(study, out):
        typer.echo(line)


@app.command()
def power(
    study: Annotated[
        Path, typer.Argument(help="The file of a study: where the logs of a pilot lie, and claims.")
    ],
    spread: Annotated[
        str | None,
        typer.Option(help="In place of a pilot: standard deviation over seeds, or RECORD/CLAIM that has it."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder of power.csv. [default: beside it]")] = None,
) -> None:
    """Plan a study: how many seeds decide its claims. A pilot, a record or --spread gives the spread."""
    from analysis.study.power import command  # imported late

    for line in command(study, spread, out):
        typer.echo(line)


class Form(StrEnum):
    """A form of results that other tools read."""

    EVERY_EVAL_EVER = "every-eval-ever"
    RO_CRATE = "ro-crate"


@app.command()
def export(
    source: Annotated[Path, typer.Argument(help="Results of an evaluation, or the folder of a record.")],
    to: Annotated[
        Form,
        typer.Option(help="every-eval-ever: of an evaluation; ro-crate: of a record, with its workflow."),
    ],
    model: Annotated[
        str | None, typer.Option(help="org/name, under which every-eval-ever knows the model.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("results/export"),
) -> None:
    """Write results in a form that other tools read. Forms: Every Eval Ever, Workflow Run RO-Crate."""
    if (to is Form.EVERY_EVAL_EVER) != (model is not None):
        raise UserError(f"--model: it goes with --to {Form.EVERY_EVAL_EVER}, and is needed there")
    if model is not None:
        from encore.commands import every_eval_ever  # late

        written = every_eval_ever.export(source, model, out)
    else:
        from encore.commands import ro_crate  # late

        written = [ro_crate.export(source, out)]
    for file in written:
        typer.echo(file)


@app.command()
def doctor() -> None:
    """Report what this machine can do. It looks at packages, GPUs, vLLM, Slurm, memory and disk."""
    from encore.commands.doctor import findings  # imported late

    for finding in findings():
        typer.echo(str(finding))


@app.command()
def push(
    model: Annotated[Path, typer.Argument(help="metrics.json of a stage whose product is a model.")],
    name: Annotated[str, typer.Argument(help="org/name on the Hub.")],
    really: Annotated[
        bool, typer.Option("--really", help="Upload; without it nothing leaves the machine.")
    ] = False,
    public: Annotated[
        bool, typer.Option("--public", help="Make it public; by default it is private.")
    ] = False,
) -> None:
    """Lay a model out for the Hub: weights, card, results. Only --really uploads them."""
    from encore.runtime.environment import quiet_environment  # imported late

    quiet_environment(names_hub=True)
    # imported now, because the Hub's client reads the environment when it is imported
    from encore.commands.push import (
        lay_out,
        upload,
    )

    folder = lay_out(model, name)
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        typer.echo(f"{file}  {file.stat().st_size:,} bytes")
    typer.echo(
        upload(folder, name, public) if really else f"dry: nothing was uploaded to {name}; --really does it"
    )
