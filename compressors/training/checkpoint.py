"""The state of a run on disk: safetensors, written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import nn

from ...middleware.errors import InvalidRequest
from ..mini import tensorfile

NAME = "checkpoint.safetensors"


def save(
    path: Path, step: int, identity: str, network: nn.Module, moments: torch.optim.AdamW
) -> None:
    """Write weights, the optimizer's moments and the step."""
    tensors = {f"weights.{name}": tensor for name, tensor in network.state_dict().items()}
    for name, parameter in network.named_parameters():
        for kind in ("exp_avg", "exp_avg_sq", "step"):
            if kind in moments.state.get(parameter, {}):
                tensors[f"{kind}.{name}"] = moments.state[parameter][kind]
    work = path.with_suffix(".tmp")
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    tensorfile.save(plain, work, {"step": str(step), "identity": identity})
    os.replace(work, path)


def load(path: Path, identity: str, network: nn.Module, moments: torch.optim.AdamW) -> int:
    """Restore what ``save`` wrote and return the step, 0 when there is nothing to restore.

    Raises InvalidRequest when the checkpoint is of a run with other settings.
    """
    if not path.is_file():
        return 0
    tensors, metadata = tensorfile.load(path)
    if metadata["identity"] != identity:
        raise InvalidRequest(
            f"{path} is of a run with other settings ({metadata['identity']});"
            " give these again, or another folder"
        )
    network.load_state_dict(
        {name[8:]: tensor for name, tensor in tensors.items() if name.startswith("weights.")}
    )
    for name, parameter in network.named_parameters():
        if f"exp_avg.{name}" in tensors:
            moments.state[parameter] = {
                kind: tensors[f"{kind}.{name}"].to("cpu" if kind == "step" else parameter.device)
                for kind in ("exp_avg", "exp_avg_sq", "step")
            }
    return int(metadata["step"])
