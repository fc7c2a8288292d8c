"""`encore`: reproduce, extend, measure and share; thin over snakemake and the modules."""

import sys

from encore.commands.command_line import app
from encore.errors import UserError


def main() -> None:
    """Run the command that is named. Exit status 2: a mistake of the user, told in a line."""
    try:
        app()
    except UserError as error:
        for line in error.lines:
            print(f"error: {line}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
