"""One module a rule: its command line. What it computes is in the package above."""
