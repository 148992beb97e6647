"""The README's example runs and prints what the README shows; linked files exist, and tables are complete."""

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_example_prints_what_the_readme_says():
    (code,) = blocks("python")
    (shown,) = blocks("text")
    namespace: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, README.name, "exec"), namespace)
    run = namespace["run"]
    assert run.status == "converged"
    assert 0 <= run.gap <= 1e-6 * run.primal
    # the gap may be any value below the tolerance, which determines all other numbers
    words, shown_words = printed.getvalue().split(), shown.split()
    gap, shown_gap = float(words.pop()), float(shown_words.pop())
    assert words == shown_words
    assert max(gap, shown_gap) <= 1e-6 * run.primal


def test_example_is_about_ten_lines():
    (code,) = blocks("python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 10


def test_linked_files_exist():
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert links
    missing = [link for link in links if "://" not in link and not (README.parent / link).exists()]
    assert not missing


def test_tables_list_all_losses_and_solvers():
    from partwise import available_solvers
    from partwise.problem.losses import LOSSES

    def rows(header: str) -> list[str]:
        table = (
            (README.parent / "docs" / "solvers.md")
            .read_text(encoding="utf-8")
            .split(f"| {header} |", 1)[1]
            .split("\n\n", 1)[0]
        )
        return re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)

    assert rows("loss") == list(LOSSES)
    assert sorted(rows("solver")) == sorted(available_solvers())


def test_the_front_page_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150
