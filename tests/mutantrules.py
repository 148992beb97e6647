"""The faults that `mutants.py` tries: rules on the tokens of a line, and a choice of their mutants.

The formatters put spaces around operators, which distinguishes them from template brackets, pointers and signs.
"""

from __future__ import annotations

import ast
import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

# Name, pattern, replacement.
RULES: list[tuple[str, str, str | Callable[[re.Match[str]], str]]] = [
    ("sign", r" \+ ", " - "),
    ("sign", r" - ", " + "),
    ("sign", r" \+= ", " -= "),
    ("sign", r" -= ", " += "),
    ("sign", r"(?<=[(=,?:] )-(?=[\w(])|(?<=return )-(?=[\w(])", ""),
    ("factor", r" \* (?=[\w(.]+)", " / "),
    ("factor", r" / (?=[\w(.]+)", " * "),
    ("drop term", r" [+-] \w+(?:\.\w+)*(?:\[\w+\])*(?=[;,)\]])", ""),
    ("drop factor", r" \* \w+(?:\.\w+)*(?:\[\w+\])*(?=[;,)\]])", ""),
    (
        "swap indices",
        r"(?<=[\w>])(?<!min)(?<!max)(?<!dot)(?<!dot_of)\((?!i,)(\w{1,2}), (\w{1,2})(?=[,)])",
        lambda m: f"({m[2]}, {m[1]}",
    ),
    ("swap indices", r"\[(\w+) \* (\w+) \+ (\w+)\]", lambda m: f"[{m[3]} * {m[2]} + {m[1]}]"),
    ("compare", r" < ", " <= "),
    ("compare", r" <= ", " < "),
    ("compare", r" > ", " >= "),
    ("compare", r" >= ", " > "),
    ("compare", r" == ", " != "),
    ("compare", r" != ", " == "),
    ("worst", r" < (?!len\(|n\b|width|length|[A-Z]\b|W\b)", " > "),
    ("worst", r" > ", " < "),
    ("worst", r"\bstd::max\b", "std::min"),
    ("worst", r"\bstd::min\b", "std::max"),
    ("worst", r"\bmax\(", "min("),
    ("worst", r"\bmin\(", "max("),
    ("worst", r"\bmaximum\(", "minimum("),
    ("off by one", r" [+-] 1(?![\w.])", ""),
    ("off by one", r"(?<= = )0(?=;)", "1"),
    ("off by one", r"(?<=\[)(\w+)(?=\])", lambda m: f"{m[1]} + 1"),
    ("constant", r"(?<![\w.])0\.5(?!\w)", "1.0"),
    ("constant", r"(?<![\w.])1\.0(?!\w)", "2.0"),
    ("constant", r"(?<![\w.])2\.0(?!\w)", "1.0"),
    ("constant", r"(?<= = )0\.0(?=;)", "1.0"),
    ("logic", r" && ", " || "),
    ("logic", r" \|\| ", " && "),
    ("logic", r" and ", " or "),
    ("logic", r" or ", " and "),
    ("logic", r"(?<=\()!(?=[\w(])", ""),
    ("logic", r"\bif not ", "if "),
    ("logic", r"\btrue\b", "false"),
    ("logic", r"\bfalse\b", "true"),
    ("skip", r"^\s*(?:[\w.>\[\]()*+-]+ [-+*/]?= .*|(?:\+\+|--)[\w.]+|[\w.:<>-]+\(.*\));$", ";"),
    ("skip", r"^(\s+)(?:[\w.\[\]]+ [-+*/|]?= .*[^\[({,]|self\.\w+\(.*\))$", lambda m: f"{m[1]}pass"),
]
PYTHON_ONLY = {" and ", " or ", r"\bif not ", r"\bmax\(", r"\bmin\(", r"\bmaximum\("}
#: Lines without computation, or that do not compile in any other form.
IDLE = re.compile(
    r"^\s*(?:#|//|throw\b|raise\b|template\b|using\b|static_assert|namespace\b|import\b|from\b|assert\b|@|class\b|struct\b"
    r"|explicit\b|friend\b|public:|private:|\}|\"|def |f\"|\)|\w+: .*=|return;|if constexpr|warnings\.)"
)


@dataclass(frozen=True)
class Mutant:
    """One fault: line `line` (from 1) of `file` reads `new` instead of `old`."""

    file: str
    line: int
    old: str
    new: str
    rule: str

    @property
    def key(self) -> str:
        """Identify the fault independently of the line number."""
        text = "\0".join((self.file, self.old.strip(), self.new.strip()))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} [{self.rule}] {self.key}\n    - {self.old.strip()}\n    + {self.new.strip()}"


def blank(text: str, path: str) -> list[str]:
    """Return the lines with comments replaced by \\0 and strings by \\1, at the same length."""

    def spaces(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", "\x01" if match[0][0] == '"' else "\x00", match[0])

    if path.endswith(".py"):
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
                for k in range(node.lineno - 1, node.end_lineno or node.lineno):
                    first = node.col_offset if k == node.lineno - 1 else 0
                    last = node.end_col_offset if k == (node.end_lineno or 0) - 1 else len(lines[k])
                    lines[k] = lines[k][:first] + "\x01" * ((last or 0) - first) + lines[k][last:]
        return [re.sub(r"#.*$", spaces, line) for line in lines]
    return re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"", spaces, text, flags=re.S).split("\n")


def candidates(root: Path, file: str) -> Iterator[Mutant]:
    """Return every mutant that the rules make of a file."""
    text = (root / file).read_text()
    seen = set()
    for number, (line, code) in enumerate(zip(text.split("\n"), blank(text, file), strict=False), start=1):
        if not code.strip("\x00 ") or "\x01" in code or IDLE.match(code):
            continue
        header = re.match(r"\s*for \(.*?; (?:.*?\))?", code)  # no mutants of loop bounds, which would run beyond arrays
        for rule, pattern, replacement in RULES:
            if file.endswith(".py") != (pattern in PYTHON_ONLY) and pattern in PYTHON_ONLY | {r" && ", r" \|\| "}:
                continue
            if rule == "skip" and file.endswith(".py") == pattern.endswith(";$"):
                continue
            for match in re.finditer(pattern, code):
                if header and match.start() < header.end() and rule in ("compare", "worst"):
                    continue
                put = replacement if isinstance(replacement, str) else replacement(match)
                new = line[: match.start()] + put + line[match.end() :]
                mutant = Mutant(file, number, line, new, rule)
                if new != line and mutant.key not in seen:
                    seen.add(mutant.key)
                    yield mutant


def choose(root: Path, files: list[str], count: int, seed: int) -> list[Mutant]:
    """Choose `count` mutants: files get shares by the square root of their candidates, and rules take turns."""
    shuffled: dict[str, list[Mutant]] = {}
    for file in files:
        rng = random.Random(f"{seed} {file}")
        by_rule = defaultdict(list)
        for mutant in candidates(root, file):
            by_rule[mutant.rule].append(mutant)
        for some in by_rule.values():
            rng.shuffle(some)
        rules = sorted(by_rule)
        rng.shuffle(rules)
        turns = [
            by_rule[r][k]
            for k in range(max(map(len, by_rule.values()), default=0))
            for r in rules
            if k < len(by_rule[r])
        ]
        lines: set[int] = set()  # one mutant per line, as the same tests cover neighbouring lines
        shuffled[file] = [m for m in turns if m.line not in lines and not lines.add(m.line)]  # type: ignore[func-returns-value]
    taken: dict[str, int] = dict.fromkeys(files, 0)
    while sum(taken.values()) < min(count, sum(map(len, shuffled.values()))):
        open_files = [f for f in files if taken[f] < len(shuffled[f])]
        taken[max(open_files, key=lambda f: len(shuffled[f]) ** 0.5 / (taken[f] + 1))] += 1
    return [m for f in files for m in shuffled[f][: taken[f]]]
