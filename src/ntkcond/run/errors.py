"""The one exception for a user's mistake."""


class UserError(ValueError):
    """Bad input, a missing file, too little memory or disk: the message names the file or setting
    and the fix. Steps and the Snakefile print it without a traceback."""
