"""What every verb knows: where the server is, whose key to use, and whether to print JSON."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from cli import output
from cli.api import Api, Problem, Unreachable, run_with

T = TypeVar("T")
ADMIN_KEY_FILE = "admin.key"
START_ONE = "start one with `make up` or `pointsman up`, or name another with --url"


@dataclass(frozen=True, slots=True)
class Session:
    """The options that stand before the verb."""

    url: str
    key: str
    data: Path

    def api(self) -> Api:
        """A client with the key that was given, or the one that the server wrote into its data directory."""
        key = self.key
        file = self.data / ADMIN_KEY_FILE
        if not key and file.is_file():
            try:
                key = file.read_text(encoding="utf-8").strip()
            except OSError as error:
                output.fail(f"{file} cannot be read: {error.strerror}", output.WRONG_USE, "give a key with --key")
        return Api(self.url, key)

    def do(self, work: Callable[[Api], Coroutine[Any, Any, T]], *, if_away: str = START_ONE) -> T:
        """Run one piece of work against the server; problems end the command with their words and exit code.

        `if_away` is the next step where no server answers.
        """
        api = self.api()
        try:
            return run_with(api, work(api))
        except Problem as problem:
            output.fail_with_problem(problem)
        except Unreachable as error:
            output.fail(str(error), output.NO_SERVER, if_away)


pass_session = click.make_pass_decorator(Session)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
