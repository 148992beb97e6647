"""Figures 1-3 and Table 1 of Chang and Yih 2013: named entities."""

from papers.dcd_comparison import Setting, experiment

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
            "Perceptron": "Test and development data are of other sources than the training data, and development F1 "
            "hardly tells C of 0.05 to 5 apart; the perceptron has no C",
        },
    ),
)
