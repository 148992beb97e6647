"""Attributes for chunking: the 19 templates of CRFsuite's chunking example, written as data."""

TEMPLATES = [
    *[[("w", k)] for k in (-2, -1, 0, 1, 2)],
    [("w", -1), ("w", 0)],
    [("w", 0), ("w", 1)],
    *[[("pos", k)] for k in (-2, -1, 0, 1, 2)],
    *[[("pos", k), ("pos", k + 1)] for k in (-2, -1, 0, 1)],
    *[[("pos", k), ("pos", k + 1), ("pos", k + 2)] for k in (-2, -1, 0)],
]


def by_templates(words, tags):
    fields = {"w": words, "pos": tags}
    rows = []
    for t in range(len(words)):
        row = []
        for template in TEMPLATES:
            if all(0 <= t + k < len(words) for _, k in template):
                name = "|".join(f"{field}[{k}]" for field, k in template)
                row.append(name + "=" + "|".join(fields[field][t + k] for field, k in template))
        if t == 0:
            row.append("__BOS__")
        if t == len(words) - 1:
            row.append("__EOS__")
        rows.append(row)
    return rows
