"""Why a result is, or is not, up to date: python -m ntkcond.why results/fig2.pdf

Takes --configfile, --config and --directory as Snakemake does, and runs nothing. Exit status: 0 for
a result that is up to date, 1 for one that is not."""

import argparse

from ntkcond.plan.question import asked, parser, run


def main(arguments: argparse.Namespace) -> bool:
    """Prints the answer; whether the file is up to date. Raises UserError for a mistake."""
    question = asked(arguments)
    fresh, text = question.freshness.of_file(question.job, question.path)
    print(text)
    if question.missing:
        print(question.missing)
    return fresh


if __name__ == "__main__":
    run(main, parser("why", __doc__))
