"""Files → sentence pairs. Pairs that cannot be used are counted by reason, with file:line; pairs never shift."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from jumok.data.examples import Example, FileLayout, Paths, Rejections
from jumok.data.reading.formats import holds_both_sides, read_single_file
from jumok.data.reading.lines import (
    EMPTY,
    NO_TEXTS,
    NOT_UNICODE,
    OTHER_LANGUAGES,
    STANDARD_INPUT,
    Damage,
    Record,
    Side,
    byte_lines,
    display_name,
    is_not_meant,
    text_of,
)
from jumok.data.reading.options import DEFAULT, ReadingOptions
from jumok.data.reading.tables import text_lines
from jumok.errors import InputError, counted


class UnequalLengthError(InputError):
    """Two files that should be aligned have different numbers of lines."""

    def __init__(self, names: tuple[str, str], lines: tuple[int, int], unpartnered: str = "") -> None:
        look = f"Look around {unpartnered}: it seems to be the first line without a partner."
        advice = look if unpartnered else "`jumok check` with both files finds where they diverge."
        super().__init__(
            f"{names[0]} has {counted(lines[0], 'line')} but {names[1]} has {lines[1]:,}; line n of one must be the "
            f"translation of line n of the other. {advice}"
        )
        self.lines = lines


def read_pairs(
    paths: Paths,
    rejections: Rejections,
    *,
    options: ReadingOptions = DEFAULT,
    on_record: Callable[[int, Side, Side, str | Damage, str | Damage], None] | None = None,
) -> Iterator[Example]:
    """The usable pairs of two aligned text files, or of one table (TSV, CSV, XLSX), JSONL or TMX file, in their order.

    Files may be compressed (.gz, .xz, .zst); `-` is standard input. How each file was read is added to the layouts of
    the rejections. `on_record` is called with every record, usable or not: its line, both sides as they are in the
    file, and as texts. Raises InputError when files cannot be read, have unequal lengths, or hold no usable pair at
    all; the last two are known only at the end, after pairs were returned.
    """
    if len(paths) == 2:  # they hold one language each: there is nothing to choose
        options = replace(options, languages=None, columns=())
    records = read_records(paths, options, rejections)
    source_name, target_name = names_of(paths)
    rejected_before = rejections.total
    any_accepted = False
    for number, left, right in records:
        source, target = text_of(left), text_of(right)
        if on_record is not None:
            on_record(number, left, right, source, target)
        rejections.not_meant += is_not_meant(source, target)
        if isinstance(source, Damage):
            rejections.add(source.reason, f"{source_name}:{number}")
        elif isinstance(target, Damage):
            rejections.add(target.reason, f"{target_name}:{number}")
        else:
            any_accepted = True
            yield Example((source, target), f"{source_name}:{number}")
    if not any_accepted:
        left_out = rejections.total > rejected_before
        why = f"every line was left out:\n{rejections.render()}" if left_out else "there are no lines."
        hint = "" if len(paths) == 2 else "\nGive two text files, or one table, JSONL or TMX file with both sides."
        if NO_TEXTS.reason in why:  # in JSON and TMX, texts have names
            hint += '\nIf its texts are under the names of languages, give two of them: `languages=("en", "ko")`.'
        if NOT_UNICODE.reason in why:
            hint += '\nIf it is text in another encoding, say which, for example: `encoding="cp1252"`.'
        raise InputError(f"{' and '.join(map(display_name, paths))}: no pair of sentences; {why}{hint}")


def aligned_texts(
    paths: Paths, options: ReadingOptions = DEFAULT, rejections: Rejections | None = None
) -> Iterator[tuple[str, str]]:
    """Both sides of every pair in the languages chosen. Empty sides are kept; a line without text is an InputError. How
    each file was read is added to the layouts of the rejections."""
    names = names_of(paths)
    for number, *sides in read_records(paths, options, rejections):
        if OTHER_LANGUAGES in sides:
            continue
        texts = ["" if text is EMPTY else text for text in map(text_of, sides)]
        for name, text in zip(names, texts, strict=True):
            if isinstance(text, Damage):
                raise InputError(f"{name}:{number}: {text.reason}. Correct or remove this line on both sides.")
        yield str(texts[0]), str(texts[1])


def read_lines(
    path: str | Path,
    on_damage: Callable[[str, Damage, Side], str | None] | None = None,
    encoding: str | None = None,
) -> Iterator[str | None]:
    """Every line of a text file, including empty ones. A line that is not text is an InputError: none is dropped.
    With `on_damage`, what it returns takes the place of such a line: it gets file:line, the damage and the bytes."""
    for number, line in enumerate(byte_lines(path, encoding), 1):
        text = text_of(line)
        if text is EMPTY and isinstance(line, bytes):
            yield line.decode()
        elif isinstance(text, Damage):
            where = f"{display_name(path)}:{number}"
            if on_damage is None:
                raise InputError(f"{where}: {text.reason}. Correct or remove this line.")
            yield on_damage(where, text, line)
        else:
            yield text


def names_of(paths: Paths) -> tuple[str, str]:
    """The names of the source's and the target's file in messages."""
    return display_name(paths[0]), display_name(paths[-1])


def read_records(
    paths: Paths, options: ReadingOptions = DEFAULT, rejections: Rejections | None = None
) -> Iterator[Record]:
    """Line number, source and target of every record, neither decoded nor checked. How each file was read is added to
    the layouts of the rejections."""
    rejections = rejections or Rejections()
    if len(paths) == 1:
        return read_single_file(paths[0], options, rejections)
    if len(paths) != 2:
        raise InputError(f"a corpus is one or two files, not {len(paths)}.")
    if all(str(path) == STANDARD_INPUT for path in paths):
        raise InputError("standard input can be one side only; for both, send TSV and give `-` once.")
    for path in paths:
        if holds_both_sides(path):
            raise InputError(f"{path} holds both sides by itself; give it alone, or give two plain text files.")
    if options.languages or options.columns:
        what = "languages" if options.languages else "columns"
        raise InputError(
            f"{paths[0]}, {paths[1]}: {what} can be chosen only in a file that names them, not in two text files."
        )
    layouts = [FileLayout(display_name(path)) for path in paths]
    rejections.layouts += layouts
    sides = [text_lines(path, options, layout) for path, layout in zip(paths, layouts, strict=True)]
    return _aligned(paths, *sides)


def _aligned(paths: Paths, sources: Iterator[bytes | Damage], targets: Iterator[bytes | Damage]) -> Iterator[Record]:
    for number, (source, target) in enumerate(zip_longest(sources, targets), 1):
        if source is None or target is None:
            shorter, longer = number - 1, number + sum(1 for _ in (targets if source is None else sources))
            lines = (shorter, longer) if source is None else (longer, shorter)
            raise UnequalLengthError(names_of(paths), lines)
        yield number, source, target
