"""skops (extra "skops"): estimators in its files as checked model files.

    from skops import io
    from partwise.integrations.skops import TRUSTED, Packed

    io.dump(Packed(tagger), "tagger.skops")
    tagger = io.load("tagger.skops", trusted=TRUSTED).estimator

A fitted estimator alone is best kept by its own `save`: such a file needs no list of trusted types. `Packed` is for
what skops stores together: as a step of a scikit-learn pipeline it predicts as the estimator does.
"""

from __future__ import annotations

from typing import Any

from partwise.integrations import model_from_bytes, model_to_bytes
from partwise.model_files import ModelFormatError

#: The types that skops must be told to trust in files with packed estimators.
TRUSTED = ["partwise.integrations.skops.Packed"]


class Packed:
    """A fitted estimator that is stored as its model file; it has the estimator's attributes and methods."""

    def __init__(self, estimator: Any) -> None:
        if not hasattr(estimator, "result_"):
            raise ValueError(f"{type(estimator).__name__} is no fitted estimator of partwise")
        self.estimator = estimator

    def __getattr__(self, name: str) -> Any:
        if name == "estimator" or (name.startswith("__") and not name.startswith("__sklearn")):
            raise AttributeError(name)
        return getattr(self.estimator, name)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"Packed({self.estimator!r})"

    def __getstate__(self) -> dict[str, object]:
        return {"model": model_to_bytes(self.estimator)}

    def __setstate__(self, state: object) -> None:
        data = state.get("model") if isinstance(state, dict) else None
        if not isinstance(data, bytes | bytearray):  # bytes(n) of a number n would be n zeros
            raise ModelFormatError("a packed estimator has no model file in it")
        self.estimator = model_from_bytes(bytes(data))
