"""What the Snakefile reads: config, the graph of jobs, reasons for a re-run, what jobs ask for."""
