"""One module a rule: its command line. What it computes is in the package above."""

import signal
import sys

# python -m is loading a step: Ctrl-C meanwhile, torch half imported, ends it without a traceback.
# Afterwards ntkcond.command sees to Ctrl-C.
if sys.argv[0] == "-m" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
