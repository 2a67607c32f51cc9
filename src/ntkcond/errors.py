"""The one exception that is the user's to mend."""


class UserError(Exception):
    """Bad input, a missing file, too little memory or disk: the message names the culprit and
    the way out. Steps and the Snakefile print it without a traceback."""
