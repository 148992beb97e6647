from importlib.metadata import version as installed_version

project = "partwise"
author = "the partwise developers"
copyright = author
version = release = installed_version("partwise")

extensions = ["myst_parser", "sphinx.ext.mathjax"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_theme = "alabaster"
html_theme_options = {"description": "Linear structured prediction with certificates", "page_width": "1080px"}
