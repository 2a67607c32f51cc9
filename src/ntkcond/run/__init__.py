"""How a step runs: files, records, digests, memory, progress, errors."""
