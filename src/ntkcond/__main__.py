"""The command `ntkcond`, also as `python -m ntkcond`: κ of your network over initialisations."""

import sys

from ntkcond.library.command_line import main

if __name__ == "__main__":
    sys.exit(main())
