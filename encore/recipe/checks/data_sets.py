"""Tasks whose rows come from a data set: of the Hub, or of a file of one's own."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from encore import own_code
from encore.errors import UserError
from encore.recipe.data_sets import evaluated, is_data_set
from encore.recipe.schema import check, definition

OF_HUB = ("hub", "revision", "subset", "split")
OF_VERIFIER = {"answer": ("math", "tests"), "numbers": ("countdown",), "target": ("countdown",)}
FORMATS = (".jsonl", ".parquet")


def check_data_set(task: Mapping, kind: str, path: Sequence[str], where: str = "") -> None:
    """Raise UserError unless `task`, at `path` of a recipe, fits the definition `kind` of schema.yaml."""
    check(task, definition(kind), path, where)

    def refuse(key: str, why: str) -> None:
        raise UserError(f"{'.'.join(path)}.{key}: {why}{where}")

    if "file" in task:
        file = Path(task["file"])
        for key in OF_HUB:
            if key in task:
                refuse(key, f"of a Hub dataset, and {file} is a file; remove it")
        if file.suffix not in FORMATS:
            refuse("file", f"{file}: expected a file that ends in .jsonl or .parquet")
        if not file.is_file():
            refuse("file", f"there is no file {file} in {Path.cwd()}")
    if own := own_code.is_own(task.get("verifier")):
        try:
            own_code.check(task["verifier"])
        except UserError as error:
            refuse("verifier", str(error))
    for key, verifiers in OF_VERIFIER.items():
        if (
            key in task
            and task.get("verifier", verifiers[0]) not in verifiers
            and not (own and key == "answer")
        ):
            refuse(key, f"of verifier {' or '.join(verifiers)}, not {task['verifier']}; remove it")


def check_decontaminate(stage: Mapping, evals: Mapping, path: str, where: str) -> None:
    """Raise UserError unless there are prompts of a data set, and data sets to keep out of them."""
    if not stage.get("decontaminate"):
        return
    parts = [stage, *stage.get("domains", {}).values(), *stage.get("also", {}).values()]
    if not any(is_data_set(part.get("task", {})) for part in parts):
        why = "no task here is a data set; a world's test questions are never trained on"
        raise UserError(f"{path}.decontaminate: {why}{where}")
    if not evaluated(evals):
        raise UserError(
            f"{path}.decontaminate: evals.tasks has no data set to keep out of the prompts{where}"
        )
