import re
import sys
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path

import matplotlib

sys.path.insert(0, str(Path(__file__).parent))
import reference_pages
import stub_docstrings

matplotlib.use("agg")

project = "partwise"
author = "the partwise developers"
copyright = author
try:
    version = release = installed_version("partwise")
except PackageNotFoundError:  # built from a source tree that is not installed
    version = release = "0+unknown"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = [
    "_build",
    "gallery/*.ipynb",
    "gallery/*.py",
    "sg_execution_times.rst",
    "gallery/sg_execution_times.rst",
]
myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = "partwise"
html_theme_options = {
    "logo": {"text": "partwise"},
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"getting_started": []}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"word_alignment",  # its page is the how-to on structures, which quotes it
    "image_scrapers": ("matplotlib", "gallery_drawings.scrape"),
    "capture_repr": (),
    "download_all_examples": False,
    "plot_gallery": "True",
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 30,
    "within_subsection_order": "ExampleTitleSortKey",
}

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
toc_object_entries_show_parents = "hide"
# An attribute that is a property is listed with the class, and nowhere else.
nitpick_ignore_regex = [("py:obj", r"\w+_")]


def escape_bars(app, what, name, obj, options, lines):
    """|w| in a docstring is a norm, not a substitution; what scikit-learn's docstrings refer to is not here."""
    for number, line in enumerate(lines):
        line = re.sub(r":ref:`([^<`]+) <[^`]*>`", r"\1", line)
        parts = line.split("``")
        parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
        lines[number] = "``".join(parts)


def setup(app):
    # before numpydoc, which formats what is there by then
    app.connect("autodoc-process-docstring", stub_docstrings.fill_docstring, priority=100)
    app.connect("autodoc-process-signature", stub_docstrings.fill_signature)
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("builder-inited", reference_pages.write)
    app.connect("source-read", reference_pages.replace)
