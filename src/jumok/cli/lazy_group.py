"""A group of commands that are imported when they are needed: `jumok translate` does not wait for the others."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from jumok.tasks import resolve


class LazyGroup(click.Group):
    """Commands by name, each given as a reference "module:name". `references` is asked anew each time."""

    def __init__(self, references: Callable[[], Mapping[str, str]], **attributes: Any) -> None:
        super().__init__(no_args_is_help=True, **attributes)
        self._references = references

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._references())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        reference = self._references().get(cmd_name)
        command: click.Command | None = resolve(reference) if reference else None
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The same as click's, but an unknown command is an error that suggests similar ones."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            known = self.list_commands(ctx)
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=known, ctx=ctx) from None
