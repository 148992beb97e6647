"""The grammar of `make_treebank`: phrases that know their head word, and the words that decide where they attach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

PEOPLE = [
    "gardener", "pilot", "baker", "teacher", "sailor", "painter", "doctor", "miner", "cook", "driver", "guard", "singer"
]  # fmt: skip
NAMES = ["Ada", "Boris", "Chloe", "Dario", "Emil", "Fatima", "Greta", "Hugo"]
ANIMALS = ["cat", "dog", "goat", "horse", "fish", "duck"]
THINGS = ["letter", "boat", "table", "fence", "nail", "stone", "can", "watch", "saw", "picture", "wall", "bell"]
FOOD = ["soup", "bread", "cake", "fish", "apple", "cheese"]
PLACES = ["garden", "harbour", "kitchen", "tower", "market", "forest", "cellar", "yard"]
#: First parts of compounds: "a garden wall"; half of them are adjectives too.
COMPOUNDED = ["garden", "harbour", "stone", "watch", "light", "plain", "green", "fast", "kind", "quiet"]
#: What people wear or have about them; "with a scarf" belongs to the noun.
WORN = ["scarf", "hat", "beard", "coat", "limp", "smile", "medal"]
TOOLS = {
    "see": ["telescope", "mirror", "lamp", "watch"],
    "hit": ["hammer", "stone", "paddle", "brush"],
    "eat": ["spoon", "fork", "knife"],
    "make": ["brush", "saw", "hammer", "knife"],
}


def _forms(text: str) -> list[tuple[str, ...]]:
    """Return verbs as (past form, plain form)."""
    return [tuple(verb.split(":")) for verb in text.split()]


#: Verbs by the kind of tool that they take.
TRANSITIVE = {
    "see": _forms("saw:see watched:watch noticed:notice found:find"),
    "hit": _forms("hit:hit broke:break chased:chase moved:move"),
    "eat": _forms("ate:eat tasted:taste shared:share"),
    "make": _forms("painted:paint built:build carved:carve cut:cut"),
    "": _forms("knew:know liked:like owned:own feared:fear lost:lose"),
}
OBJECTS = {
    "see": (PEOPLE, ANIMALS, THINGS),
    "hit": (THINGS, ANIMALS),
    "eat": (FOOD, FOOD, ANIMALS),
    "make": (THINGS,),
    "": (PEOPLE, ANIMALS, THINGS, FOOD),
}
INTRANSITIVE = _forms("slept:sleep danced:dance sang:sing waited:wait worked:work cooked:cook fished:fish")
SAYING = _forms("said:say thought:think hoped:hope saw:see knew:know")
ADJECTIVES = ["old", "young", "light", "tall", "quiet", "fast", "green", "heavy", "plain", "kind"]
ADVERBS = ["quickly", "often", "quietly", "fast", "well", "again"]
PRONOUNS = ["she", "he", "they", "we"]
OBJECT_PRONOUNS = ["her", "him", "them", "us"]
OWNERS = ["her", "his", "their", "our"]
DETERMINERS = ["the", "the", "a", "every", "that", "some"]
AT_PLACES = ["in", "near", "behind"]

#: Share of prepositional phrases that are attached against the rule.
NOISE = 0.05
#: Share of nouns, verbs and adjectives that are made up on the spot.
NEW_WORDS = 0.1
ONSETS = ["b", "d", "f", "gr", "k", "l", "m", "n", "p", "r", "s", "st", "t", "tr", "v", "w"]
VOWELS = ["a", "e", "i", "o", "u", "ai", "oo"]
#: Endings of made-up words by tag; most endings are possible for several tags.
ENDINGS = {
    "NN": ("", "", "l", "n", "er", "ing", "t"),
    "VBD": ("ed", "ed", "ed", "t", ""),
    "VB": ("", "", "n", "t", "l"),
    "JJ": ("", "y", "ed", "ing", "l"),
}


T = TypeVar("T")


@dataclass(eq=False)
class Word:
    """A word of a sentence, its head, and the name of the arc between them."""

    text: str
    tag: str
    head: Word | None = None
    relation: str = "root"

    @property
    def word(self) -> Word:
        return self

    def leaves(self) -> list[Word]:
        return [self]


@dataclass(eq=False)
class Phrase:
    """A constituent; `word` is its head word."""

    label: str
    children: list[Phrase | Word]
    word: Word = field(repr=False)

    def leaves(self) -> list[Word]:
        return [word for child in self.children for word in child.leaves()]


def under(word: Word, relation: str, node: Phrase | Word) -> Phrase | Word:
    """Attach a node to a word and return it."""
    node.word.head, node.word.relation = word, relation
    return node


class Grammar:
    """A random grammar, which draws sentences; `depth`, how many clauses a phrase is in, keeps sentences finite."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def sentence(self, nonprojective: float) -> Phrase:
        """Draw a sentence with its full stop."""
        clause = self.apart() if self.chance(nonprojective) else self.clause(0)
        clause.children.append(under(clause.word, "punct", Word(".", ".")))
        return clause

    def clause(self, depth: int) -> Phrase:
        subject = self.subject(depth)
        verb = self.verb_phrase(depth)
        under(verb.word, "nsubj", subject)
        return Phrase("S", [subject, verb], verb.word)

    def apart(self) -> Phrase:
        """Draw a sentence whose subject's last phrase stands at its end: that arc crosses the verb's."""
        noun = self.noun_phrase(self.one_of(PEOPLE))
        words, verb = self.verb(self.one_of(INTRANSITIVE))
        words += self.adverb(verb, 0.3)
        under(verb, "nsubj", noun)
        moved = self.with_phrase(noun.word, self.one_of(WORN)) if self.chance(0.6) else self.relative(noun.word, 2)
        return Phrase("S", [noun, Phrase("VP", words, verb), moved], verb)

    def subject(self, depth: int) -> Phrase:
        if self.chance(0.2):
            return self.single(self.one_of(PRONOUNS), "PRP")
        return self.entity((PEOPLE, PEOPLE, PEOPLE, ANIMALS), depth)

    def entity(self, kinds: Sequence[Sequence[str]], depth: int) -> Phrase:
        """Draw a noun phrase that may be coordinated, or carry a phrase or a clause of its own."""
        nouns = self.one_of(kinds)
        first = self.noun_phrase(self.one_of(nouns), names=nouns is PEOPLE)
        roll = self.rng.random()
        if roll < 0.10 and depth < 3:
            second = self.noun_phrase(self.one_of(nouns), names=nouns is PEOPLE)
            under(first.word, "conj", second)
            return Phrase("NP", [first, under(first.word, "cc", Word("and", "CC")), second], first.word)
        if first.word.tag == "NNP":
            return first
        if roll < 0.20:
            return Phrase("NP", [first, self.with_phrase(first.word, self.one_of(WORN))], first.word)
        if roll < 0.28:
            owner = self.noun_phrase(self.one_of(PEOPLE), names=True)
            return Phrase("NP", [first, self.prepositional(first.word, "of", owner)], first.word)
        if roll < 0.36 and depth < 2:
            return Phrase("NP", [first, self.relative(first.word, depth + 1)], first.word)
        return first

    def noun_phrase(self, noun: str, names: bool = False) -> Phrase:
        """Draw a noun with what stands before it, or a name."""
        if names and self.chance(0.25):
            return self.single(self.one_of(NAMES), "NNP")
        word = self.open_class(noun, "NN")
        roll = self.rng.random()
        first = Word(self.one_of(OWNERS), "PRP$") if roll < 0.15 else Word(self.one_of(DETERMINERS), "DT")
        children: list[Phrase | Word] = [under(word, "poss" if first.tag == "PRP$" else "det", first)]
        while self.chance(0.25) and len(children) < 3:
            children.append(under(word, "amod", self.open_class(self.one_of(ADJECTIVES), "JJ")))
        if self.chance(0.15):
            children.append(under(word, "compound", self.open_class(self.one_of(COMPOUNDED), "NN")))
        return Phrase("NP", [*children, word], word)

    def single(self, text: str, tag: str) -> Phrase:
        word = Word(text, tag)
        return Phrase("NP", [word], word)

    def with_phrase(self, word: Word, noun: str) -> Phrase:
        return self.prepositional(word, "with", self.noun_phrase(noun))

    def prepositional(self, word: Word, preposition: str, noun: Phrase) -> Phrase:
        """Draw a prepositional phrase, attached to a word."""
        head = Word(preposition, "IN")
        under(word, "prep", head)
        return Phrase("PP", [head, under(head, "pobj", noun)], head)

    def relative(self, word: Word, depth: int) -> Phrase:
        """Draw a relative clause: "that chased the duck"."""
        verb = self.verb_phrase(depth + 1)
        under(word, "relcl", verb)
        return Phrase("SBAR", [under(verb.word, "nsubj", Word("that", "WDT")), verb], verb.word)

    def verb(self, forms: tuple[str, ...]) -> tuple[list[Phrase | Word], Word]:
        """Draw a verb in the past tense, or after "can" or "will": its words, and the last of them."""
        past, plain = forms
        if self.chance(0.7):
            verb = self.open_class(past, "VBD")
            return [verb], verb
        verb = self.open_class(plain, "VB")
        return [under(verb, "aux", Word(self.one_of(("can", "will", "must")), "MD")), verb], verb

    def adverb(self, verb: Word, share: float) -> list[Phrase | Word]:
        """Draw an adverb of a verb, or none."""
        return [under(verb, "advmod", Word(self.one_of(ADVERBS), "RB"))] if self.chance(share) else []

    def verb_phrase(self, depth: int) -> Phrase:
        roll = self.rng.random()
        if roll < 0.12 and depth < 2:
            return self.saying(depth)
        return self.intransitive() if roll < 0.35 else self.transitive(depth)

    def saying(self, depth: int) -> Phrase:
        words, verb = self.verb(self.one_of(SAYING))
        clause = self.clause(depth + 1)
        under(verb, "ccomp", clause)
        mark = under(clause.word, "mark", Word("that", "IN"))
        return Phrase("VP", [*words, Phrase("SBAR", [mark, clause], clause.word)], verb)

    def intransitive(self) -> Phrase:
        words, verb = self.verb(self.one_of(INTRANSITIVE))
        words += self.adverb(verb, 0.3)
        if self.chance(0.5):
            words.append(self.prepositional(verb, self.one_of(AT_PLACES), self.noun_phrase(self.one_of(PLACES))))
        return Phrase("VP", words, verb)

    def transitive(self, depth: int) -> Phrase:
        kind = self.one_of(list(TRANSITIVE))
        words, verb = self.verb(self.one_of(TRANSITIVE[kind]))
        if kind == "see" and self.chance(0.1):
            return self.small_clause(words, verb)
        if kind in ("see", "") and self.chance(0.12):
            objects = self.single(self.one_of(OBJECT_PRONOUNS), "PRP")
        elif self.chance(0.5):
            return self.attached(kind, words, verb, self.noun_phrase(self.one_of(self.one_of(OBJECTS[kind]))))
        else:
            objects = self.entity(OBJECTS[kind], depth + 1)
        return Phrase("VP", [*words, under(verb, "obj", objects), *self.adverb(verb, 0.15)], verb)

    def small_clause(self, words: Sequence[Phrase | Word], verb: Word) -> Phrase:
        """Draw a clause that somebody is seen to do: "saw her duck"."""
        pronoun = self.single(self.one_of(OBJECT_PRONOUNS), "PRP")
        done = Word(self.one_of(("duck", "fish", "cook", "paint", "dance", "wait")), "VB")
        under(done, "nsubj", pronoun)
        clause = Phrase("S", [pronoun, Phrase("VP", [done], done)], done)
        return Phrase("VP", [*words, under(verb, "ccomp", clause)], verb)

    def attached(self, kind: str, words: Sequence[Phrase | Word], verb: Word, noun: Phrase) -> Phrase:
        """Draw a verb, its object and a prepositional phrase, which the words attach to one or the other."""
        roll = self.rng.random()
        if roll < 0.4:
            preposition, other = "with", self.one_of(self.one_of(list(TOOLS.values())))
            to_verb = other in TOOLS.get(kind, ())
        elif roll < 0.6:
            preposition, other, to_verb = "with", self.one_of(WORN), False
        else:
            preposition, other = self.one_of(AT_PLACES), self.one_of(PLACES)
            to_verb = kind in ("hit", "eat", "make")
        if self.chance(NOISE):
            to_verb = not to_verb
        under(verb, "obj", noun)
        phrase = self.prepositional(verb if to_verb else noun.word, preposition, self.noun_phrase(other))
        parts = [noun, phrase] if to_verb else [Phrase("NP", [noun, phrase], noun.word)]
        return Phrase("VP", [*words, *parts], verb)

    def open_class(self, text: str, tag: str) -> Word:
        """Draw a word, or sometimes one that is not in the vocabulary."""
        if not self.chance(NEW_WORDS):
            return Word(text, tag)
        syllables = [self.one_of(ONSETS) + self.one_of(VOWELS) for _ in range(int(self.rng.integers(1, 3)))]
        return Word("".join(syllables) + self.one_of(("", "n", "t", "k")) + self.one_of(ENDINGS[tag]), tag)

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def one_of(self, items: Sequence[T]) -> T:
        return items[int(self.rng.integers(len(items)))]
