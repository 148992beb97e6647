"""The real data sets: their files, with the SHA-256 of each file's unpacked bytes and the address to download it from.

Digests are of unpacked bytes, so that a file may be kept plain or gzipped. An address is listed only where the file
behind it is known to have that digest; a data set without addresses has to be put into the folder by hand.
"""

from __future__ import annotations

from dataclasses import dataclass

_HOSTS = {
    "clips": "https://www.clips.uantwerpen.be/conll2000/chunking",
    "wnut": "https://raw.githubusercontent.com/leondz/emerging_entities_17/e52a2d2a71ac1a051ca2d532eef28653c5c02603",
    "ewt": "https://raw.githubusercontent.com/UniversalDependencies/UD_English-EWT/4c89b5833a70aa5ed3a00bad2f23f57992cc7df8",
    "mnist": "https://storage.googleapis.com/cvdf-datasets/mnist",
}

#: Two lines per data set, name | summary and terms | loader; then one per file: digest, name, and address if it has one
#: (* stands for the name).
_TABLE = """
conll2000 | chunking: word, part of speech, chunk label; 8936 + 2012 sentences
    none stated; Wall Street Journal text | conll2000
    82033cd7a72b209923a98007793e8f9de3abc1c8b79d646c50648eb949b87cea train.txt clips/*.gz
    73b7b1e565fa75a1e22fe52ecdf41b6624d6f59dacb591d44252bf4d692b1628 test.txt clips/*.gz
wnut17 | named entities in noisy text: token, label; 3394 + 1009 + 1287 sentences
    CC BY 4.0 | wnut17
    731820e13f71af324c6b55a1575ec2ce59fbaa2a0806f8f0400b98d56cd6a7a5 train.conll wnut/wnut17*
    e053b752b8155113ca66e7db08af5f2f5f43ab993694e4774f1ec5bad42312d8 dev.conll wnut/emerging.*
    2aa79b764e56ec9264a1b30fdd9b70195bd00ff400b62edd8f399d5f13c178f0 test.conll wnut/emerging.test.annotated
brown | parts of speech: one sentence per line, word/tag; 57340 sentences of 500 documents
    non-commercial | brown
    eee8a25edbfbb4c9c76259826bbc58944edd8a973d6e6306691e109d07dd52a8 brown.txt
ud-english-ewt | dependency trees, UD 2.16; 12544 + 2001 + 2077 sentences, 2.3% non-projective
    CC BY-SA 4.0 | universal_dependencies
    3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b train.conllu ewt/en_ewt-ud-*
    531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6 dev.conllu ewt/en_ewt-ud-*
    e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd test.conllu ewt/en_ewt-ud-*
ud-basque-bdt | dependency trees, UD 1; 5396 + 1798 + 1799 sentences, 34% non-projective
    CC BY-NC-SA 3.0 | universal_dependencies
    81c60c6f03ce1171ae3f525de391c3b67609b30db9b79d7894c263c2f362dda6 train.conllu
    9425e5de7a673919f93122fe8ebd10127645464ba916ed94206246e21158662a dev.conllu
    c06b715d5e5fac5f814b2dd15c338a88943bcfb20b12a2dbb6717f230a7b81aa test.conllu
conll2007-spanish | dependency trees in CoNLL-X columns; 2949 + 563 sentences
    CC BY-NC-ND | conll2007_spanish
    fa9f74741b5a03698511058c6f1b0d4061e3c1091018c5ecdba2e0ef7304a86f esp.train
    02bb01813f86abdd607c35ef5404100b63dd4f7fe73beecf296cdbc591c79ec3 esp.test
treebank-sample | constituent trees in brackets, with traces; 3914 trees
    non-commercial | treebank_sample
    f018900543fbff4571439fd5e5ebdae00ba53dfdd6543e48491230d76d0e06a1 wsj_sample.mrg
ocr-letters | handwritten words, 128 pixels per letter; 6877 words in 10 folds
    none stated | ocr_letters
    9b4ba64fc4d65ea2d35e8168b429cd0db1f417da7333d24dc8a4447810de2807 letters.tsv
mnist | handwritten digits, 28 x 28; 60000 + 10000
    none stated | mnist
    ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db train-images-idx3-ubyte mnist/*.gz
    65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5 train-labels-idx1-ubyte mnist/*.gz
    0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7 t10k-images-idx3-ubyte mnist/*.gz
    ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2 t10k-labels-idx1-ubyte mnist/*.gz
libsvm | a9a (32561 + 16281 rows) and w8a (49749 rows), two labels each
    none stated | a9a, w8a
    7ba53cccb27e2e525f0fb173e1f446d49856e3fb007eb43be4ec6d0f5b3335ca a9a
    1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9 a9a.t
    b464b4f6ce6a5d9e181ffc793e19a04751036273722312398ef7673705014902 w8a
snakes | small grids with a snake of ten cells, 11 labels; 200 + 100 grids
    BSD-2-Clause | snakes
    1b42aa4469ab2f288a18e3aecbda81fb5abda3070d40a8411302100564c1b37b snakes.npz
20news | newsgroup articles as word counts, 20 labels; 11314 + 7532 articles
    none stated | news20
    8e45a09d9b5650e913496459fb8044b9ecff7313172cdb8fb93dbf8105f8f7ef 20news_bydate_counts.train.libsvm
    af8602dc125494947ae66169c6f8b79861af084067f7c78bef731e23f9eee903 20news_bydate_counts.test.libsvm
    e639d15e21a5fef5fa90955acc42bbf428a9bd3a379cd3084b9595cb0066831b classes.txt
"""


@dataclass(frozen=True)
class DataFile:
    """A file: its name without ``.gz``, the digest of its unpacked bytes, its address if there is one."""

    name: str
    sha256: str
    url: str | None = None


@dataclass(frozen=True)
class DataSet:
    """A data set; `name` is its folder's name, `loader` the function of `partwise.datasets` that reads it."""

    name: str
    summary: str
    terms: str
    loader: str
    files: tuple[DataFile, ...]

    @property
    def downloadable(self) -> bool:
        """Whether all files have addresses."""
        return all(file.url is not None for file in self.files)


def _read_table() -> dict[str, DataSet]:
    found: dict[str, DataSet] = {}
    for block in _TABLE.strip().replace("\n    ", "\t").split("\n"):
        head, more, *lines = block.split("\t")
        files = []
        for line in lines:
            digest, name, *address = line.split()
            host, _, path = "".join(address).partition("/")
            files.append(DataFile(name, digest, f"{_HOSTS[host]}/{path.replace('*', name)}" if host else None))
        (name, summary), (terms, loader) = head.split(" | "), more.split(" | ")
        found[name] = DataSet(name, summary, terms, loader, tuple(files))
    return found


#: Data sets by name.
DATA_SETS = _read_table()


def get_data_set(name: str) -> DataSet:
    """Return the data set of this name; raise ValueError, which lists the known names, for another name."""
    if name not in DATA_SETS:
        raise ValueError(f"unknown data set {name!r}; there are {', '.join(DATA_SETS)}")
    return DATA_SETS[name]
