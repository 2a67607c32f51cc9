"""The command line of each computing step, and two for all artefacts: table, drawing."""

import _signal as signal  # signal itself is Python code, which takes a moment to load
import sys

# python -m is loading a step. Ctrl-C meanwhile, torch half imported, ends it without a traceback.
# ntkcond.settings.command sees to it afterwards.
if sys.argv[0] == "-m" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
