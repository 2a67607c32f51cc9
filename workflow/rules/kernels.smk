# From samples to numbers of NTKs: kernels, their spectra, the closest pairs of gradients; and sweeps
# of small kernels that stay in memory.


rule kernel:
    input:
        unpack(plan.inputs("kernel")),
    output:
        (plan.patterns["kernel"] if config["keep_kernels"] else temp(plan.patterns["kernel"])),
    log:
        "results/logs/kernel/{dataset}/{network}/depth{depth}.log",
    benchmark:
        "results/benchmarks/kernel/{dataset}/{network}/depth{depth}.tsv"
    threads: plan.threads("kernel")
    resources:
        **plan.resources("kernel"),
    params:
        command=plan.command("kernel"),
    message:
        "NTK of {wildcards.dataset}, {wildcards.network}, depth {wildcards.depth}"
    shell:
        "{params.command} --dataset {input.dataset}"
        " --threads {threads} --output {output} --log {log}"


rule spectrum:
    input:
        unpack(plan.inputs("spectrum")),
    output:
        plan.patterns["spectrum"],
    log:
        "results/logs/spectrum/{dataset}/{network}/depth{depth}.log",
    benchmark:
        "results/benchmarks/spectrum/{dataset}/{network}/depth{depth}.tsv"
    # before further kernels: with keep_kernels: false, few of them then lie on the disk at once
    priority: 1
    threads: plan.threads("spectrum")
    resources:
        **plan.resources("spectrum"),
    params:
        command=plan.command("spectrum"),
    message:
        "eigenvalues of {wildcards.dataset}, {wildcards.network}, depth {wildcards.depth}"
    shell:
        "{params.command} --dataset {input.dataset} --kernel {input.kernel}"
        " --threads {threads} --output {output} --log {log}"


rule closest_pair:
    input:
        unpack(plan.inputs("closest_pair")),
    output:
        plan.patterns["closest_pair"],
    log:
        "results/logs/closest_pair/{dataset}/{network}/depth{depth}.log",
    benchmark:
        "results/benchmarks/closest_pair/{dataset}/{network}/depth{depth}.tsv"
    threads: plan.threads("closest_pair")
    resources:
        **plan.resources("closest_pair"),
    params:
        command=plan.command("closest_pair"),
    message:
        "closest pair of {wildcards.dataset}, {wildcards.network}, depth {wildcards.depth}"
    shell:
        "{params.command} --dataset {input.dataset}"
        " --threads {threads} --output {output} --log {log}"


rule sweep:
    input:
        unpack(plan.inputs("sweep")),
    output:
        plan.patterns["sweep"],
    log:
        "results/logs/sweep/{sweep}/{dataset}/{network}.log",
    benchmark:
        "results/benchmarks/sweep/{sweep}/{dataset}/{network}.tsv"
    threads: plan.threads("sweep")
    resources:
        **plan.resources("sweep"),
    params:
        command=plan.command("sweep"),
    message:
        "sweep over {wildcards.sweep} of {wildcards.dataset}, {wildcards.network}"
    shell:
        "{params.command} --dataset {input.dataset}"
        " --threads {threads} --output {output} --log {log}"
