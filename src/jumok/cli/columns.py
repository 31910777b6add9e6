"""--columns of commands for models of any task: as many values as the task has columns."""

import os
from collections.abc import Sequence

import click


class ColumnsCommand(click.Command):
    """A command for models of any task: its --columns takes two values, or one for a language model."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat --columns before a second column, because click's options take a fixed number of values."""
        rewritten: list[str] = []
        rest = list(args)
        while rest:
            word = rest.pop(0)
            rewritten.append(word)
            if word == "--columns" and rest:
                rewritten.append(rest.pop(0))
                if rest and not rest[0].startswith("-") and (not os.path.isfile(rest[0]) or _is_word(rest[1:2])):
                    rewritten += ["--columns", rest.pop(0)]
        return super().parse_args(ctx, rewritten)


def _is_word(words: Sequence[str]) -> bool:
    return bool(words) and not words[0].startswith("-")
