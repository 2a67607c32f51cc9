# Artefacts: for each a rule that makes its numbers, results/NAME.csv, and one that draws them. What
# they take stands in their SPECs, in src/ntkcond/artefacts.

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
            "python -m ntkcond.steps.table --artefact {params.name} {params.settings:q}"
            " {params.inputs:q} --output {params.first} --log {log}"


for rule_name, name in plan.drawings.items():

    rule:
        name:
            rule_name
        input:
            # the table
            unpack(plan.inputs(rule_name)),
        output:
            plan.files(rule_name, report),
        log:
            f"results/logs/{rule_name}.log",
        benchmark:
            f"results/benchmarks/{rule_name}.tsv"
        localrule: True
        conda:
            "../envs/ntkcond.yaml"
        params:
            settings=plan.settings(rule_name),
            code=plan.code(rule_name),
            versions=plan.versions(rule_name),
            about=plan.about(name),
            name=name,
            first=lambda wildcards, output: output[0],
        message:
            "draw {params.name}"
        shell:
            "python -m ntkcond.steps.drawing --artefact {params.name} {params.settings:q}"
            " --table {input.table} --output {params.first} --log {log}"
