"""What the paper states, claim by claim, and whether it holds in numbers.

formulas: what is said of the closed forms; wide_networks: of the limit of infinite width;
experiments: of data, judged from the artefacts. Each function there that takes the evidence gives
the findings of the claim that names it in the module's CLAIMS, which says what it tests.
"""
