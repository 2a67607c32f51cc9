"""The command `ntkcond`, also as `python -m ntkcond`: κ of your network over initialisations."""

import signal
import sys

from ntkcond.library import command_line


def main() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # | head
    sys.exit(command_line.main())


if __name__ == "__main__":
    main()
