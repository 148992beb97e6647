"""Lemmas as rules: what to do with a form to get its lemma, so that lemmas of unseen words can be learnt as labels.

    lower/-0+/-3+y      cities -> city: take 3 characters from the end, put y there, all in lower case
    keep/-0+/-1+        Smiths -> Smith: the same with the form's capitals
    =be                 is -> be: nothing of the form is left

The case is `lower`, `keep` (the form's), `title` or `upper`: the first of these that gives the lemma. What is left of
the form is the longest common substring of form and lemma, ignoring case. ``%2F`` is a slash, ``%25`` a per cent sign.
"""

import re
from collections.abc import Callable
from functools import lru_cache

_CASES: dict[str, Callable[[str], str]] = {
    "lower": str.lower,
    "keep": str,
    "title": lambda text: text[:1].upper() + text[1:].lower(),
    "upper": str.upper,
}
_RULE = re.compile(r"(lower|keep|title|upper)/-(\d{1,6})\+([^/]*)/-(\d{1,6})\+([^/]*)")


@lru_cache(maxsize=1 << 16)
def lemma_rule(form: str, lemma: str) -> str:
    """Return the rule that makes this lemma of this form: `apply_lemma_rule` gives the lemma again, whatever it is."""
    begin, at, length = _common(form, lemma)
    for case in _CASES if length else ():
        before, after = lemma[:at], lemma[at + length :]
        if case != "keep":
            before, after = before.lower(), after.lower()
        rule = f"{case}/-{begin}+{_quoted(before)}/-{len(form) - begin - length}+{_quoted(after)}"
        if apply_lemma_rule(rule, form) == lemma:
            return rule
    return f"={lemma}"


def apply_lemma_rule(rule: str, form: str) -> str:
    """Return the lemma of a form by a rule; a form too short for the rule is returned in the rule's case.

    ValueError for a text that is not a rule.
    """
    if rule.startswith("="):
        return rule[1:]
    found = _RULE.fullmatch(rule)
    if found is None:
        raise ValueError(f"{rule!r} is no rule of a lemma")
    case, first, last = found[1], int(found[2]), int(found[4])
    if first + last > len(form):
        return _CASES[case](form)
    return _CASES[case](_plain(found[3]) + form[first : len(form) - last] + _plain(found[5])) or form


def _common(form: str, lemma: str) -> tuple[int, int, int]:
    """Return (start in the form, start in the lemma, length) of the first longest common substring, ignoring case."""
    one, other = [c.lower() for c in form], [c.lower() for c in lemma]
    best = (0, 0, 0)
    row = [0] * (len(other) + 1)
    for i, a in enumerate(one, 1):
        # row[j] is the length of the common ending of form[:i] and lemma[:j]
        row = [0, *(row[j] + 1 if a == b else 0 for j, b in enumerate(other))]
        longest = max(row)
        if longest > best[2]:
            j = row.index(longest)
            best = (i - longest, j - longest, longest)
    return best


def _quoted(text: str) -> str:
    return text.replace("%", "%25").replace("/", "%2F")


def _plain(text: str) -> str:
    return text.replace("%2F", "/").replace("%25", "%")
