"""The README's example runs and prints what the README says."""

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_example_prints_what_the_readme_says():
    (code,) = blocks("python")
    (expected,) = blocks("text")
    namespace: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, README.name, "exec"), namespace)
    assert printed.getvalue() == expected
    run = namespace["run"]
    assert run.status == "converged"
    assert 0 <= run.gap <= 1e-6 * run.primal
    assert run.primal - run.dual <= run.gap + 1e-12


def test_example_is_about_ten_lines():
    (code,) = blocks("python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 10


def test_linked_files_exist():
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert links
    missing = [link for link in links if "://" not in link and not (README.parent / link).exists()]
    assert not missing
