"""`encore`: reproduce, extend, measure and share; thin over snakemake and the modules."""

import sys

from encore.commands.command_line import app
from encore.errors import UserError


def main() -> None:
    """Run the command that is named. The exit status is 2 for a mistake of the user, reported in a line."""
    try:
        app()
    except UserError as error:
        for line in error.lines:
            print(f"error: {line}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
