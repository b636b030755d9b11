"""Phrases without a parser: function words begin them, content words end them."""

from __future__ import annotations

from collections.abc import Iterator

from ..scorers.vocabulary import STOP_WORDS, language
from ..units import Units

_MOST = 8  # words: what has no function words (a list of names, Chinese) is cut all the same
_SAMPLE = 4000


def phrases(units: Units) -> Iterator[list[int]]:
    """Yield the indices of the words of each phrase, in order.

    A phrase is a run of function words and the content words after it ("chinks and chunks",
    Liberman & Church 1992), within a sentence; punctuation, and a particle in scripts without
    spaces, end one. The function words are those of the text's language.

    >>> from ..structure import split
    >>> text = split("The committee met in the old town hall, and the mayor spoke.")
    >>> [" ".join(map(text.content, words)) for words in phrases(text)]
    ['The committee met', 'in the old town hall', 'and the mayor spoke']
    """
    contents = [units.content(i).lower() for i in range(len(units.units))]
    stop = STOP_WORDS[language(contents[:_SAMPLE])]
    run: list[int] = []
    has_content = False
    for i, unit in enumerate(units.units):
        is_function = contents[i] in stop
        if run and (
            unit.role != "word"
            or unit.sentence != units.units[run[-1]].sentence
            or (has_content and is_function)
            or units.units[run[-1]].kind == "particle"
            or len(run) >= _MOST
        ):
            yield run
            run, has_content = [], False
        if unit.role == "word":
            run.append(i)
            has_content = has_content or not is_function
    if run:
        yield run
