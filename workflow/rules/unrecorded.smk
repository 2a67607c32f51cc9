# A result's own word decides, beside Snakemake's record of it. Snakemake believes its record, and without
# one (.snakemake lost, results of another place, a record of an older Snakemake) goes by dates alone:
# a file that something else made would be taken for fresh. Here every HDF5 file and picture is asked
# what made it, and is made again unless that is what would make it now.

from snakemake.persistence import RECORD_FORMAT_VERSION


@functools.cache
def told(path, changed):
    return made_by_of(path)


def is_fresh(outputs, expected):
    told_by = [path for path in outputs if path.endswith((".h5", ".png"))]
    if told_by:
        return all(told(path, os.stat(path).st_mtime_ns) == expected for path in told_by)
    # a table says nothing: of it there has to be a record that Snakemake heeds
    versions = map(workflow.persistence.record_format_version, outputs)
    return all(version is not None and version >= RECORD_FORMAT_VERSION for version in versions)


def judge(its_rule, wildcards):
    """An input function that adds no input: Snakemake calls it when it considers a job."""
    outputs = [output.apply_wildcards(wildcards) for output in its_rule.output]
    if all(map(os.path.exists, outputs)) and workflow.dag.forcefiles.isdisjoint(outputs):
        expected = its_rule.params.made_by
        expected = expected(wildcards) if callable(expected) else expected
        if not is_fresh(outputs, repr(expected)):
            workflow.dag.forcefiles.update(outputs)
    return []


if workflow.is_main_process:
    for each in workflow.rules:
        if "made_by" in each.params.keys():
            each.set_input(functools.partial(judge, each))
