"""Reports in a real browser: run with `-m browser`; skipped without a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from helpers.report_cases import HOSTILE, all_parts, fitted

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason="no Chromium here")]


def browse(page: Path, *options: str) -> tuple[str, list[str]]:
    """Open the page in a browser; return (standard output, console messages)."""
    profile = page.parent / "profile"
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"]
    command += ["--enable-logging=stderr", f"--user-data-dir={profile}", *options, page.as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=120)
    errors = done.stderr.decode(errors="replace")
    assert done.returncode == 0, errors[-2000:]
    return done.stdout.decode(), [line for line in errors.splitlines() if "CONSOLE" in line]


def pixels(path: Path) -> np.ndarray:
    """Return a picture as an array: rows x columns x colours."""
    image = pytest.importorskip("matplotlib.image")
    return np.round(255 * image.imread(path)[:, :, :3]).astype(int)


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    tagger, _, _ = fitted()
    tagger.result_.report(path, **all_parts())
    return path


def test_all_parts_are_rendered_without_errors(page):
    dom, console = browse(page, "--dump-dom")
    assert console == []
    sections = ["scores", "summary", "convergence", "confusion", "calibration", "examples", "weights", "settings"]
    assert re.findall(r'<section id="(\w+)"', dom) == sections
    assert dom.count("<svg") >= 2 * 4 + 3
    assert "Primal and dual by passes" in dom


def test_hostile_text_does_nothing(tmp_path):
    path = tmp_path / "report.html"
    tagger, _, _ = fitted()
    tagger.result_.report(path, **all_parts(HOSTILE))
    dom, console = browse(path, "--dump-dom")
    assert console == []
    assert "<script" not in dom
    assert "<img" not in dom


def test_errors_would_be_noticed(tmp_path):
    path = tmp_path / "wrong.html"
    path.write_text("<!DOCTYPE html><title>x</title><script>throw new Error('deliberate')</script>")
    _, console = browse(path, "--dump-dom")
    assert any("deliberate" in line for line in console)


@pytest.mark.parametrize("width", [1600, 1280, 400])
def test_the_picture(page, width):
    shot = page.parent / f"shot{width}.png"
    browse(page, f"--window-size={width},4000", f"--screenshot={shot}")
    picture = pixels(shot)
    assert picture.shape[:2] == (4000, width)
    flat = picture.reshape(-1, 3)
    # curves and bars have their colours on a light page
    for colour in ((37, 99, 176), (194, 65, 12), (21, 128, 61)):
        assert (flat == colour).all(axis=1).sum() > 50, colour
    assert flat.mean() > 200
    # the page fits the window: the right margin is visible
    assert (picture[:, -5:] == (245, 247, 250)).all()
