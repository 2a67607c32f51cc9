"""The one exception for a user's mistake, and how a command line says it."""

import argparse
import signal
import sys
from collections.abc import Callable


class UserError(ValueError):
    """Bad input, a missing file, too little memory or disk: the message names the file or setting
    and the fix. Steps and the Snakefile print it without a traceback.

    Examples
    --------
    >>> import torch, ntkcond
    >>> try:
    ...     ntkcond.kernel(torch.nn.Linear(3, 2), torch.eye(3), outptu=0)
    ... except ntkcond.UserError as error:
    ...     print(error)
    kernel has no option outptu=. It has output=
    """


def run(
    main: Callable[[argparse.Namespace], bool | None],
    options: argparse.ArgumentParser,
    otherwise: int = 1,
) -> None:
    """The process of a command line: one line for a UserError; the exit status of False."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # | head
    try:
        done = main(options.parse_intermixed_args())
    except UserError as error:
        sys.exit(f"ntkcond: {error}")
    sys.exit(otherwise if done is False else 0)
