"""Options by the names that they had: understood for one more release, and not shown by --help."""

from __future__ import annotations

import typer
from typer.core import TyperCommand

from holdfast.utils.terminal import console

NOW = {"--deployed": "--model", "--models": "--retrained", "--target": "--want"}


class WithOldNames(TyperCommand):
    """A command that says what an old name of an option is now, and takes it for that."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        own = {name for option in self.params for name in option.opts}
        known = {old: new for old, new in NOW.items() if new in own and old not in own}
        given = [word.partition("=") for word in args]
        for old in dict.fromkeys(name for name, *_ in given if name in known):
            say_renamed(old, known[old])
        return super().parse_args(ctx, [known.get(name, name) + sign + value for name, sign, value in given])


def say_renamed(old: str, new: str) -> None:
    console(stderr=True).print(f"holdfast: {old} is now {new}; the old name goes in the release after next")


def retrain_of(given: list[str] | None, old: str, kinds: tuple[str, ...]) -> list[str] | None:
    """What --retrain says, or else what the option that it has replaced said."""
    if not kinds:
        return given
    words = " ".join(f"--retrain {kind}" for kind in kinds)
    if given:
        raise ValueError(f"{old} is now --retrain, which is given too; leave {old} out")
    say_renamed(old, words)
    return list(kinds)
