"""The command `encore`, by which recipes are written, run, measured and shared."""

import sys

from encore.commands.command_line import app
from encore.errors import UserError


def main() -> None:
    """Run the named command. A mistake of the user is reported in one line, with exit status 2."""
    try:
        app()
    except UserError as error:
        for line in error.lines:
            print(f"error: {line}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
