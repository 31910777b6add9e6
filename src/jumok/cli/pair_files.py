"""--valid and --probe of parallel texts: one file that holds both sides, or two text files."""

from collections.abc import Sequence

import click

_OPTIONS = ("--valid", "--probe")


class PairFilesCommand(click.Command):
    """A command whose --valid or --probe takes one file or two, wherever it stands among the other arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option before a second file, because click's options take a fixed number of values."""
        try:
            return super().parse_args(ctx, _with_repeated_option(args))
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # for the line that shows the usage
            raise


def _with_repeated_option(args: Sequence[str]) -> list[str]:
    """`--valid v.en v.ko` → `--valid=v.en --valid=v.ko`; `--valid v.tsv a.en` → `--valid=v.tsv a.en`."""
    if sum(arg.partition("=")[0] in _OPTIONS for arg in args) > 1:  # repeated by the user already
        return list(args)
    rewritten: list[str] = []
    rest = list(args)
    while rest and rest[0] != "--":
        option, equals, value = rest.pop(0).partition("=")
        if option not in _OPTIONS:
            rewritten.append(option + equals + value)
            continue
        words = [value] if equals else []
        while rest and (not rest[0].startswith("-") or rest[0] == "-"):
            words.append(rest.pop(0))
        if not words:
            raise click.UsageError(f"Option '{option}' requires an argument.")
        taken = _number_of_files(option, words)
        rewritten += [f"{option}={word}" for word in words[:taken]]
        rewritten += words[taken:]
    return rewritten + rest


def _number_of_files(option: str, words: Sequence[str]) -> int:
    """How many of the words after the option belong to it: a file with both sides is one, text files come in twos."""
    from jumok.data.reading.formats import holds_both_sides

    if len(words) < 2 or any(map(holds_both_sides, words[:2])):
        return 1
    if len(words) == 3 and not holds_both_sides(words[2]):
        raise click.UsageError(
            f"{option} {' '.join(words)}: it is not clear which of these files belong to {option}. Put {option} after "
            f"all other files, or name a file that holds both sides .tsv, .csv, .xlsx, .jsonl or .tmx."
        )
    return 2
