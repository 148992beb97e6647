"""Items as python-crfsuite takes them: dicts, nested ones too, or iterables of names; names are joined by ``:``."""

from collections.abc import Iterable
from typing import Any, Union

from partwise.models.readers import TOO_DEEP
from partwise.problem.inference import PackedItems

#: An item's names and their values.
Item = tuple[list[str], list[float]]


def text_of(value: object) -> str:
    """Return a string, or the UTF-8 of one; TypeError for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8")
    raise TypeError(f"names and labels are strings, got {value!r}")


def _add(given: Any, prefix: str, names: list[str], values: list[float]) -> None:
    if not isinstance(given, dict):
        names += [prefix + text_of(name) for name in given]
        values += [1.0] * (len(names) - len(values))
        return
    for key, value in given.items():
        name = prefix + text_of(key)
        if isinstance(value, (dict, list, set)):
            _add(value, name + ":", names, values)
            continue
        text = isinstance(value, (str, bytes))
        try:
            values.append(1.0 if text else float(value))
        except (TypeError, ValueError):
            kinds = "numbers, bools, strings, dicts, lists and sets"
            raise TypeError(f"attribute {name!r} has the value {value!r}: values are {kinds}") from None
        names.append(f"{name}:{text_of(value)}" if text else name)


def _item_of(given: object, number: int) -> Item:
    """Return an item in any of the forms; `number` is its place in the sequence."""
    if isinstance(given, (str, bytes)):
        raise ValueError(f"item {number}: an item is a dict or a list of names, not the string {given!r}")
    names: list[str] = []
    values: list[float] = []
    try:
        _add(given, "", names, values)
    except TypeError as error:
        raise ValueError(f"item {number}: an item is a dict or a list of names: {error}") from None
    except RecursionError:
        raise ValueError(f"item {number}: {TOO_DEEP}") from None
    return names, values


#: Items in any of their forms, or an `ItemSequence`.
Items = Union[Iterable[object], "ItemSequence"]


def sequence_of(given: Items) -> list[Item]:
    """Return a sequence of items, or those of an `ItemSequence`."""
    if isinstance(given, ItemSequence):
        return given.packed.lists()
    return [_item_of(each, number) for number, each in enumerate(given)]


def packed_of(given: Items) -> PackedItems:
    """Return a sequence of items in any of the forms, as the core keeps it."""
    if isinstance(given, ItemSequence):
        return given.packed
    items = list(given)
    packed = PackedItems.read(items, ":")  # None: an unusual form, or an error, for the Python code
    return PackedItems.of_lists(sequence_of(items)) if packed is None else packed


def token_of(item: Item, strings: dict[str, str]) -> list[str] | dict[str, float]:
    """Return an item as estimators take it: names, or a dict with values if any is not 1; repeated names add up.

    Values of 0, which change nothing, are left out. strings: the one object that stands for each name.
    """
    names, values = item
    kept = [strings.setdefault(name, name) for name, value in zip(names, values, strict=True) if value]
    if all(value in (0.0, 1.0) for value in values):
        return kept[:]  # a copy takes less memory: a list that has grown has spare room
    total: dict[str, float] = {}
    for name, value in zip(kept, filter(None, values), strict=True):
        total[name] = total.get(name, 0.0) + value
    return total


class ItemSequence:
    """The items of one sequence, prepared once for trainers and taggers that get them more than once.

    An item is an iterable of names, or a dict {name: number or bool}, where a string as value is joined to the name and
    a nested dict, list or set has the name as prefix.
    """

    def __init__(self, pyseq: Items) -> None:
        self.packed = packed_of(pyseq)

    def items(self) -> list[dict[str, float]]:
        """Return the names and values of every item."""
        return [dict(zip(*item, strict=True)) for item in self.packed.lists()]

    def __len__(self) -> int:
        return len(self.packed)

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"
