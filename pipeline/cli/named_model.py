"""The model that options name, for every command that asks one."""

import math
import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pipeline.models.structured import ChosenModel
    from pipeline.settings import Settings


def named_model(
    settings: "Settings", model: str, provider: str, base_url: str, max_cost: float | None
) -> "ChosenModel":
    """The model to ask, with its key from the environment; who is asked where is told.

    Raises:
        click.UsageError: there is no such provider, or a server has no model named.
        click.BadParameter: the limit is no amount.
        SettingsError: there is no key, or the base URL is none that a key may be sent to.
        InputError: a limit of cost cannot be held for want of a price.
    """
    from pipeline.errors import InputError
    from pipeline.models.asking import refuse_unknown_price
    from pipeline.models.structured import choose_model

    if max_cost is not None and not math.isfinite(max_cost):
        raise click.BadParameter(f"{max_cost} is no amount.", param_hint="--max-cost")
    if base_url and not model:
        raise click.UsageError("A server at `--base-url` needs the name of a model; give it with `--model`.")
    try:
        chosen = choose_model(
            os.environ,
            model=model,
            provider=provider,
            base_url=base_url,
            base_urls=settings.base_urls,
            openai_api=settings.openai_api,
        )
    except InputError as error:
        raise click.UsageError(str(error)) from error
    refuse_unknown_price(chosen, settings.prices, max_cost)
    click.echo(f"Asking {chosen.model} at {chosen.endpoint.base_url}.", err=True)
    return chosen
