"""Figures 1-3 and Table 1 of Chang and Yih 2013: parts of speech."""

from papers.dcd_comparison import Setting, experiment

EXPERIMENT = experiment(
    "dcd-pos",
    "Parts of speech: dual coordinate descent and its rivals",
    "conll2000",
    "Figures 1-3 and Table 1 (POS-WSJ)",
    (
        "CoNLL-2000's 7936 sentences for training and 1000 for development are sections 15-18 of the WSJ, its test "
        "data section 20; the paper trains on sections 0-18. Attributes are words and affixes.",
    ),
    Setting(
        task="conll2000-pos",
        measure="accuracy",
        passes=25,
        choosing=4,
        seconds=12,
        limit=500,
        share=0.5,
        paper={"POS-WSJ": {"DCD-SSVM": 97.1, "Perceptron": 96.9, "MIRA": 96.9, "SGD": 96.9}},
    ),
)
