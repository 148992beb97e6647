"""Figures 1-3 and Table 1 of Chang and Yih 2013 on another task: chunking."""

from papers.dcd_comparison import Setting, experiment

EXPERIMENT = experiment(
    "dcd-chunking",
    "Chunking: dual coordinate descent and its rivals",
    "conll2000",
    "Figures 1-3 and Table 1, on a task that stands in for the second one of named entities",
    (
        "The paper has no chunking: CoNLL-2000 is a second task with chunk labels, in place of its second set of named "
        "entities. 7936 sentences for training, 1000 for development; words and parts of speech as attributes.",
    ),
    Setting(
        task="conll2000-chunks",
        measure="F1",
        passes=25,
        choosing=4,
        seconds=10,
        limit=500,
        share=0.5,
        paper={"NER-CoNLL": {"DCD-SSVM": 85.6, "Perceptron": 85.3, "MIRA": 85.1, "SGD": 84.2}},
    ),
)
