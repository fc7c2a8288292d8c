"""Keep the effects of a run's primary claims, for the page on what the size of the model does to them.

    python -m analysis.sizes --recipe r1_zero --scale 1m --seeds 4 --out results/published/sizes

The run is one of a scale other than cpu, whose record has the smallest size. Seeds that were kept before, and
are not in the run, stay. `python -m analysis.publish --index` writes the page.
"""

import sys
from pathlib import Path

from analysis import command_line
from analysis.numbers.run import Run
from analysis.sizes import effects


def _keep(run: Run, out: Path, report: str) -> None:
    effects.keep(effects.of_run(run), out)


if __name__ == "__main__":
    sys.exit(command_line.main(__doc__, _keep, None))
