"""PARSEVAL counts of one sentence by the definition: brackets in lists, from which matches are removed one by one."""

PUNCTUATION = {",", ":", "``", "''", "."}


def _visit(tree, words, spans):
    """Append (tag, word) pairs and spans (label, first word, word after the last) of all nodes."""
    label, children = tree[0], tree[1:]
    if len(children) == 1 and isinstance(children[0], str):
        words.append((label, children[0]))
        return
    begin = len(words)
    for child in children:
        if isinstance(child, str):
            words.append((None, child))
        else:
            _visit(child, words, spans)
    spans.append((label, begin, len(words)))


def _without_functions(label):
    for k in range(1, len(label)):
        if label[k] in "-=":
            return label[:k]
    return label


def _brackets(tree, is_punctuation):
    words, spans = [], []
    _visit(tree, words, spans)
    position, n_before, kept = 0, 0, []
    for tag, _ in words:
        kept.append(n_before)
        if tag != "-NONE-":
            n_before += not is_punctuation[position]
            position += 1
    kept.append(n_before)
    found = []
    for label, begin, end in spans:
        name = _without_functions(label)
        if kept[begin] != kept[end] and name not in PUNCTUATION and name not in ("TOP", "", "-NONE-"):
            found.append(("ADVP" if name == "PRT" else name, kept[begin], kept[end]))
    return found


def _words(tree):
    words = []
    _visit(tree, words, [])
    return [pair for pair in words if pair[0] != "-NONE-"]


def counts(gold, predicted):
    """Return (gold brackets, predicted, right, whether all match, crossing brackets, words, right tags) as numbers."""
    tags = [tag for tag, _ in _words(gold)]
    is_punctuation = [tag in PUNCTUATION or tag in ("TOP", "") for tag in tags]
    right, found = _brackets(gold, is_punctuation), _brackets(predicted, is_punctuation)
    left, matched = list(right), 0
    for bracket in found:
        if bracket in left:
            left.remove(bracket)
            matched += 1
    crossing = 0
    for _, a, b in found:
        inside = set(range(a, b))
        others = [set(range(c, d)) for _, c, d in right]
        crossing += any(inside & other and inside - other and other - inside for other in others)
    same = [
        ("ADVP" if one == "PRT" else one) == ("ADVP" if other == "PRT" else other)
        for one, (other, _), skip in zip(tags, _words(predicted), is_punctuation, strict=True)
        if not skip
    ]
    exact = len(right) == len(found) == matched
    return len(right), len(found), matched, exact, crossing, len(same), sum(same)
