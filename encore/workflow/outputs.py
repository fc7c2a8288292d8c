"""The files that the Snakefile's rules make, as patterns with Snakemake's wildcards."""

from pathlib import Path
from typing import NamedTuple

from encore.recipe.base import IDENTIFIER, NAME
from encore.recipe.document import REPORTS
from encore.recipe.graph import RUN
from encore.recipe.looks import LOOKS

# the folder of a stage, the beginning of the names of an evaluation's files, and the folder of a report
STAGE = f"{RUN}/{{stage}}"
EVAL = f"{RUN}/evals/{{checkpoint}}"
REPORT = "results/{recipe}/{scale}/{report}"
STAGE_FILES = {
    "metrics": f"{STAGE}/metrics.json",
    "curve": f"{STAGE}/curve.csv",
    "provenance": f"{STAGE}/provenance.json",
}
EVAL_FILES = {"scores": f"{EVAL}.json", "samples": f"{EVAL}.samples.jsonl"}
REPORT_FILES = {
    "table": f"{REPORT}/table.csv",
    "claims": f"{REPORT}/claims.csv",
    "summary": f"{REPORT}/summary.txt",
}
BENCHMARKS = {
    "stage": "results/benchmarks/grpo_speed.csv",
    "small": "results/benchmarks/small_speed.csv",
    "ladder": "results/benchmarks/grpo_ladder.csv",
    "grid": "results/benchmarks/grid_speed.csv",
    "plan": "results/benchmarks/plan_speed.csv",
}
WILDCARDS = dict.fromkeys(("recipe", "stage", "checkpoint"), IDENTIFIER)
WILDCARDS |= dict.fromkeys(("scale", "arm"), NAME)
WILDCARDS |= {"seed": r"\d+", "report": "|".join(REPORTS), "look": "|".join(map(str, LOOKS))}


class Report(NamedTuple):
    recipe: str
    scale: str
    report: str  # a name of REPORTS

    @property
    def folder(self) -> Path:
        return Path(REPORT.format(**self._asdict()))

    @property
    def page(self) -> Path:
        return self.folder.with_suffix(".html")

    @property
    def table(self) -> Path:
        """The table of all numbers, whose marker and record stand for all files in the folder."""
        return Path(REPORT_FILES["table"].format(**self._asdict()))
