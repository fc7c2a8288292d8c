"""The command `encore`, by which recipes are written, run, measured and shared."""

import sys

from encore.commands.command_line import app
from encore.errors import UserError


def main() -> None:
    """Run the named command. The exit status is 2 after a mistake of the user, which is told in one line."""
    try:
        app()
    except UserError as error:
        for line in error.lines:
            print(f"error: {line}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
