"""Imported before Snakemake: it asks Slurm for its jobs each second. The plugin waits ten seconds
longer each time that nothing has happened, as is polite on a cluster that others use."""

import asyncio

from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor


async def sleep(executor: RemoteExecutor) -> None:
    await asyncio.sleep(1)


RemoteExecutor.sleep = sleep
