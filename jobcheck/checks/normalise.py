"""Finding a case's ids in text at token boundaries, and taking ids and times out, so that two cases can be compared.

An id `17` occurs in `inv-17` and `invoice-email:17`, and does not occur in `170`, `a17`, `17.50`, nor inside a
UUID, a time or a long hex that only happens to contain it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_VOLATILE = re.compile(
    r"""
    (?<![0-9A-Za-z])(?:
      (?P<uuid> [0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12} )
    | (?P<time>
          \d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?Z|\s?[+-]\d\d:?\d\d)?
        | (?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),\ )?\d{1,2}\ (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*
          \ \d{4}\ \d\d:\d\d(?::\d\d)?(?:\ (?:GMT|UTC|Z|[+-]\d{4}))?
        | 1\d{9}(?:\.\d+)? | 1\d{12}(?:\.\d+)? | 1\d{15} | 1\d{18} )
    | (?P<ulid> [0-7][0-9A-HJKMNP-TV-Z]{25} )
    | (?P<hex> (?=[0-9]*[a-fA-F])(?=[a-fA-F]*[0-9])[0-9a-fA-F]{16,} )
    | (?P<number> \d{17,20} )
    | (?P<host> (?:127\.0\.0\.1|localhost|\[::1\]):\d+ )
    )(?![0-9A-Za-z])
    """,
    re.VERBOSE,
)
_TOKEN = re.compile(r"[^\W_]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-fA-F]{32}")


@dataclass(frozen=True, slots=True)
class Hit:
    """One occurrence of an id."""

    start: int
    end: int
    owner: str
    """The case's id."""
    name: str
    """The id's name within the case: `invoice`."""
    value: str


class Ids:
    """An index of owned ids. Finding them costs one pass over the text, however many there are."""

    def __init__(self) -> None:
        self._by_token: dict[str, list[tuple[str, int, str, str]]] = {}

    @classmethod
    def of(cls, ids: Mapping[str, str], owner: str = "") -> Ids:
        """The index of one case's ids."""
        index = cls()
        for name, value in ids.items():
            index.add(owner, name, value)
        return index

    def add(self, owner: str, name: str, value: str) -> None:
        """Adds one id; an empty one is ignored. UUIDs are found in any case and without dashes too."""
        for spelling in _spellings(str(value)):
            token = _TOKEN.search(spelling)
            if token is None:
                continue
            entry = (spelling, token.start(), owner, name)
            entries = self._by_token.setdefault(token.group(), [])
            if entry not in entries:
                entries.append(entry)

    def find(self, text: str) -> list[Hit]:
        """Every occurrence, in order; of two that overlap, the longer; for two owners of one text, both."""
        if not self._by_token:
            return []
        hits = []
        for token in _TOKEN.finditer(text):
            for spelling, offset, owner, name in self._by_token.get(token.group(), ()):
                start = token.start() - offset
                if start >= 0 and text.startswith(spelling, start) and _bounded(text, start, spelling):
                    hits.append(Hit(start, start + len(spelling), owner, name, spelling))
        if hits:
            spans = [(match.start(), match.end()) for match in _VOLATILE.finditer(text)]
            hits = [hit for hit in hits if not _inside(hit, spans)]
            covers = [(hit.start, hit.end) for hit in hits]
            hits = [hit for hit in hits if not _inside(hit, covers)]
        return hits


def normalise(text: str, ids: Ids) -> str:
    """The text with `{invoice}` for a case's own id of that name, and `{uuid}`, `{time}`, `{hex}` and the like for
    what differs from run to run anyway."""
    spans = [(hit.start, hit.end, hit.name) for hit in ids.find(text)]
    for match in _VOLATILE.finditer(text):
        if not any(start < match.end() and match.start() < end for start, end, _ in spans):
            spans.append((match.start(), match.end(), str(match.lastgroup)))
    out, at = [], 0
    for start, end, name in sorted(spans):
        if start >= at:
            out += [text[at:start], "{", name, "}"]
            at = end
    out.append(text[at:])
    return "".join(out)


def shorten(text: str, limit: int = 120) -> str:
    """One line of at most `limit` characters, for sentences; cut in the end only."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def owned(ids: Iterable[tuple[str, Mapping[str, str]]]) -> Ids:
    """The index of many cases' ids, given as `(case id, ids by name)`."""
    index = Ids()
    for owner, named in ids:
        for name, value in named.items():
            index.add(owner, name, value)
    return index


def _spellings(value: str) -> list[str]:
    value = value.strip()
    if not value:
        return []
    if not _UUID.fullmatch(value):
        return [value]
    plain = value.replace("-", "").lower()
    dashed = f"{plain[:8]}-{plain[8:12]}-{plain[12:16]}-{plain[16:20]}-{plain[20:]}"
    return list(dict.fromkeys([value, dashed, dashed.upper(), plain, plain.upper()]))


def _bounded(text: str, start: int, spelling: str) -> bool:
    """Whether no letter or digit touches the id at its ends, and it is not a part of a decimal number."""
    end = start + len(spelling)
    if spelling[0].isalnum() and start > 0 and text[start - 1].isalnum():
        return False
    if spelling[-1].isalnum() and end < len(text) and text[end].isalnum():
        return False
    if not spelling.isdigit():
        return True
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    return not (
        (len(after) == 2 and after[0] == "." and after[1].isdigit())
        or (len(before) == 2 and before[1] == "." and before[0].isdigit())
    )


def _inside(hit: Hit, spans: list[tuple[int, int]]) -> bool:
    """Whether a span holds the hit and is longer than it."""
    size = hit.end - hit.start
    return any(start <= hit.start and hit.end <= end and end - start > size for start, end in spans)
