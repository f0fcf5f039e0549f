"""`oakledger completion`: the script that makes a shell complete commands, options and campaigns."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

#: The variable by which the shell's script asks the program.
VARIABLE = "_OAKLEDGER_COMPLETE"

#: Where each shell reads it from.
HOW = {
    "bash": 'eval "$(oakledger completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(oakledger completion zsh)"    # in ~/.zshrc',
    "fish": "oakledger completion fish > ~/.config/fish/completions/oakledger.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(sorted(HOW)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a SHELL.

    \b
    bash:  eval "$(oakledger completion bash)"   in ~/.bashrc
    zsh:   eval "$(oakledger completion zsh)"    in ~/.zshrc
    fish:  oakledger completion fish > ~/.config/fish/completions/oakledger.fish

    Example: oakledger completion bash
    """
    found = get_completion_class(shell)
    assert found is not None
    complete = found(ctx.find_root().command, {}, "oakledger", VARIABLE)
    # The template alone: `source` would run a bash to look at its version, wherever this one is piped to.
    click.echo(complete.source_template % complete.source_vars())
