"""A device that the CPU plays, to find arrays of two devices mixed up without a GPU.

Tensors that were put on a device by name (`device=`, `.to(device)`), and all that comes of them,
are there; all others are on the host. An operation that takes both fails, as it would with a GPU;
so does `.numpy()` of what is there. Numbers, and tensors without dimensions, may be anywhere.
"""

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten

HOME = (torch.Tensor.cpu,)
HOST_ONLY = (torch.Tensor.numpy, torch.Tensor.__array__)


class OneDevice(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, torch.Tensor)]
        on_device = {id(t): getattr(t, "on_device", False) for t in tensors}
        if func is torch.Tensor.to and any(isinstance(a, torch.device) for a in args):
            return _mark(func(*args, **kwargs).clone())
        if func in HOME:
            return func(*args, **kwargs).clone()
        if any(on_device.values()):
            if func in HOST_ONLY:
                raise TypeError("a tensor on the device cannot become an array of the host")
            for tensor in tensors:
                if not on_device[id(tensor)] and torch._C.TensorBase.dim(tensor):
                    name = getattr(func, "__name__", func)
                    raise RuntimeError(f"{name}: tensors on the device and on the host")
            return _mark(func(*args, **kwargs))
        result = func(*args, **kwargs)
        return _mark(result) if not tensors and kwargs.get("device") is not None else result


def _mark(result):
    for tensor in tree_flatten(result)[0]:
        if isinstance(tensor, torch.Tensor):
            tensor.on_device = True
    return result
