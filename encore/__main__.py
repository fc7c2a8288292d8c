"""The command `encore`, with which recipes are written, run, measured and shared."""

import sys

from encore.commands.command_line import app
from encore.errors import UserError


def main() -> None:
    """Run the command of the command line. Report each mistake of the user in one line, and exit with 2."""
    try:
        app()
    except UserError as error:
        for line in error.lines:
            print(f"error: {line}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
