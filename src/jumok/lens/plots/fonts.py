"""Installed fonts that have the letters of a text: matplotlib's own has neither Hangul nor other CJK letters."""

import unicodedata
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, lru_cache

from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

OnMessage = Callable[[str], None]
DEFAULT_FONT = "DejaVu Sans"  # comes with matplotlib
_CJK = ("HANGUL", "CJK", "HIRAGANA", "KATAKANA", "BOPOMOFO")  # how the Unicode names of these letters begin
_CJK_PACKAGES = (
    "fonts-noto-cjk (Debian, Ubuntu), google-noto-sans-cjk-fonts (Fedora), noto-fonts-cjk (Arch) or "
    "font-noto-cjk (Alpine)"
)


class Lettering:
    """The fonts of a figure. Texts whose letters no installed font has are numbered, and `on_message` gets a line that
    lists them and says what to install."""

    def __init__(self, on_message: OnMessage | None = None) -> None:
        self._on_message = on_message or _warn
        self.fonts = [DEFAULT_FONT]  # each is used for the letters that those before it lack

    def labels(self, texts: Sequence[str], what: str) -> list[str]:
        """The texts, or their numbers, counted from 1. `what` names them in the message, such as "source tokens"."""
        found, missing = fonts_for("".join(texts))
        if not missing:
            self.fonts += [font for font in found if font not in self.fonts]
            return list(texts)
        numbered = "  ".join(f"{number} {text}" for number, text in enumerate(texts, 1))
        self._on_message(
            f"No installed font has all letters of the {what}, such as {min(missing)}. {_advice(missing)} "
            f"In this picture they are numbered: {numbered}"
        )
        return [str(number) for number in range(1, len(texts) + 1)]

    def title(self, text: str) -> str:
        """The text, or nothing if no font has its letters."""
        found, missing = fonts_for(text)
        self.fonts += [font for font in found if font not in self.fonts and not missing]
        return "" if missing else text

    def apply(self, figure: Figure) -> Figure:
        """Give every text of a figure these fonts: the figure may be drawn later, when no context is there any more."""
        for text in figure.findobj(Text):
            text.set_fontfamily(self.fonts)
        return figure


def fonts_for(text: str) -> tuple[list[str], set[str]]:
    """Names of installed fonts that together have the letters which the default one lacks, and the letters that none
    has. As few fonts as possible are taken, sans-serif ones first."""
    chosen, missing = _choose_fonts(text)
    if missing and _add_new_fonts():
        chosen, missing = _choose_fonts(text)
    return chosen, missing


def _choose_fonts(text: str) -> tuple[list[str], set[str]]:
    files = _files()
    missing = {letter for letter in text if not letter.isspace()}
    missing -= {letter for letter in missing if ord(letter) in _letters(files[DEFAULT_FONT])}
    chosen: list[str] = []
    while missing:
        by_font = {
            name: {letter for letter in missing if ord(letter) in _letters(file)} for name, file in files.items()
        }
        best = min(by_font, key=lambda name: (-len(by_font[name]), "Sans" not in name, name))
        if not by_font[best]:
            break
        chosen.append(best)
        missing -= by_font[best]
    return chosen, missing


def _files() -> dict[str, str]:
    """Names of installed fonts, and a file of each. The last resort has a box for every letter."""
    entries: Iterable[font_manager.FontEntry] = font_manager.fontManager.ttflist
    return {entry.name: entry.fname for entry in entries if "Last Resort" not in entry.name}


@cache
def _add_new_fonts() -> bool:
    """Whether there are fonts that matplotlib does not know: it keeps a list of fonts between runs, and those installed
    since then are not in it. They are added for this process."""
    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    new = sorted(set(font_manager.findSystemFonts()) - known)
    for file in new:
        with suppress(OSError, RuntimeError):  # a broken font file, or one of bitmaps only
            font_manager.fontManager.addfont(file)
    return bool(new)


@lru_cache(maxsize=1_000)
def _letters(file: str) -> frozenset[int]:
    try:
        return frozenset(FT2Font(file).get_charmap())
    except (OSError, RuntimeError):  # a missing or broken font file is skipped
        return frozenset()


def _advice(missing: Iterable[str]) -> str:
    """Which package brings a font with these letters."""
    if any(unicodedata.name(letter, "").startswith(_CJK) for letter in missing):
        return f"Install a font that has them: {_CJK_PACKAGES}."
    return "Install a font that has them, for example one of the Noto fonts."


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=4)
