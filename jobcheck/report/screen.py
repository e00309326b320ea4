"""What a terminal can show: symbols with an ASCII stand-in, texts that are cut to a width, colours by verdict."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from .text import clean, tone

STYLES = {"good": "green", "bad": "bold red", "unsure": "yellow"}

_SYMBOLS = {
    "good": ("✓", "+"),
    "bad": ("✗", "x"),
    "unsure": ("?", "?"),
    "out": ("→", "->"),
    "in": ("←", "<-"),
    "strike": ("✗", "X"),
    "recovery": ("↻", "~"),
    "delivery": ("⇣", ">>"),
    "effect": ("●", "*"),
    "note": ("·", "-"),
    "cut": ("…", "..."),
    "line": ("─", "-"),
}


class Screen:
    """Writes lines to a rich console: safe characters, never markup, never more than its encoding can hold."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.width = min(120, max(40, console.width))
        """Columns that texts use; longer lines than these are hard to read."""
        self._ascii = not console.encoding.lower().startswith("utf")

    def symbol(self, name: str) -> str:
        """The symbol for a tone, a way or a kind of story line; a dot for what is unknown."""
        return _SYMBOLS.get(name, _SYMBOLS["note"])[self._ascii]

    def mark(self, verdict: str) -> Text:
        """The verdict's symbol in its colour."""
        return Text(self.symbol(tone(verdict)), STYLES[tone(verdict)])

    def safe(self, text: str) -> str:
        """`text` without control characters and without what the console cannot encode."""
        text = clean(text)
        if self._ascii:
            text = text.encode(self.console.encoding, "backslashreplace").decode(self.console.encoding)
        return text

    def cut(self, text: str, width: int) -> str:
        """`text`, made safe, in at most `width` columns."""
        text = self.safe(text)
        if cell_len(text) <= width:
            return text
        dots = self.symbol("cut")
        while text and cell_len(text) > width - len(dots):
            text = text[: max(0, min(len(text) - 1, width - len(dots)))]
        return text + dots

    def line(self, text: Text | str = "") -> None:
        """One line, wrapped at words where it is too long."""
        self.console.print(text, markup=False, highlight=False, emoji=False)

    def whole(self, text: Text | str) -> None:
        """One line that is never broken, so that it can be copied: a command, a path."""
        self.console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)

    def hanging(self, head: Text, body: str, style: str = "") -> None:
        """`body` beside `head`, its further lines indented as far as the head is wide."""
        indent = head.cell_len
        lines = Text(self.safe(body), style).wrap(self.console, max(20, self.width - indent))
        for number, part in enumerate(lines):
            part.rstrip()
            self.line((head if number == 0 else Text(" " * indent)).copy().append_text(part))
