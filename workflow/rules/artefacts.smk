# Artefacts: for each a rule that makes its numbers, results/NAME.csv, and one that draws them. What
# they take stands in their SPECs, in src/ntkcond/artefacts.

for name, spec in project.specs.items():

    rule:
        name:
            name
        input:
            **project.inputs(name, rules),
        output:
            project.files(name, report),
        log:
            f"results/logs/{name}.log",
        benchmark:
            f"results/benchmarks/{name}.tsv"
        localrule: True
        conda:
            "../envs/ntkcond.yaml"
        params:
            *made_with(name),
            options=options(name),
            about=project.about(name),
            first=lambda wildcards, output: output[0],
        message:
            spec.title
        shell:
            "python -m ntkcond.steps.table {params.options:q} --output {params.first} --log {log}"


for rule_name, name in project.drawings.items():

    rule:
        name:
            rule_name
        input:
            table=f"results/{name}.csv",
        output:
            project.files(rule_name, report),
        log:
            f"results/logs/{rule_name}.log",
        benchmark:
            f"results/benchmarks/{rule_name}.tsv"
        localrule: True
        conda:
            "../envs/ntkcond.yaml"
        params:
            *made_with(rule_name),
            options=options(rule_name),
            about=project.about(name),
            first=lambda wildcards, output: output[0],
        message:
            f"draw {name}"
        shell:
            "python -m ntkcond.steps.drawing {params.options:q} --table {input.table}"
            " --output {params.first} --log {log}"
