# One rule for each computing step: samples, kernels, their spectra, closest pairs, sweeps of small
# kernels, SGD, descent. They differ only in what src/ntkcond/plan says of them.

for name, job in plan.computing.items():

    rule:
        name:
            name
        input:
            unpack(plan.inputs(name)),
        output:
            plan.output(name, temp),
        log:
            plan.log(name),
        benchmark:
            f"results/benchmarks/{name}/{job}.tsv"
        wildcard_constraints:
            **plan.datasets(name),
        # before further kernels: with keep_kernels: false, few of them then lie on the disk at once
        priority: int(name == "spectrum")
        # a corpus may have to be downloaded: where Snakemake runs, which has a network
        localrule: name == "corpus"
        conda:
            "../envs/ntkcond.yaml"
        threads: plan.threads(name)
        resources:
            **plan.resources(name),
        params:
            command=plan.command(name),
        message:
            plan.message(name)
        shell:
            "{params.command} --threads {threads}"
