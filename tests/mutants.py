"""Mutation testing: small faults put into the sources, one at a time; the tests must notice each.

    python tests/mutants.py [--count N] [--seed S] [--only PATH] [--resume FILE] [--retry] [--concerned] [--jobs N]

Most mutants are made by rules on the tokens of a line (`mutantrules.py`), the same ones for the same seed and sources,
spread evenly over files and rules; `mutants.toml` adds chosen ones, says which tests concern which source, and lists
mutants known to be equivalent, with the reason. Each is compiled in a copy of the checkout, which itself is never
touched. The tests that concern the file run first, then the rest; the first failure, a crash or a hang kills a mutant.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import SimpleQueue

from mutantrules import Mutant, choose

ROOT = Path(__file__).resolve().parent.parent
TABLE = Path(__file__).with_suffix(".toml")
STATES = ("killed", "survived", "did not compile", "equivalent")

LIMIT_FACTOR, LEAST_LIMIT = 4.0, 60.0  # CPU seconds; the factor applies to the time of the tests without a fault


@dataclass
class Table:
    """The content of mutants.toml."""

    targets: list[str]
    left_out: list[str]
    rest: list[str]
    concern: dict[str, list[str]]
    curated: list[dict[str, str]]
    equivalent: list[dict[str, str]] = field(default_factory=list)

    @staticmethod
    def read() -> Table:
        return Table(**tomllib.loads(TABLE.read_text()))

    def tests(self, file: str) -> list[str]:
        """Return the tests for a source file: those listed for the longest prefix of its path."""
        prefix = max((p for p in self.concern if file.startswith(p)), key=len, default=None)
        return self.concern[prefix] if prefix is not None else []

    def reasons(self) -> dict[tuple[str, str, str], str]:
        return {(e["file"], e["find"], e["replace"]): e["reason"] for e in self.equivalent}


def sources(root: Path, targets: list[str]) -> list[str]:
    found = []
    for target in targets:
        path = root / target
        files = sorted(p for p in path.rglob("*") if p.suffix in (".cpp", ".h", ".py")) if path.is_dir() else [path]
        found += [p.relative_to(root).as_posix() for p in files]
    return found


def curated(root: Path, entries: list[dict[str, str]]) -> list[Mutant]:
    """Return the mutants listed in the table; each search text must occur exactly once."""
    made = []
    for entry in entries:
        lines = (root / entry["file"]).read_text().split("\n")
        at = [k for k, line in enumerate(lines) if entry["find"] in line]
        if len(at) != 1:
            sys.exit(f"{TABLE.name}: {entry['file']} has {len(at)} lines with {entry['find']!r}, one is needed")
        line = lines[at[0]]
        made.append(Mutant(entry["file"], at[0] + 1, line, line.replace(entry["find"], entry["replace"]), "chosen"))
    return made


class Workshop:
    """A copy of the checkout in which one mutant at a time is built and tested."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.build = folder, folder / "build" / "mutants"
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.splitlines()
        for name in listed:
            here, there = ROOT / name, folder / name
            if here.is_file() and not (there.is_file() and there.read_bytes() == here.read_bytes()):
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(here, there)
        for kept in ("core", "src", "tests"):  # remove files that an earlier copy had
            for path in (folder / kept).rglob("*"):
                if path.suffix in (".cpp", ".h", ".py") and path.relative_to(folder).as_posix() not in listed:
                    path.unlink()
        # find cmake, ninja and nanobind beside python or on the PATH
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
        self.environment = {
            **os.environ,
            "PATH": path,
            "PYTHONPATH": str(folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        options = ["-DPARTWISE_WERROR=OFF", "-DPARTWISE_OPTIMIZATION=-O1", f"-DPython_EXECUTABLE={sys.executable}"]
        self.run(["cmake", "-S", ".", "-B", str(self.build), "-G", "Ninja", *options], check=True)
        if not self.compile():
            sys.exit("the sources do not compile as they are")

    def run(self, command: list[str], check: bool = False) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, check=check, capture_output=True, text=True
        )

    def compile(self) -> bool:
        if self.run(["ninja", "-C", str(self.build)]).returncode:
            return False
        for library in self.build.glob("_core*.so"):
            shutil.copyfile(library, self.folder / "src" / "partwise" / library.name)
        return True

    def test(self, paths: list[str], limit: float | None, ignored: list[str] = ()) -> tuple[str | None, float]:  # type: ignore[assignment]
        """Run tests; return the first failure (None if all pass) and the CPU seconds."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "--tb=no"]
        command += [*(f"--ignore={path}" for path in ignored), *(p for p in paths if (self.folder / p).exists())]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)

        def restrain() -> None:
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 2))

        child = subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            preexec_fn=restrain, start_new_session=True,
        )  # fmt: skip
        try:
            # a deadlock uses no CPU time, so the wall clock limits it
            output, _ = child.communicate(timeout=None if limit is None else 10 * limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            return "hang", 0.0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        if child.returncode == 0:
            return None, seconds
        if child.returncode < 0:
            number = -child.returncode
            return ("hang" if number in (signal.SIGXCPU, signal.SIGKILL) else signal.Signals(number).name), seconds
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.M)
        return (failed[1] if failed else output.strip().splitlines()[-1]), seconds

    def judge(self, mutant: Mutant, table: Table, limits: dict[str, float], concerned_only: bool) -> dict[str, str]:
        """Build the mutant, test it, and restore the file."""
        path = self.folder / mutant.file
        text = path.read_text()
        lines = text.split("\n")
        lines[mutant.line - 1] = mutant.new
        path.write_text("\n".join(lines))
        try:
            if path.suffix == ".py":
                compile(path.read_text(), mutant.file, "exec")
            elif not self.compile():
                return {"state": "did not compile"}
            first = table.tests(mutant.file)
            failed, _ = self.test(first, limits["concerned"])
            if failed is None and not concerned_only:
                failed, _ = self.test(table.rest, limits["rest"], first)
            stage = "the tests that concern it" if concerned_only else "all"
            return {"state": "killed", "by": failed} if failed else {"state": "survived", "by": stage}
        except SyntaxError:
            return {"state": "did not compile"}
        finally:
            path.write_text(text)
            if path.suffix != ".py":  # a new time stamp makes the next build compile the restored file
                os.utime(path)


def limits_of(shop: Workshop, table: Table, concerned_only: bool) -> dict[str, float]:
    """Return time limits derived from a run without a fault, which must pass."""
    limits = {}
    every = sorted({test for tests in table.concern.values() for test in tests})
    for name, paths, ignored in (("concerned", every, []), ("rest", table.rest, every)):
        if name == "rest" and concerned_only:
            continue
        failed, seconds = shop.test(paths, None, ignored)
        if failed:
            sys.exit(f"without a mutant the tests fail already: {failed}")
        limits[name] = LEAST_LIMIT + LIMIT_FACTOR * seconds
    return limits


def report(mutants: list[Mutant], results: dict[str, dict[str, str]], reasons: dict[tuple[str, str, str], str]) -> str:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    survivors, equals = [], []
    for m in mutants:
        result = results.get(m.key)
        if result is None:
            continue
        for name in (m.file, "all"):
            counts[name].update([result["state"]])
        if result["state"] == "survived":
            survivors.append(f"{m}\n    survived {result['by']}")
        if result["state"] == "equivalent":
            equals.append(f"{m}\n    {reasons[m.file, m.old.strip(), m.new.strip()]}")
    width = max(map(len, counts), default=4)
    head = f"{'file':{width}}  mutants  " + "  ".join(STATES)
    rows = [
        f"{name:{width}}  {sum(c.values()):7}  " + "  ".join(f"{c[s]:{len(s)}}" for s in STATES)
        for name, c in sorted(counts.items(), key=lambda item: (item[0] == "all", item[0]))
    ]
    parts = ["\n".join([head, *rows])]
    parts += ["survivors:\n" + "\n".join(survivors)] if survivors else ["no survivors"]
    parts += ["equivalent:\n" + "\n".join(equals)] if equals else []
    return "\n\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=120, help="mutants made by rules (the table's come on top)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="PATH", help="only sources whose path begins so")
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", help="results, one JSON line per mutant: read, then added to"
    )
    parser.add_argument("--retry", action="store_true", help="those of FILE that survived once more, and nothing else")
    parser.add_argument(
        "--concerned", action="store_true", help="only the tests that concern a file: quicker, says less"
    )
    parser.add_argument(
        "--limit", type=float, metavar="SECONDS", help="CPU time of a mutant's tests; by default measured"
    )
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep the copies here between runs")
    parser.add_argument("--jobs", type=int, default=1, help="copies at work side by side")
    parser.add_argument("--list", action="store_true", help="show the mutants and stop")
    args = parser.parse_args()
    table = Table.read()
    reasons = table.reasons()
    for file, find, _ in reasons:
        if find not in map(str.strip, (ROOT / file).read_text().split("\n")):
            sys.stdout.write(f"{TABLE.name}: {file} has no line {find!r} any more\n")
    files = [f for f in sources(ROOT, table.targets) if f not in table.left_out and f.startswith(args.only or "")]
    mutants = curated(ROOT, table.curated) + choose(ROOT, files, args.count, args.seed)
    mutants = [m for m in mutants if m.file.startswith(args.only or "")]
    if args.list:
        sys.stdout.write("".join(f"{m}\n" for m in mutants))
        return 0
    results: dict[str, dict[str, str]] = {}
    if args.resume and args.resume.exists():
        results = {entry["key"]: entry for entry in map(json.loads, args.resume.read_text().splitlines())}
    todo = []
    for m in mutants:
        if (m.file, m.old.strip(), m.new.strip()) in reasons:
            results[m.key] = {"state": "equivalent"}
        elif (m.key in results and results[m.key]["state"] == "survived") if args.retry else m.key not in results:
            todo.append(m)
    sys.stdout.write(f"{len(mutants)} mutants, {len(todo)} to do\n")
    if todo:
        with tempfile.TemporaryDirectory() as scratch:
            work = args.work.resolve() if args.work else Path(scratch)
            if work == ROOT or ROOT.is_relative_to(work):
                sys.exit("--work must not be the checkout")
            shops: SimpleQueue[Workshop] = SimpleQueue()
            for k in range(args.jobs):
                shops.put(Workshop(work / str(k)))
            first = shops.get()
            limits = (
                dict.fromkeys(("concerned", "rest"), args.limit)
                if args.limit
                else limits_of(first, table, args.concerned)
            )
            shops.put(first)

            def one(m: Mutant) -> None:
                shop, started = shops.get(), time.monotonic()
                try:
                    result = shop.judge(m, table, limits, args.concerned)
                finally:
                    shops.put(shop)
                results[m.key] = result
                if args.resume:
                    with args.resume.open("a") as out:
                        out.write(json.dumps({"key": m.key, **asdict(m), **result}) + "\n")
                sys.stdout.write(
                    f"{result['state']} ({time.monotonic() - started:.0f} s) {result.get('by', '')}\n{m}\n"
                )
                sys.stdout.flush()

            with ThreadPoolExecutor(args.jobs) as pool:
                list(pool.map(one, todo))
    sys.stdout.write(report(mutants, results, reasons) + "\n")
    return any(results[m.key]["state"] == "survived" for m in mutants if m.key in results)


if __name__ == "__main__":
    sys.exit(main())
