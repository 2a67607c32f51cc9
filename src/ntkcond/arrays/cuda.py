"""What only CUDA has. Nothing here runs without a CUDA GPU."""

from collections.abc import Callable, Sequence

import torch


def recorded(
    step: Callable[[torch.Tensor], None], rows: torch.Tensor, state: Sequence[torch.Tensor]
) -> Callable[[torch.Tensor], None]:
    """The step as a CUDA graph, for batches of the shape of `rows`: its many small kernels start
    as one. `state`, the tensors that the step changes, keeps its values."""
    static_rows = rows.clone()
    kept = [tensor.clone() for tensor in state]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # libraries set themselves up before the recording
        for _ in range(3):
            step(static_rows)
    torch.cuda.current_stream().wait_stream(stream)
    for tensor, before in zip(state, kept, strict=True):
        tensor.copy_(before)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(static_rows)

    def replay(rows: torch.Tensor) -> None:
        static_rows.copy_(rows)
        graph.replay()

    return replay


def total_memory(device: torch.device) -> int:
    """Bytes of the GPU."""
    return torch.cuda.get_device_properties(device).total_memory


def name_of(device: torch.device) -> str:
    """What the GPU calls itself."""
    return torch.cuda.get_device_name(device)
