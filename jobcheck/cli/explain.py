"""`jobcheck explain`: what a kind of finding means, with code before and after."""

from __future__ import annotations

from pathlib import Path

import click

from ..config import nearest
from ..errors import EXIT_OK, UsageError

PAGE = "my-test-is-red.md"


@click.command("explain")
@click.argument("word", required=False)
def command(word: str | None) -> int:
    """What a finding means and how it is mended: `jobcheck explain duplicated`.

    WORD is a verdict or a layer, as reports have it. Without it, the words there are.
    """
    from .screens import out

    sections = read_sections(page().read_text("utf-8"))
    if word is None:
        out().print("\n".join(f"jobcheck explain {name}" for name in map(_quoted, sections)), highlight=False)
        return EXIT_OK
    if word not in sections:
        raise UsageError(f"no section {word!r}; there are {', '.join(sections)}", hint=nearest(word, sections))
    out().print(sections[word], markup=False, highlight=False, soft_wrap=True)
    return EXIT_OK


def page() -> Path:
    """The page: beside the package in a clone, inside it in an installed wheel. Raises UsageError."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_docs", package.parent / "docs"):
        if (path := folder / PAGE).is_file():
            return path
    raise UsageError(f"the page {PAGE} is not installed", hint="reinstall jobcheck, or run from a clone")


def read_sections(text: str) -> dict[str, str]:
    """The sections of the page by their headings, without them."""
    sections: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("## "):
            name = line[3:].strip()
            sections[name] = []
        elif name:
            sections[name].append(line)
    return {name: "\n".join(lines).strip() for name, lines in sections.items()}


def _quoted(name: str) -> str:
    return f"'{name}'" if " " in name else name
