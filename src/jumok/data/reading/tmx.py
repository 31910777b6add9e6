"""TMX, the exchange format of translation memories → records. A stream in bounded memory; no entities, no DTD.

Text inside a segment is text, also in `<hi>`. `<ph>` stands for something that a translation must contain too, such as
`{name}` or `<br/>`: its content is kept as it is, and an empty one with `x="1"` becomes `{1}`, the same on both sides.
`<bpt>`, `<ept>`, `<it>` and `<ut>` hold formatting codes, which are left out on both sides, with any `<sub>` in them.
"""

from collections.abc import Iterator
from html.entities import html5
from pathlib import Path
from xml.parsers import expat

from jumok.data.examples import Column, FileLayout
from jumok.data.reading.languages import Languages, language_tag, only_two, same_language
from jumok.data.reading.lines import (
    MAX_LINE_BYTES,
    NO_TEXTS,
    OTHER_LANGUAGES,
    Damage,
    Record,
    Side,
    TooLong,
    display_name,
)
from jumok.data.reading.options import ReadingOptions
from jumok.data.reading.xml_text import restored, xml_chunks
from jumok.errors import InputError

_FORMATTING = frozenset(("bpt", "ept", "it", "ut"))


def tmx_records(path: str | Path, options: ReadingOptions, layout: FileLayout) -> Iterator[Record]:
    """A record for each translation unit: its segments in the two languages. If none are chosen, those of the first
    unit that has two, in any variant (en-US, en-GB). Of several variants in a unit the one that is named exactly is
    taken, or else the first. Unlike ElementTree, expat gives line numbers and lets us refuse declarations."""
    chosen = options.languages or options.columns
    units = _TmxUnits(layout, (chosen[0], chosen[1]) if chosen else None)
    for records in _parsed(path, units, options.encoding):
        yield from records
    for language in units.missing():
        there = sorted(units.found)
        example = f'`languages=("{there[0]}", "{there[1]}")`' if len(there) > 1 else '`languages=("en", "ko")`'
        advice = f" TMX has languages instead of columns; choose two of them: {example}." if options.columns else ""
        raise InputError(
            f'{display_name(path)}: no language "{language}"; there are: {", ".join(there) or "none"}.{advice}'
        )


def _parsed(path: str | Path, units: "_TmxUnits", encoding: str | None) -> Iterator[list[Record]]:
    """The records of a file as they are completed."""
    name, parser = display_name(path), units.parser
    fed = 0
    try:
        for chunk in xml_chunks(path, encoding, units.layout):
            parser.Parse(chunk, False)
            fed += len(chunk)
            if fed - parser.CurrentByteIndex > MAX_LINE_BYTES:  # expat keeps an unfinished tag or comment in memory
                raise InputError(f"{units.here}: a tag or comment of more than {MAX_LINE_BYTES:,} bytes.")
            yield units.take()
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        problem = expat.errors.messages[error.code]
        raise InputError(
            f"{name}:{error.lineno}: not well-formed TMX: {problem}. Correct this place, or export the file again."
        ) from error
    yield units.take()


class _TmxUnits:
    """Collects translation units from expat's events."""

    def __init__(self, layout: FileLayout, languages: Languages | None) -> None:
        self.layout, self._name, self._chosen = layout, layout.file, languages is not None
        self._languages: Languages | None = None
        if languages is not None:
            self._decide(languages)
        self.found: set[str] = set()  # languages of the units so far
        self._finished: list[Record] = []
        self._segments: dict[str, list[str]] = {}  # of the current unit, by language
        self._segment: list[str] | None = None
        self._damages: dict[str, Damage] = {}  # of segments of the current unit, by language
        self._placeholder = ""  # for a <ph> that is empty so far
        self._language = self._header_language = ""
        self._start = self._size = self._formatting_depth = 0
        # The encoding is that of the chunks, whatever the file declares. A foreign DTD makes expat report entities that
        # are not defined instead of giving up.
        parser = self.parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.UseForeignDTD(True)
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.SkippedEntityHandler = self._entity

    @property
    def here(self) -> str:
        """The place that is being parsed."""
        return f"{self._name}:{self.parser.CurrentLineNumber}"

    def take(self) -> list[Record]:
        """The records completed since the last call."""
        finished, self._finished = self._finished, []
        return finished

    def missing(self) -> list[str]:
        """Those of the wanted languages that no unit has had."""
        wanted = self._languages or ()
        return [each for each in wanted if not any(same_language(found, each) for found in self.found)]

    def _doctype(self, _name: str, _system: str | None, _public: str | None, has_internal_subset: bool) -> None:
        # Naming the TMX DTD is usual and harmless, since nothing is fetched. Declarations are where entities come from.
        if has_internal_subset:
            raise InputError(f"{self.here}: the file declares entities or the like, which is unsafe. Remove its DTD.")

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "header":
            self._header_language = attributes.get("srclang", "")
        elif tag == "tu":
            self._start, self._size = self.parser.CurrentLineNumber, 0
            self._segments, self._damages = {}, {}
        elif tag == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif tag == "seg":
            self._segment = []
        elif tag in _FORMATTING:
            self._formatting_depth += 1
        elif tag == "ph":
            self._placeholder = f"{{{attributes.get('x', '')}}}"

    def _text(self, text: str) -> None:
        if self._segment is None or self._formatting_depth:
            return
        self._placeholder = ""
        self._size += len(text)
        if self._size <= MAX_LINE_BYTES:
            self._segment.append(text)

    def _entity(self, name: str, _is_parameter: bool) -> None:
        text = html5.get(f"{name};")  # people write &nbsp; and the like, though XML does not know them
        if text is None and self._segment is not None:
            self._damages[self._language] = Damage(f"entity &{name}; is not defined")
        self._text(text or "")

    def _end(self, tag: str) -> None:
        if tag == "seg" and self._segment is not None:
            self._segments.setdefault(self._language, self._segment)
            self._segment = None
        elif tag in _FORMATTING:
            self._formatting_depth -= 1
        elif tag == "ph":
            self._text(self._placeholder)
        elif tag == "tu":
            self.found.update(language for language in self._segments if language)
            self._finished.append((self._start, *self._sides()))

    def _sides(self) -> tuple[Side, Side]:
        if self._size > MAX_LINE_BYTES:
            return TooLong(), TooLong()
        if self._languages is None and len(self._segments) > 1:
            self._decide(self._two_languages())
        source, target = (self._segment_in(language) for language in self._languages or ("", ""))
        return source, target

    def _decide(self, languages: Languages) -> None:
        self._languages = languages
        sides = zip(("source", "target"), languages, strict=True)
        self.layout.columns = {side: Column(None, name, language_tag(name)) for side, name in sides}

    def _two_languages(self) -> Languages:
        """Source and target, by the order in this unit, which the header must not contradict."""
        where = f"{self._name}:{self._start}"
        source, target = only_two(list(self._segments), where)
        of_header, bases = self._header_language, (_base(source), _base(target))
        if same_language(bases[1], _base(of_header)) and not same_language(*bases):
            raise InputError(
                f'{where}: the header says that the source is "{of_header}", but "{source}" comes first here; say '
                f'which is the source and which the target: `languages=("{of_header}", "{source}")`.'
            )
        return (source, target) if same_language(*bases) else bases

    def _segment_in(self, language: str) -> Side:
        matching = [found for found in self._segments if language and same_language(found, language)]
        if not matching:
            return OTHER_LANGUAGES if self._chosen else NO_TEXTS
        exact = [found for found in matching if same_language(language, found)]
        taken = (exact or matching)[0]
        return self._damages.get(taken) or restored("".join(self._segments[taken]))


def _base(language: str) -> str:
    """A language without its region or script: `en` for `en-US`."""
    return language.replace("_", "-").split("-")[0]
