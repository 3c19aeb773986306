"""`python -m liveboard` is the command `liveboard`."""

import sys

from liveboard.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
