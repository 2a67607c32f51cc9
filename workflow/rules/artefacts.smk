# A rule for each artefact: figures with the numbers drawn in them, tables. Their SPECs say the rest.

for name, spec in plan.specs.items():

    rule:
        name:
            name
        input:
            unpack(plan.inputs(name)),
        output:
            plan.files(name, report),
        log:
            plan.log(name),
        benchmark:
            f"results/benchmarks/{name}.tsv"
        localrule: True
        conda:
            "../envs/ntkcond.yaml"
        params:
            command=plan.command(name),
            about=plan.about(name),
        message:
            spec.title
        shell:
            "{params.command}"
