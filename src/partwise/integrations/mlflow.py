"""MLflow (extra "mlflow"): a flavour that stores a fitted estimator as its model file.

    import partwise.integrations.mlflow as flavour

    info = flavour.log_model(tagger, name="tagger")
    tagger = flavour.load_model(info.model_uri)           # the estimator
    model = mlflow.pyfunc.load_model(info.model_uri)      # whatever serves models: model.predict(X)

Model files are checked when they are read, and execute nothing; a pickle would.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

try:
    from mlflow import pyfunc
    from mlflow.models import Model
    from mlflow.models.model import MLMODEL_FILE_NAME, ModelInfo
    from mlflow.models.utils import _save_example
    from mlflow.tracking.artifact_utils import _download_artifact_from_uri
    from mlflow.utils import environment, model_utils
except ImportError as error:
    raise ImportError("partwise.integrations.mlflow needs MLflow: pip install 'partwise[mlflow]'") from error

from partwise import __version__, load
from partwise.model_files import ModelFormatError, kind_of
from partwise.tables.conllu import ConlluPipeline

__all__ = ["FLAVOR_NAME", "get_default_pip_requirements", "load_model", "log_model", "save_model"]

FLAVOR_NAME = "partwise"
#: A fitted estimator of partwise, or a `ConlluPipeline` of some.
Estimator = Any
_MODEL_FILE = "model.pw"


def get_default_pip_requirements() -> list[str]:
    """Return what an environment needs to load models."""
    return ["partwise" if "unknown" in __version__ else f"partwise=={__version__}"]


def save_model(
    model: Estimator,
    path: str | os.PathLike[str],
    *,
    conda_env: object = None,
    code_paths: list[str] | None = None,
    mlflow_model: Model | None = None,
    signature: object = None,
    input_example: object = None,
    pip_requirements: object = None,
    extra_pip_requirements: object = None,
    metadata: dict[str, object] | None = None,
    pyfunc_predict_fn: str = "predict",
) -> None:
    """Save a fitted estimator, or a `ConlluPipeline`, to a folder that does not exist or is empty, as an MLflow model.

    pyfunc_predict_fn: the method that `predict` of the loaded `pyfunc` model calls: "predict", "predict_proba",
    "predict_marginals". A pipeline's is `annotate`, and its answers are sentences in CoNLL-U's format. The other
    parameters are as for MLflow's own flavours. ValueError unless the model is fitted and has this method.
    """
    if isinstance(model, ConlluPipeline) and pyfunc_predict_fn == "predict":
        pyfunc_predict_fn = "annotate"
    _check(model, pyfunc_predict_fn)
    environment._validate_env_arguments(conda_env, pip_requirements, extra_pip_requirements)
    model_utils._validate_and_prepare_target_save_path(path)
    folder = Path(path)
    code = model_utils._validate_and_copy_code_paths(code_paths, str(folder))
    mlflow_model = Model() if mlflow_model is None else mlflow_model
    if signature is not None:
        mlflow_model.signature = signature
    if input_example is not None:
        _save_example(mlflow_model, input_example, str(folder))
    if metadata is not None:
        mlflow_model.metadata = metadata
    model.save(folder / _MODEL_FILE)
    pyfunc.add_to_model(
        mlflow_model,
        loader_module=__name__,
        data=_MODEL_FILE,
        conda_env=environment._CONDA_ENV_FILE_NAME,
        python_env=environment._PYTHON_ENV_FILE_NAME,
        code=code,
    )
    mlflow_model.add_flavor(
        FLAVOR_NAME,
        partwise_version=__version__,
        kind=kind_of(model),
        data=_MODEL_FILE,
        code=code,
        pyfunc_predict_fn=pyfunc_predict_fn,
    )
    mlflow_model.save(str(folder / MLMODEL_FILE_NAME))
    if conda_env is None:
        default = get_default_pip_requirements() if pip_requirements is None else None
        conda_env, requirements, constraints = environment._process_pip_requirements(
            default, pip_requirements, extra_pip_requirements
        )
    else:
        conda_env, requirements, constraints = environment._process_conda_env(conda_env)
    # JSON is YAML too.
    (folder / environment._CONDA_ENV_FILE_NAME).write_text(json.dumps(conda_env, indent=1), encoding="utf-8")
    (folder / environment._REQUIREMENTS_FILE_NAME).write_text("\n".join(requirements), encoding="utf-8")
    if constraints:
        (folder / environment._CONSTRAINTS_FILE_NAME).write_text("\n".join(constraints), encoding="utf-8")
    environment._PythonEnv.current().to_yaml(str(folder / environment._PYTHON_ENV_FILE_NAME))


def log_model(
    model: Estimator, name: str = "model", *, registered_model_name: str | None = None, **options: object
) -> ModelInfo:
    """Log a fitted estimator as an artifact of the current run; options are those of `save_model`."""
    return Model.log(
        artifact_path=None,
        name=name,
        flavor=sys.modules[__name__],
        registered_model_name=registered_model_name,
        model=model,
        **options,
    )


def load_model(model_uri: str, dst_path: str | None = None) -> Estimator:
    """Return the estimator that was saved or logged; nothing is executed, no file outside of the folder is read."""
    folder = _download_artifact_from_uri(artifact_uri=model_uri, output_path=dst_path)
    name = model_utils._get_flavor_configuration(folder, FLAVOR_NAME).get("data")
    if not isinstance(name, str) or name in ("", "..") or os.path.basename(name) != name:
        raise ModelFormatError(f"names {str(name)[:100]!r} as its model file, which is no file of the folder", folder)
    return load(os.path.join(folder, name))


@dataclass
class _PyFunc:
    """The object around which `mlflow.pyfunc.load_model` makes its model."""

    model: Estimator
    method: str

    def get_raw_model(self) -> Estimator:
        return self.model

    def predict(self, model_input: object, params: dict[str, object] | None = None) -> object:
        """Return answers to examples as the estimator takes them; frames and arrays are taken apart first."""
        found = getattr(self.model, self.method)(_examples(model_input, kind_of(self.model)))
        return ["".join(each.lines) for each in found] if isinstance(self.model, ConlluPipeline) else found


def _examples(given: Any, kind: str) -> object:
    """Return X of an estimator: rows of a frame for classifiers, the only column of a frame for structures."""
    columns = getattr(given, "columns", None)
    if columns is None:
        return given.tolist() if isinstance(given, np.ndarray) and given.dtype == object else given
    if kind == "maxent":
        return given.to_numpy()
    if len(columns) != 1:
        raise ValueError(
            f"a frame for this model needs one column with an example in each row, got {len(columns)} columns: "
            f"{', '.join(map(str, list(columns)[:5]))}"
        )
    return given.iloc[:, 0].tolist()


def _load_pyfunc(path: str) -> _PyFunc:
    """Return what MLflow predicts with; it calls this with the path of the model file."""
    method = model_utils._get_flavor_configuration(os.path.dirname(path), FLAVOR_NAME).get("pyfunc_predict_fn")
    model = load(path)
    _check(model, method)
    return _PyFunc(model, method)


def _check(model: Estimator, method: object) -> None:
    if not hasattr(model, "result_") and not isinstance(model, ConlluPipeline):
        raise ValueError(f"{type(model).__name__} is no fitted estimator of partwise")
    kind_of(model)  # ValueError if there are no files for it
    # Methods that predict are allowed, methods that write files or train are not.
    known = isinstance(method, str) and method.startswith(("predict", "decision_function", "annotate"))
    if not known or not callable(getattr(model, str(method), None)):
        raise ValueError(f"{type(model).__name__} has no method {method!r} that predicts")
