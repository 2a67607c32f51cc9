# Kernels, their spectra, the closest pair of gradients, sweeps of small kernels, and data sets on the map.


rule kernel:
    input:
        plan.not_stale("kernel"),
        dataset="results/datasets/{dataset}.h5",
    output:
        keep("results/kernels/{dataset}/{network}/depth{depth}.h5"),
    log:
        "results/logs/kernel/{dataset}/{network}/depth{depth}.log",
    benchmark:
        "results/benchmarks/kernel/{dataset}/{network}/depth{depth}.tsv"
    # first: they say at once if memory or disk do not suffice, and spectra wait for them
    priority: 1
    conda:
        "../envs/ntkcond.yaml"
    threads: plan.threads("kernel")
    resources:
        **plan.resources("kernel"),
    params:
        settings=plan.settings("kernel"),
        code=plan.code("kernel"),
        versions=plan.versions("kernel"),
        device=plan.device,
    message:
        "kernel {wildcards.dataset} {wildcards.network} depth{wildcards.depth}"
    shell:
        "python -m ntkcond.steps.kernel --dataset {input.dataset} {params.settings:q}"
        " --device {params.device} --threads {threads} --output {output} --log {log}"


rule spectrum:
    input:
        plan.not_stale("spectrum"),
        dataset="results/datasets/{dataset}.h5",
        kernel="results/kernels/{dataset}/{network}/depth{depth}.h5",
    output:
        "results/spectra/{dataset}/{network}/depth{depth}.h5",
    log:
        "results/logs/spectrum/{dataset}/{network}/depth{depth}.log",
    benchmark:
        "results/benchmarks/spectrum/{dataset}/{network}/depth{depth}.tsv"
    wildcard_constraints:
        dataset=plan.datasets("spectrum"),
    # before further kernels: with keep_kernels: false, few of them then lie on the disk at once
    priority: 2
    conda:
        "../envs/ntkcond.yaml"
    threads: plan.threads("spectrum")
    resources:
        **plan.resources("spectrum"),
    params:
        settings=plan.settings("spectrum"),
        code=plan.code("spectrum"),
        versions=plan.versions("spectrum"),
        device=plan.device,
    message:
        "spectrum {wildcards.dataset} {wildcards.network} depth{wildcards.depth}"
    shell:
        "python -m ntkcond.steps.spectrum --dataset {input.dataset} --kernel {input.kernel} {params.settings:q}"
        " --device {params.device} --threads {threads} --output {output} --log {log}"


rule closest_pair:
    input:
        plan.not_stale("closest_pair"),
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/angles/{dataset}/{network}/depth{depth}.h5",
    log:
        "results/logs/closest_pair/{dataset}/{network}/depth{depth}.log",
    benchmark:
        "results/benchmarks/closest_pair/{dataset}/{network}/depth{depth}.tsv"
    conda:
        "../envs/ntkcond.yaml"
    threads: plan.threads("closest_pair")
    resources:
        **plan.resources("closest_pair"),
    params:
        settings=plan.settings("closest_pair"),
        code=plan.code("closest_pair"),
        versions=plan.versions("closest_pair"),
        device=plan.device,
    message:
        "closest_pair {wildcards.dataset} {wildcards.network} depth{wildcards.depth}"
    shell:
        "python -m ntkcond.steps.closest_pair --dataset {input.dataset} {params.settings:q}"
        " --device {params.device} --threads {threads} --output {output} --log {log}"


rule sweep:
    input:
        plan.not_stale("sweep"),
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/sweeps/{sweep}/{dataset}/{network}.h5",
    log:
        "results/logs/sweep/{sweep}/{dataset}/{network}.log",
    benchmark:
        "results/benchmarks/sweep/{sweep}/{dataset}/{network}.tsv"
    conda:
        "../envs/ntkcond.yaml"
    threads: plan.threads("sweep")
    resources:
        **plan.resources("sweep"),
    params:
        settings=plan.settings("sweep"),
        code=plan.code("sweep"),
        versions=plan.versions("sweep"),
        device=plan.device,
    message:
        "sweep {wildcards.sweep} {wildcards.dataset} {wildcards.network}"
    shell:
        "python -m ntkcond.steps.sweep --dataset {input.dataset} {params.settings:q}"
        " --device {params.device} --threads {threads} --output {output} --log {log}"


rule variant:
    input:
        plan.not_stale("variant"),
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/variants/{dataset}.h5",
    log:
        "results/logs/variant/{dataset}.log",
    benchmark:
        "results/benchmarks/variant/{dataset}.tsv"
    conda:
        "../envs/ntkcond.yaml"
    threads: plan.threads("variant")
    resources:
        **plan.resources("variant"),
    params:
        settings=plan.settings("variant"),
        code=plan.code("variant"),
        versions=plan.versions("variant"),
    message:
        "variant {wildcards.dataset}"
    shell:
        "python -m ntkcond.steps.variant --dataset {input.dataset} {params.settings:q}"
        " --threads {threads} --output {output} --log {log}"


rule architecture:
    input:
        # a user's own network
        unpack(plan.inputs("architecture")),
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/architectures/{dataset}/{architecture}.h5",
    log:
        "results/logs/architecture/{dataset}/{architecture}.log",
    benchmark:
        "results/benchmarks/architecture/{dataset}/{architecture}.tsv"
    conda:
        "../envs/ntkcond.yaml"
    threads: plan.threads("architecture")
    resources:
        **plan.resources("architecture"),
    params:
        settings=plan.settings("architecture"),
        code=plan.code("architecture"),
        versions=plan.versions("architecture"),
        content=plan.content("architecture"),
        inputs=plan.input_options,
        device=plan.device,
    message:
        "architecture {wildcards.dataset} {wildcards.architecture}"
    shell:
        "python -m ntkcond.steps.architecture --dataset {input.dataset} {params.settings:q}"
        " --device {params.device} {params.inputs:q} --threads {threads}"
        " --output {output} --log {log}"
