"""The gallery's pictures of drawings: what an example calls `drawing` is saved as an SVG file."""

from __future__ import annotations

from pathlib import Path


def scrape(block, block_vars, gallery_conf) -> str:
    """Save the drawing that a block has made, once."""
    from sphinx_gallery.scrapers import figure_rst

    drawing = block_vars["example_globals"].pop("drawing", None)
    if drawing is None:
        return ""
    path = Path(next(block_vars["image_path_iterator"])).with_suffix(".svg")
    path.write_text(str(drawing), encoding="utf-8")
    return figure_rst([str(path)], gallery_conf["src_dir"], drawing.split('aria-label="')[1].split('"')[0])
