from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from importlib.util import find_spec

project = "partwise"
author = "the partwise developers"
copyright = author
try:
    version = release = installed_version("partwise")
except PackageNotFoundError:  # built from a source tree that is not installed
    version = release = "0+unknown"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_theme = "alabaster"
html_theme_options = {"description": "Linear structured prediction with certificates", "page_width": "1080px"}

# Docstrings say types in words; signatures stay as they are in the source.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
# What partwise works inside of need not be there to be documented.
autodoc_mock_imports = [name for name in ("mlflow", "skops", "spacy", "srsly") if find_spec(name) is None]
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
# `name` in a docstring is code, not a reference.
default_role = "code"
autosummary_generate = False
# An attribute that is a property is listed with the class, and nowhere else.
nitpick_ignore_regex = [("py:obj", r"\w+_")]


def escape_bars(app, what, name, obj, options, lines):
    """|w| in a docstring is a norm, not a substitution."""
    for number, line in enumerate(lines):
        parts = line.split("``")
        parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
        lines[number] = "``".join(parts)


def setup(app):
    app.connect("autodoc-process-docstring", escape_bars)
