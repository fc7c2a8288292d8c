"""A recipe to begin with: a base model, two arms, one claim, which run in minutes on two cores."""

from dataclasses import asdict, dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from encore import own_code
from encore.commands import starts
from encore.commands.models import named
from encore.errors import UserError
from encore.recipe.checks.capacity import rows
from encore.recipe.load import load_sound
from encore.runtime import suite

WORLDS = ("chain", "countdown")  # worlds whose corpus the template writes


@dataclass(frozen=True)
class Wanted:
    """The options of a new recipe."""

    world: str = "chain"
    data: Path | None = None  # JSON lines instead of the world's problems
    question: str = "question"  # column of the data
    answer: str = "answer"
    reward: str | None = None  # my_module:function
    model: str | None = None  # None: a base model from scratch, pretrained on the world


def write(name: str, wanted: Wanted) -> Path:
    """Write the recipe NAME.yaml, or the named file, check it, and return the file.

    Raises UserError if the file exists already, or if an option is wrong.
    """
    file = Path(name) if name.endswith(".yaml") else Path(f"{name}.yaml")
    if file.exists():
        raise UserError(f"{file}: is there already; take another name, or edit it")
    if wanted.world not in WORLDS:
        raise UserError(f"--world {wanted.world}: expected {' or '.join(WORLDS)}")
    if wanted.reward:
        own_code.check_name(wanted.reward)
    model = named(wanted.model) if wanted.model else None
    if isinstance(model, Path):
        raise UserError(
            f"--model {wanted.model}: expected a folder or GGUF file of a model, or org/name@commit"
        )
    rows_of_data = rows(wanted.data) if wanted.data and wanted.data.is_file() else 0
    words = Environment(
        loader=PackageLoader("encore.commands", ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    start = starts.of_model(model) if model else None
    text = words.get_template("recipe.yaml.jinja").render(
        asdict(wanted)
        | {"name": file.stem, "start": start, "rows": rows_of_data, "recipes": suite.folder() / "recipes"}
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    if file.stem in (broken := load_sound(user_file=file)[1]):
        file.unlink()
        raise broken[file.stem]
    return file
