"""The commands `encore reward …`, on rewards."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Say what a reward pays for: encore reward stress.", no_args_is_help=True)


@app.command()
def stress(
    reward: Annotated[
        str | None, typer.Argument(help="my_module:function, or a name. [default: the recipe's, weighted]")
    ] = None,
    data: Annotated[str | None, typer.Option(help="Your JSON lines: questions and right answers.")] = None,
    question: Annotated[str, typer.Option(help="Column of --data.")] = "question",
    answer: Annotated[str, typer.Option(help="Column of --data.")] = "answer",
    recipe: Annotated[str | None, typer.Option(help="In place of --data: the tasks of a recipe.")] = None,
    scale: Annotated[str, typer.Option(help="Scale of --recipe.")] = "cpu",
    samples: Annotated[str | None, typer.Option(help="samples.jsonl of an evaluation.")] = None,
    out: Annotated[Path | None, typer.Option(help="The table as a CSV file.")] = None,
) -> None:
    """Show which responses a reward pays for, the wrong ones first."""
    from encore.commands import reward_stress  # imported late, as in command_line.py

    asked = reward_stress.Asked(reward, data, question, answer, recipe, scale, samples)
    raise typer.Exit(reward_stress.stress(asked, out))
