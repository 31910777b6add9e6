"""TMX, the exchange format of translation memories → records. A stream in bounded memory; no entities, no DTD."""

from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from jumok.data.reading.languages import Languages, only_two, same_language
from jumok.data.reading.lines import MAX_LINE_BYTES, NO_TEXTS, Record, Side, TooLong, byte_chunks, display_name
from jumok.errors import InputError


def tmx_records(path: str | Path, languages: Languages | None) -> Iterator[Record]:
    """A record for each translation unit: its first segment in each of the two languages. Without `languages`, those of
    the first unit that has two. Unlike ElementTree, expat gives line numbers and lets us refuse declarations."""
    parser = expat.ParserCreate()
    units = _TmxUnits(parser, display_name(path), languages)
    fed = 0
    try:
        for chunk in byte_chunks(path):
            parser.Parse(chunk, False)
            fed += len(chunk)
            if fed - parser.CurrentByteIndex > MAX_LINE_BYTES:  # expat keeps an unfinished tag or comment in memory
                raise InputError(f"{units.here}: a tag or comment of more than {MAX_LINE_BYTES:,} bytes.")
            yield from units.take()
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        problem = expat.errors.messages[error.code]
        raise InputError(f"{display_name(path)}:{error.lineno}: not well-formed TMX: {problem}.") from error
    yield from units.take()


class _TmxUnits:
    """Collects translation units from expat's events. The content of code elements is markup, not text."""

    _CODE = frozenset(("bpt", "ept", "ph", "it", "ut"))

    def __init__(self, parser: expat.XMLParserType, name: str, languages: Languages | None) -> None:
        self._parser, self._name, self._languages = parser, name, languages
        self._finished: list[Record] = []
        self._segments: dict[str, list[str]] = {}  # of the current unit, by language
        self._segment: list[str] | None = None
        self._language = ""
        self._start = self._size = self._code_depth = 0
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text

    @property
    def here(self) -> str:
        return f"{self._name}:{self._parser.CurrentLineNumber}"

    def take(self) -> list[Record]:
        """The records completed since the last call."""
        finished, self._finished = self._finished, []
        return finished

    def _doctype(self, _name: str, _system: str | None, _public: str | None, has_internal_subset: bool) -> None:
        # Naming the TMX DTD is usual and harmless, since nothing is fetched. Declarations are where entities come from.
        if has_internal_subset:
            raise InputError(f"{self.here}: the file declares entities or the like, which is unsafe. Remove its DTD.")

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "tu":
            self._start, self._size, self._segments = self._parser.CurrentLineNumber, 0, {}
        elif tag == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif tag == "seg":
            self._segment = []
        elif tag in self._CODE:
            self._code_depth += 1

    def _text(self, text: str) -> None:
        if self._segment is None or self._code_depth:
            return
        self._size += len(text)
        if self._size <= MAX_LINE_BYTES:
            self._segment.append(text)

    def _end(self, tag: str) -> None:
        if tag == "seg" and self._segment is not None:
            self._segments.setdefault(self._language, self._segment)
            self._segment = None
        elif tag in self._CODE:
            self._code_depth -= 1
        elif tag == "tu":
            self._finished.append((self._start, *self._sides()))
            self._segments = {}

    def _sides(self) -> tuple[Side, Side]:
        if self._size > MAX_LINE_BYTES:
            return TooLong(), TooLong()
        if self._languages is None and len(self._segments) > 1:
            self._languages = only_two(list(self._segments), f"{self._name}:{self._start}")
        source, target = (self._segment_in(language) for language in self._languages or ("", ""))
        return source, target

    def _segment_in(self, language: str) -> Side:
        for found, segment in self._segments.items():
            if language and same_language(found, language):
                return "".join(segment)
        return NO_TEXTS
