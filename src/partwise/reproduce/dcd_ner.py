"""Figures 1-3 and Table 1: named entities."""

from .dcd_comparison import Setting, experiment

NOISE = (
    "The test data have about 1100 entities, and the order of the examples alone moves each method's F1 by half a "
    "point to a point. The development data are of another source; the C they choose is the largest, at which "
    "DCD-SSVM is far from the optimum after 25 iterations"
)

EXPERIMENT = experiment(
    "dcd-ner",
    "Named entities: dual coordinate descent and its rivals",
    "wnut17",
    "Figures 1-3 and Table 1 (NER-MUC7, NER-CoNLL)",
    (
        "WNUT 17 stands in for MUC-7 and CoNLL-2003: 3394 sentences of social media, entities of six types, most of "
        "them rare; test data from other sources than the training data. Attributes are words, shapes and affixes, "
        "without gazetteers and clusters.",
    ),
    Setting(
        task="wnut17",
        measure="F1",
        passes=25,
        choosing=10,
        seconds=4,
        limit=800,
        paper={
            "NER-MUC7": {"DCD-SSVM": 79.4, "Perceptron": 78.5, "MIRA": 78.8, "SGD": 77.8},
            "NER-CoNLL": {"DCD-SSVM": 85.6, "Perceptron": 85.3, "MIRA": 85.1, "SGD": 84.2},
        },
        why={
            "Perceptron": f"{NOISE}; the perceptron makes many more passes in that time.",
            "MIRA": f"{NOISE}; MIRA makes many more passes in that time.",
            "SGD": f"{NOISE}; SGD varies most.",
            "CPD": f"{NOISE}.",
            "DCD-Light": f"{NOISE}.",
        },
    ),
)
