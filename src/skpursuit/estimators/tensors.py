"""PyTorch tensors in place of arrays, known by the module of their type: nothing here imports torch first."""

from importlib import import_module
from typing import Any

import numpy as np


def is_tensor(value: object) -> bool:
    """Whether this is a tensor of PyTorch."""
    return type(value).__module__.split(".")[0] == "torch"


class TensorRows:
    """A tensor on the CPU, rows of which are arrays; 16-bit floats become float32 as they are read."""

    def __init__(self, tensor: Any) -> None:
        if tensor.device.type != "cpu":
            raise ValueError(f"tensors must be on the CPU, got one on {tensor.device}; write tensor.cpu()")
        if tensor.is_sparse or tensor.is_complex():
            raise ValueError(f"tensors must be dense and real, got {tensor.layout}, {tensor.dtype}")
        self.tensor, self.shape = tensor.detach(), tuple(tensor.shape)
        self.is_half = tensor.is_floating_point() and tensor.element_size() == 2
        self.dtype = np.dtype(np.float32) if self.is_half else self.tensor[:0].numpy().dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        part = self.tensor[rows]
        return (part.float() if self.is_half else part).numpy()


def like_tensor(given: Any, indices: np.ndarray, values: np.ndarray, counts: np.ndarray) -> tuple[Any, ...]:
    """Codes as they are, or as tensors if the signals were given as one."""
    if not is_tensor(given):
        return indices, values, counts
    made = [import_module("torch").from_numpy(array) for array in (indices, values, counts)]
    return made[0], made[1].to(given.dtype) if given.is_floating_point() else made[1], made[2]
