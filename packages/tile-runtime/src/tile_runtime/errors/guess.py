"""Suggestions for misspelt names: the one source of "did you mean ...?".

A guess must be a misspelling, not just a similar name: ``atan`` is not ``tan``, ``sort`` not ``short``, and code with
a wrong guess compiles and computes something else. So names are compared word by word (``alloc_fragmnt`` against
``alloc_fragment``); words agree up to case and one typo, which is never in their digits or their first letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
#: Shorter words are too similar for a missing, wrong or additional letter to be conclusive.
_LONG = 5
#: Beginnings of words that are conclusive: ``alloc_frag``.
_SHORTENED = 4


def nearest(name: str, known: Iterable[str], count: int = 1) -> list[str]:
    """Return the names that ``name`` may be a misspelling of, the likeliest first.

    Parameters
    ----------
    name
        The misspelt name.
    known
        The names that exist.
    count
        The most names to return. If more are equally likely, none is returned: such a guess is as often wrong.
    """
    ranked = [(rank, k) for k in dict.fromkeys(known) if k != name and (rank := _rank(name, k)) is not None]
    if not ranked:
        return []
    best = min(rank for rank, _ in ranked)
    found = [k for rank, k in ranked if rank == best]
    return found if len(found) <= count else []


def hint(
    name: str, known: Iterable[str], otherwise: str, form: str = "{}", words: Mapping[str, str] | None = None
) -> str:
    """Return "did you mean ...?" as a remedy, or ``otherwise``.

    Parameters
    ----------
    form
        How to write the name, for example ``"T.{}"``.
    words
        Names of other languages, with the remedy for each.
    """
    if words and name in words:
        return words[name]
    near = nearest(name, known)
    return f"did you mean {form.format(near[0])}?" if near else otherwise


def _rank(name: str, known: str) -> int | None:
    """Return 0 for other case, 1 for a typo, 2 for shortened words, or ``None``."""
    if re.sub(r"\W|_", "", name).lower() == re.sub(r"\W|_", "", known).lower():
        return 0
    mine, theirs = (_WORD.findall(x) for x in (name, known))
    if len(mine) != len(theirs) or not mine:
        return None
    pairs = [(a.lower(), b.lower()) for a, b in zip(mine, theirs, strict=True)]
    # Adjacent words that agree are stronger evidence than the word's own length.
    long = _LONG - 1 if any(a == b for a, b in pairs) else _LONG
    if all(_same_word(a, b, long) for a, b in pairs):
        return 1
    shortened = all(a == b or (len(a) >= _SHORTENED and b.startswith(a)) for a, b in pairs)
    return 2 if shortened and any(a == b for a, b in pairs) else None


def _same_word(a: str, b: str, enough: int) -> bool:
    """Whether ``a`` is ``b`` with at most one typo."""
    if a == b:
        return True
    if a.isdigit() or b.isdigit() or a[0] != b[0]:
        return False
    if sorted(a) == sorted(b):
        return sum(x != y for x, y in zip(a, b, strict=True)) == 2 and len(a) > 2
    short, long = sorted((a, b), key=len)
    if len(long) - len(short) > 1:
        return False
    at = next((k for k, (x, y) in enumerate(zip(short, long, strict=False)) if x != y), len(short))
    if len(short) == len(long):
        return len(a) >= enough and short[at + 1 :] == long[at + 1 :]
    if short[at:] != long[at + 1 :]:
        return False
    doubled = long[at] == long[at - 1]
    return doubled or len(long) >= enough
