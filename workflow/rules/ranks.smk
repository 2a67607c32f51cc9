# Spectra by MPI ranks: of data sets with `engine: scalapack`, which have no kernel files.


rule scalapack_spectrum:
    input:
        plan.not_stale("scalapack_spectrum"),
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/spectra/{dataset}/{network}/depth{depth}.h5",
    log:
        "results/logs/spectrum/{dataset}/{network}/depth{depth}.log",
    benchmark:
        "results/benchmarks/spectrum/{dataset}/{network}/depth{depth}.tsv"
    wildcard_constraints:
        dataset=plan.datasets("scalapack_spectrum"),
    conda:
        "../envs/ntkcond.yaml"
    threads: plan.threads("scalapack_spectrum")
    resources:
        **plan.resources("scalapack_spectrum"),
        mpi="mpirun",  # profiles/slurm sets another
    params:
        settings=plan.settings("scalapack_spectrum"),
        code=plan.code("scalapack_spectrum"),
        versions=plan.versions("scalapack_spectrum"),
    message:
        "scalapack_spectrum {wildcards.dataset} {wildcards.network} depth{wildcards.depth}"
    shell:
        "python -m ntkcond.steps.scalapack_spectrum --dataset {input.dataset} {params.settings:q}"
        " --ranks {resources.tasks} --mpi {resources.mpi:q} --threads {threads}"
        " --output {output} --log {log}"
