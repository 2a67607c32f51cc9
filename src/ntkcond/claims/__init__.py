"""What the paper states, claim by claim, and whether it holds in numbers.

formulas: what is said of the closed forms; wide_networks: of the limit of infinite width;
experiments: of data, judged from the artefacts.
"""
