"""Model files (`.pw`): what an estimator learnt, in a container that is checked before it is used.

    tagger.save("chunks.pw")
    tagger = partwise.load("chunks.pw")

docs/file_formats.md describes the files. A model takes part with `to_parts` and `from_parts` (`partwise.models.Model`),
which checks shapes, ranges and finiteness; its estimator with a line in `KINDS`. `container`, `parts`, `values` and
`errors` know nothing of models; `files` reads and writes estimators, `foreign` reads other tools' files.
"""

from typing import TYPE_CHECKING

from partwise.support.lazy import exports

if TYPE_CHECKING:
    from partwise.model_files import container as container
    from partwise.model_files import files as files
    from partwise.model_files import foreign as foreign
    from partwise.model_files.container import FORMAT_VERSION as FORMAT_VERSION
    from partwise.model_files.errors import ModelFormatError as ModelFormatError
    from partwise.model_files.files import KINDS as KINDS
    from partwise.model_files.files import class_of as class_of
    from partwise.model_files.files import kind_of as kind_of
    from partwise.model_files.files import load as load
    from partwise.model_files.files import register as register
    from partwise.model_files.files import save as save
    from partwise.model_files.parts import ModelParts as ModelParts

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "container": ("FORMAT_VERSION",),
        "errors": ("ModelFormatError",),
        "files": ("KINDS", "class_of", "kind_of", "load", "register", "save"),
        "parts": ("ModelParts",),
    },
    ("container", "errors", "files", "foreign", "parts", "values"),
)
