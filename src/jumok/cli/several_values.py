"""Options that take one value or more: `--valid v.en v.ko`. Click's own options take a fixed number."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

Count = Callable[[Sequence[str], bool], int]
"""How many of the words that follow an option are its values. The words reach to the next option; whether there are
arguments elsewhere on the command line tells if some of the words can be meant as arguments."""


class SeveralValuesCommand(click.Command):
    """A command with options that take several values, wherever they stand among the other arguments."""

    def __init__(self, *arguments: Any, several: Mapping[str, Count], **attributes: Any) -> None:
        """`several`: the options by their names, such as "--valid"; each is declared with `multiple=True`."""
        super().__init__(*arguments, **attributes)
        self.several = several

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat such an option before each of its values."""
        try:
            for option, count in self.several.items():
                args = self._repeated(option, count, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # for the line that shows the usage
            raise
        return super().parse_args(ctx, args)

    def _repeated(self, option: str, count: Count, args: Sequence[str]) -> list[str]:
        """`--valid v.en v.ko` → `--valid=v.en --valid=v.ko`; `--valid v.tsv a.en` → `--valid=v.tsv a.en`."""
        end = args.index("--") if "--" in args else len(args)
        places = [place for place in range(end) if args[place].partition("=")[0] == option]
        if len(places) != 1:  # not given, or repeated by the user already
            return list(args)
        start = places[0]
        _, equals, value = args[start].partition("=")
        stop = start + 1
        while stop < end and not _is_option(args[stop]):
            stop += 1
        words = [*([value] if equals else []), *args[start + 1 : stop]]
        if not words:
            raise click.UsageError(f"Option '{option}' requires an argument.")
        try:
            taken = count(words, self._has_arguments([*args[:start], *args[stop:]]))
        except _UnclearError as error:
            raise click.UsageError(
                f"{option} {' '.join(words)}: it is not clear which of these files belong to {option}. Put {option} "
                f"after all other files{error.alternative}."
            ) from None
        return [*args[:start], *(f"{option}={word}" for word in words[:taken]), *words[taken:], *args[stop:]]

    def _has_arguments(self, args: Sequence[str]) -> bool:
        """Whether there are words that are neither options nor their values."""
        values = {
            name: option.nargs
            for option in self.params
            if isinstance(option, click.Option) and not option.is_flag
            for name in option.opts
        }
        place = 0
        while place < len(args):
            if args[place] == "--":
                return place + 1 < len(args)
            if not _is_option(args[place]):
                return True
            place += 1 + values.get(args[place], 0)
        return False


class _UnclearError(Exception):
    """`alternative`: what can be done instead of moving the option."""

    def __init__(self, alternative: str = "") -> None:
        self.alternative = alternative


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def two_values(words: Sequence[str], _elsewhere: bool) -> int:
    """Two, if there are as many."""
    return min(2, len(words))


def files_with_pairs(words: Sequence[str], _elsewhere: bool) -> int:
    """Files of parallel texts: one that holds both sides, or two text files."""
    from jumok.data.reading.formats import holds_both_sides

    if len(words) < 2 or any(map(holds_both_sides, words[:2])):
        return 1
    if len(words) == 3 and not holds_both_sides(words[2]):
        raise _UnclearError(", or name a file that holds both sides .tsv, .csv, .xlsx, .jsonl or .tmx")
    return 2


def any_files(words: Sequence[str], elsewhere: bool) -> int:
    """All files, if there are others elsewhere. If not, they stand among these: the first of two is the option's."""
    if elsewhere:
        return len(words)
    if len(words) > 2:
        raise _UnclearError(", or repeat it before each of its own")
    return 1


def labelled_files(words: Sequence[str], elsewhere: bool) -> int:
    """Any files; two IDX files, pictures and their labels, belong together."""
    from jumok.data.reading.idx import read_idx_header

    first = [Path(word) for word in words[:2] if os.path.isfile(word)]
    if not elsewhere and len(first) == 2 and all(map(read_idx_header, first)):
        return 2
    return any_files(words, elsewhere)


def columns_of_a_task(words: Sequence[str], _elsewhere: bool) -> int:
    """Columns for a model of any task: two, or one for a language model, if the next word names a file."""
    second_is_column = len(words) > 1 and (len(words) > 2 or not os.path.isfile(words[1]))
    return 2 if second_is_column else 1
