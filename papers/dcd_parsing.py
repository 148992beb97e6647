"""Figures 1-3 and Table 1 of Chang and Yih 2013: dependency trees."""

from papers.dcd_comparison import SVM, Setting, experiment

EXPERIMENT = experiment(
    "dcd-parsing",
    "Dependency parsing: dual coordinate descent and its rivals",
    "ud-english-ewt",
    "Figures 1-3 and Table 1 (DP-WSJ)",
    (
        "Universal Dependencies' English Web Treebank stands in for the WSJ, the projective trees of its first 3000 "
        "sentences for training. First-order features without relations, by gold parts of speech; no hashing. SVM-"
        "Struct is left out, as in the paper.",
    ),
    Setting(
        task="ewt",
        measure="UAS",
        passes=10,
        choosing=3,
        seconds=8,
        limit=300,
        most=3000,
        without=(SVM,),
        share=0.5,
        paper={"DP-WSJ": {"DCD-SSVM": 90.8, "Perceptron": 90.3, "MIRA": 90.2, "SGD": 90.9}},
    ),
)
