# Spectra by MPI ranks: of data sets with `engine: scalapack`, which have no kernel files.


rule scalapack_spectrum:
    input:
        unpack(plan.inputs("scalapack_spectrum")),
    output:
        plan.output("scalapack_spectrum", temp),
    log:
        plan.log("scalapack_spectrum"),
    benchmark:
        f"results/benchmarks/spectrum/{plan.computing['spectrum']}.tsv"
    wildcard_constraints:
        **plan.datasets("scalapack_spectrum"),
    conda:
        "../envs/ntkcond.yaml"
    threads: plan.threads("scalapack_spectrum")
    resources:
        **plan.resources("scalapack_spectrum"),
    params:
        command=plan.command("scalapack_spectrum"),
    message:
        plan.message("scalapack_spectrum")
    shell:
        "{params.command} --threads {threads} --ranks {resources.tasks} --mpi {resources.mpi:q}"
