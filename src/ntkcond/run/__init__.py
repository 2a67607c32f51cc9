"""How a step runs: command line, files, records, digests, memory, progress, errors."""
