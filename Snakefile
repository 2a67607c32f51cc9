# The workflow is in workflow/Snakefile; people and Snakemake look for it here, too. This one has the
# default config beside it, in whose folder relative paths start.

from copy import deepcopy
from pathlib import Path

PROJECT = Path(workflow.basedir)
GIVEN = deepcopy(config)  # so far by --configfile and --config alone


configfile: PROJECT / "config.yaml"


include: "workflow/Snakefile"


# An included file cannot set the default target.
rule default:
    default_target: True
    input:
        rules.all.input,
    localrule: True
