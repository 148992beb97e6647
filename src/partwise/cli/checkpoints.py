"""``--checkpoint DIR``: where the state of a training run is kept."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from partwise.cli.errors import UserError

NAME = "run.ckpt"


def checkpoint_of(flags: Mapping[str, Any]) -> Any:
    """What `fit` takes for the flags --checkpoint and --checkpoint-every; the folder is made if there is none."""
    folder = flags["checkpoint"]
    if folder is None:
        return None
    from partwise.solvers import Checkpoint

    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: is no folder for checkpoints ({(error.strerror or str(error)).lower()})") from None
    return Checkpoint(os.path.join(folder, NAME), flags["checkpoint_every"])
