# A rule for each artefact: figures with the numbers drawn in them, tables. What they take stands in
# their SPECs, in src/ntkcond/artefacts.

for name, spec in plan.specs.items():

    rule:
        name:
            name
        input:
            unpack(plan.inputs(name)),
        output:
            plan.files(name, report),
        log:
            f"results/logs/{name}.log",
        benchmark:
            f"results/benchmarks/{name}.tsv"
        localrule: True
        conda:
            "../envs/ntkcond.yaml"
        params:
            settings=plan.settings(name),
            code=plan.code(name),
            versions=plan.versions(name),
            content=plan.content(name),
            inputs=plan.artefact_inputs(name),
            about=plan.about(name),
            name=name,
            first=lambda wildcards, output: output[0],
        message:
            spec.title
        shell:
            "python -m ntkcond.steps.artefact --artefact {params.name} {params.settings:q}"
            " {params.inputs:q} --output {params.first} --log {log}"
