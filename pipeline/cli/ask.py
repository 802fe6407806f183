"""The command `citejury pipeline ask`."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli import options as cli
from pipeline.core.terminal import SIGNAL_EXITS, ProgressBars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.asking.questions import Call, Limits, ProviderSelection, Questions
    from pipeline.asking.run_folder import RunManifest
    from pipeline.asking.run_state import LastStart
    from pipeline.core.prompts import Prompts
    from pipeline.core.schema import ProviderName
    from pipeline.settings import Settings

_SECONDS: dict[str, Any] = {"type": click.IntRange(1, 86_400), "metavar": "SECONDS", "show_default": True}


class _CallBars(ProgressBars):
    """A bar for each provider."""

    def __init__(self) -> None:
        super().__init__("calls", remaining=True)
        self.done: Counter[str] = Counter()
        self.waits: dict[str, Callable[[float], None]] = {}

    def settle(self, call: "Call", total: int) -> None:
        self.done[call.provider] += 1
        self.report(call.provider, self.done[call.provider], total, "")

    def wait(self, provider: str, seconds: float) -> None:
        """Show that a provider's limit is waited for; where nothing is drawn, once in five minutes."""
        from pipeline.providers.http.client import waiting

        if self.console.is_terminal:
            self.report(provider, words=f"waits {max(1.0, seconds):.0f} s for its rate limit")
        else:
            self.waits.setdefault(provider, waiting(lambda words: self.tell(f"{provider}: {words}")))(seconds)


def _end_run(
    manifest: "RunManifest", out: Path, allowed: int, strict: bool = False, changed: "Sequence[str]" = ()
) -> None:
    from pipeline.asking.run import missing_rows

    _print_summary(manifest, out)
    last = (manifest.last and manifest.last.missing) or {}
    missing = manifest.unsettled + sum(sum(kinds.values()) for kinds in last.values())
    rows = missing_rows(manifest, out)
    if rows:
        cli.log("\n".join(["Not answered, with what was said first:", *rows]))
    if changed:
        shown = ", ".join([*changed[:5], *(["…"] if len(changed) > 5 else [])])
        cli.log(
            f"Stored payloads that have changed since their answers were kept: {len(changed)} ({shown}). The answers "
            "stay as they are; to read the payloads as they are now, name another `--out`."
        )
    if manifest.stopped:
        whys = {"max_cost": "`--max-cost` lets no more be sent", "batch": "no batch is waited for any longer"}
        why = whys.get(manifest.stopped, f"stopped by {manifest.stopped}")
        how = "with a higher `--max-cost`" if manifest.stopped == "max_cost" else "again"
        if manifest.last and manifest.last.priceless:
            from pipeline.providers.cost import price_tables

            tables = price_tables(sorted({model for each in manifest.last.priceless.values() for model in each}))
            why, how = "`--max-cost` cannot be held without a price", f"with {tables} in `citejury.toml`"
        cli.tell_next(f"the same command {how} goes on", f"{why}: {manifest.unsettled} calls are left.")
        if manifest.stopped in SIGNAL_EXITS:
            raise click.exceptions.Exit(SIGNAL_EXITS[manifest.stopped])
    else:
        following = f"citejury pipeline sources {click.format_filename(out)} --out records.jsonl"
        bad = (manifest.last and manifest.last.unreadable) or 0
        which = f"{missing - bad or 'none'} of the {missing} missing again, with `--retry bad_response` for all"
        again = f"the same command asks for {which if bad else f'the {missing} missing again'}; without them: "
        cli.tell_next(f"{again if missing > allowed else ''}{following}")
    if missing > allowed or (strict and changed):
        raise click.exceptions.Exit(1)


def _print_summary(manifest: "RunManifest", out: Path) -> None:
    for provider, counts in manifest.providers.items():
        cut = "".join(f", {count} ended with {reason!r}" for reason, count in counts.cut_short.items())
        tokens = f", {counts.input_tokens:,} tokens in, {counts.output_tokens:,} out" if counts.input_tokens else ""
        replies = counts.answers + counts.bad_replies + counts.paused_bodies
        priced = f", cost {counts.cost:.4f} USD" if counts.unpriced < replies else ""
        billed = counts.input_tokens or counts.bad_replies
        unknown = f", cost of {counts.unpriced} not known" if counts.unpriced and billed else ""
        bad = f", {counts.bad_replies} unreadable but paid for" if counts.bad_replies else ""
        bad += f", {counts.paused_bodies} of paused turns paid for" if counts.paused_bodies else ""
        line = f"{provider}: {counts.answers} answers, {counts.citations} citations{bad}{tokens}{priced}{unknown}{cut}"
        cli.log(fill(line, 80, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))
    cli.log_unread({name: counts.unread for name, counts in manifest.providers.items()})
    if manifest.errors:
        kinds = ", ".join(f"{count} {kind}" for kind, count in manifest.errors.items())
        cli.log(f"not answered: {kinds} (see errors.jsonl)")
    if manifest.last:
        _print_last_start(manifest.last, manifest)


def _print_last_start(last: "LastStart", manifest: "RunManifest") -> None:
    from pipeline.asking.paid_replies import BAD_RESPONSES

    if last.unreadable:
        cli.log(
            f"bad_response: replies that came and cannot be read are paid for, kept in {BAD_RESPONSES} and not asked "
            "for again unless with `--retry bad_response`"
        )
    # Nobody is paid for a stored payload.
    unpriced = sum(each.unpriced for each in manifest.providers.values()) if manifest.options else 0
    new = f", {last.unpriced} of them new" if 0 < last.unpriced < unpriced else ""
    unknown = f", cost of {unpriced} not known{new}" if unpriced else ""
    unread = f", {last.unread} unread" if last.unread else ""
    cli.log(
        f"{last.kept} kept, {last.new} new, {last.failed} failed{unread}, spent now {last.cost:.2f} USD "
        f"({manifest.cost:.2f} in all){unknown}"
    )


def _chosen_providers(ctx: click.Context, param: click.Parameter, names: str | None) -> "list[ProviderName] | None":
    from pipeline.core.schema import PROVIDERS

    if names is None:
        return None
    chosen = {_provider(name) for name in names.split(",") if name.strip()}
    if not chosen:
        raise click.BadParameter("it names no provider.")
    return [provider for provider in PROVIDERS if provider in chosen]


def _chosen_models(ctx: click.Context, param: click.Parameter, options: tuple[str, ...]) -> "dict[ProviderName, str]":
    models = {}
    for option in options:
        name, _, model = option.partition("=")
        if not name.strip() or not model.strip():
            raise click.BadParameter(f"{option!r} is not PROVIDER=NAME.")
        models[_provider(name)] = model.strip()
    return models


def _provider(name: str) -> "ProviderName":
    from pipeline.core.errors import InputError
    from pipeline.providers import provider_name

    try:
        return provider_name(name)
    except InputError as error:
        raise click.BadParameter(str(error)) from error


def _check_together(given: Mapping[str, Any]) -> None:
    if given["replay"] and (given["batch"] or given["batch_cancel"]):
        raise click.UsageError("Stored payloads are not asked for in batches; leave out `--batch…` or `--replay`.")
    if given["show_bodies"] and not given["dry_run"]:
        raise click.UsageError("`--show-bodies` shows more of `--dry-run`; give that too.")
    if given["replay"] and given["dry_run"]:
        raise click.UsageError("`--dry-run` shows what would be sent, and with `--replay` nothing is; leave one out.")


@click.command(
    cls=cli.SectionedCommand,
    check=_check_together,
    rare="--id-column --text-column --encoding --sheet --concurrency --attempts --timeout --read-timeout --retry "
    "--compress --patience --allow-missing --allow-domain --block-domain --country --recency --max-uses "
    "--temperature --max-tokens --poll-seconds --batch-cancel",
)
@click.argument("narratives", type=cli.PATH)
@click.option("--out", required=True, type=cli.PATH, metavar="RUN", help="Run folder to write to.")
@click.option(
    "--providers",
    "chosen",
    metavar="A,B",
    callback=_chosen_providers,
    help="Whom to ask.  [default: those whose key is set, or with payloads]",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="PROVIDER=NAME",
    callback=_chosen_models,
    help="Model to ask for; may be repeated.",
)
@click.option("--arm", "arms", multiple=True, metavar="NAME:FILE", help="Ask as FILE says as well; may be repeated.")
@click.option("--system-prompt", type=cli.PATH, metavar="FILE", help="What the models are told.")
@click.option("--user-template", type=cli.PATH, metavar="FILE", help="The question, {note_text} in it.")
@click.option("--id-column", default="narrative_id", show_default=True, help="Column of the narratives' ids.")
@click.option("--text-column", help="Column of their texts.  [default: prompt, else narrative_prompt]")
@click.option("--encoding", default="", metavar="NAME", help="What NARRATIVES is in, where neither UTF-8 nor UTF-16.")
@click.option("--sheet", default="", metavar="NAME", help="Sheet of an .xlsx file.  [default: the first shown]")
@click.option("--yes", is_flag=True, help="Ask doubtful rows too, without a question.")
@click.option("--max-rows", type=click.IntRange(min=1), metavar="N", help="Ask only the first N narratives.")
@click.option("--repeats", type=click.IntRange(1, 100), default=1, show_default=True, help="How often to ask each.")
@click.option("--concurrency", type=click.IntRange(1, 500), default=4, show_default=True, help="Calls at once, each.")
@click.option("--attempts", type=click.IntRange(1, 3), default=2, show_default=True, help="Requests a call may take.")
@click.option("--timeout", default=600, **_SECONDS, help="Longest a call may take in all.")
@click.option("--read-timeout", default=300, **_SECONDS, help="Longest silence of a provider.")
@click.option("--patience", default=900, **_SECONDS, help="Longest wait for a rate limit without any answer.")
@click.option("--retry", type=click.Choice(["bad_response"]), help="Ask again where a paid reply cannot be read.")
@click.option("--max-cost", type=click.FloatRange(min=0, min_open=True), help="Start no call once so much is spent.")
@click.option("--batch", is_flag=True, help="Ask in batches: within a day, for about half the price.")
@click.option("--dry-run", is_flag=True, help="Show what would be asked, how long and for how much; ask nobody.")
@click.option("--show-bodies", is_flag=True, help="With --dry-run: a request a provider and arm too, as JSON.")
@click.option("--compress", is_flag=True, help="Keep the answers under zstd, in PROVIDER.csv.zst.")
@click.option(
    "--allow-missing", type=click.IntRange(0), default=0, metavar="N", help="Exit 0 with up to N calls missing."
)
@click.option("--strict", is_flag=True, help="Exit code 1 also where a stored payload has changed.")
@click.option("--replay", type=cli.PATH, metavar="DIR", help="Answer from stored payloads instead.")
@click.option("--allow-domain", "allowed_domains", multiple=True, metavar="HOST", help="Search this site only.")
@click.option("--block-domain", "blocked_domains", multiple=True, metavar="HOST", help="Never search this site.")
@click.option("--country", default="", metavar="CODE", help="Where the user is, such as JP (ISO 3166).")
@click.option("--recency", default="", metavar="AGE", help="Oldest pages: day, week, month or year.")
@click.option("--max-uses", type=click.IntRange(min=1), metavar="N", help="Searches an answer may take.")
@click.option("--temperature", type=click.FloatRange(0, 2), help="Sampling temperature, where the model takes one.")
@click.option("--max-tokens", type=click.IntRange(min=1), default=4096, show_default=True, help="Longest answer.")
@click.option("--poll-seconds", type=click.FloatRange(0.1, 3600), default=60, show_default=True, help="Between looks.")
@click.option("--batch-cancel", is_flag=True, help="End the batches of RUN, and keep what they have answered.")
def ask(
    narratives: Path,
    out: Path,
    chosen: "list[ProviderName] | None",
    models: "dict[ProviderName, str]",
    arms: tuple[str, ...],
    system_prompt: Path | None,
    user_template: Path | None,
    id_column: str,
    text_column: str | None,
    encoding: str,
    sheet: str,
    yes: bool,
    max_rows: int | None,
    repeats: int,
    concurrency: int,
    attempts: int,
    timeout: int,
    read_timeout: int,
    patience: int,
    retry: str | None,
    max_cost: float | None,
    batch: bool,
    dry_run: bool,
    show_bodies: bool,
    compress: bool,
    allow_missing: int,
    strict: bool,
    replay: Path | None,
    poll_seconds: float,
    batch_cancel: bool,
    **options: Any,
) -> None:
    """Put the narratives of a file to the providers, and keep their answers in the folder RUN.

    NARRATIVES is a CSV file as any spreadsheet writes it, or an .xlsx file. Keys come from {keys}. RUN holds one CSV v2
    a provider, errors.jsonl, citations.jsonl and manifest.json. Stopped at any moment and started again with the same
    command, it goes on where it was; so it does with narratives appended, another provider or more repeats. A reply
    that was paid for and cannot be read is kept in bad_responses.jsonl; only --retry bad_response asks again.

    A rate limit or overload (429, 503, 529) costs no attempt: each provider is asked as fast as it lets
    through, and left once it has let nothing through for --patience seconds. Calls that are missing at the end are
    listed with the reasons, and the exit code is 1 unless --allow-missing N allows so many.

    With --arm, which may be given several times, each narrative is put once by every arm; its TOML file says what is
    other than for the rest: `model` or `[models]`, `persona`, `[prompts]` and `[options]`. --system-prompt and
    --user-template take the place of `[prompts]` in citejury.toml; the template's {note_text} is the narrative.

    With --replay, answers come from DIR/<provider>/<narrative_id>.json, `<id>.2.json` for a second row of an id, and
    beside it, where wanted, `<id>.meta.json` with `status`, all below DIR/<arm> where arms ask; no key is needed and
    nothing is sent. An answer that is kept stays as it is where its payload has changed since, and the last lines say
    which.

    With --batch, {in_batches} are asked in batches, which they answer within a day. The command
    waits, and may be stopped: batches go on at the provider, and the same command collects them and sends nothing
    twice. --max-cost then sends no batch that is expected to go beyond it.

    \b
    Examples:
        citejury pipeline ask narratives.csv --out answers --dry-run
        citejury pipeline ask claims.xlsx --sheet 2026 --out answers --max-cost 5
        citejury pipeline ask narratives.csv --out answers --batch
        citejury pipeline ask narratives.csv --out answers --patience 3600 --allow-missing 5
        citejury pipeline ask narratives.csv --out answers --replay payloads
    """
    import asyncio
    import sys

    from pipeline.asking.ask_live import ask_in_batches, ask_providers, batch_prices, providers_with_batches
    from pipeline.asking.batch_calls import BatchPolicy
    from pipeline.asking.preview import kept_models
    from pipeline.asking.questions import Arm, Limits, Questions, read_arms
    from pipeline.asking.run import RecordedAnswers, ask_narratives, changed_payloads, recorded_providers
    from pipeline.asking.run_folder import begun_run
    from pipeline.core.prompts import DEFAULT_PROMPTS, read_prompt_files
    from pipeline.providers.http.client import RetryPolicy
    from pipeline.settings import read_settings
    from pipeline.sources.guard import guarded_client

    in_batches = batch or batch_cancel
    settings = read_settings()
    model_names = _configured_models(settings.models) | models
    cli.check_amount(max_cost)
    limits = Limits(concurrency, max_cost, settings.known_prices, compress, retry is not None)
    prompts = DEFAULT_PROMPTS.changed_by(settings.prompts).changed_by(read_prompt_files(system_prompt, user_template))
    begun = begun_run(out)
    rows = cli.read_narratives(narratives, id_column, text_column, encoding, sheet, begun)
    cli.confirm_narratives(rows, begun, not (replay or dry_run or batch_cancel), yes)
    if replay:
        asked = chosen or recorded_providers(replay, [arm.partition(":")[0] for arm in arms])
        read = read_arms(arms, Arm("", model_names, prompts), asked)
        questions = Questions(rows, asked, model_names, max_rows, repeats, prompts=prompts, arms=read)
        with _CallBars() as bars:
            source = RecordedAnswers(replay)
            manifest = asyncio.run(ask_narratives(questions, out, source, bars.settle, bars.tell, limits))
            changed = asyncio.run(changed_payloads(questions, out, source))
        _end_run(manifest, out, allow_missing, strict, changed)
        return
    if batch_cancel and chosen is None:
        chosen = providers_with_batches(out)
        if not chosen:
            cli.log("No batch is under way; nothing is to be ended.")
            return
    given = (chosen, model_names, options, settings, prompts, arms, kept_models(out), not dry_run)
    selection = _select(*given, tells_age=dry_run or max_cost is not None)
    questions = selection.questions(rows, max_rows, repeats)
    if dry_run:
        prices = batch_prices(selection, limits.prices) if in_batches else limits.prices
        _print_preview(questions, out, selection, limits._replace(prices=prices), settings, show_bodies)
        return
    batches = BatchPolicy(poll_seconds=poll_seconds, attempts=attempts, patience=patience)
    retries = RetryPolicy(attempts, timeout, min(read_timeout, timeout), patience_seconds=patience)
    with _CallBars() as bars:
        tell_counts = (lambda line: None) if sys.stderr.isatty() else bars.tell  # the bars show it there
        shared: dict[str, Any] = {"limits": limits, "tell": bars.tell, "waits": bars.wait}
        shared["redirect_client"] = guarded_client if settings.resolve_redirects else None
        ending: dict[str, Any] = {"cancel": batch_cancel, "progress": bars.report, "tell_counts": tell_counts}
        if in_batches:
            manifest = ask_in_batches(questions, out, selection, policy=batches, **shared, **ending)
        else:
            manifest = ask_providers(questions, out, selection, policy=retries, report=bars.settle, **shared)
    _end_run(manifest, out, manifest.unsettled + allow_missing if batch_cancel else allow_missing, strict)


def _select(
    chosen: "list[ProviderName] | None",
    models: "dict[ProviderName, str]",
    options: dict[str, Any],
    settings: "Settings",
    prompts: "Prompts",
    arms: tuple[str, ...],
    kept: "dict[str, dict[ProviderName, str]]",
    needs_keys: bool,
    tells_age: bool,
) -> "ProviderSelection":
    import os

    from pipeline.asking.ask_live import check_selection, select_providers
    from pipeline.asking.questions import Spoken, read_options
    from pipeline.providers.cost import old_prices, read_model_list

    with cli.usage_errors():
        wanted = read_options(**options)
    spoken = Spoken(settings.apis, settings.instructed)
    given = (chosen, models, wanted, os.environ, settings.base_urls, spoken, prompts, arms)
    selection = select_providers(*given, kept=kept, needs_keys=needs_keys)
    with cli.usage_errors():
        check_selection(selection)
    asked = [model for provider in selection.providers for model in selection.models_of(provider)]
    old = old_prices(read_model_list(settings.model_list), settings.prices, asked) if tells_age else []
    for note in (*selection.notes, *old):
        cli.log(note)
    return selection


def _configured_models(configured: dict[str, str]) -> "dict[ProviderName, str]":
    from pipeline.core.errors import InputError, SettingsError
    from pipeline.providers import provider_name

    try:
        return {provider_name(name): model for name, model in configured.items()}
    except InputError as error:
        raise SettingsError(f"`[models]` in `citejury.toml`: {error}") from error


def _print_preview(
    questions: "Questions",
    out: Path,
    selection: "ProviderSelection",
    limits: "Limits",
    settings: "Settings",
    bodies: bool,
) -> None:
    from dataclasses import asdict

    from pipeline.asking.preview import preview_lines, preview_run
    from pipeline.providers.cost import read_model_list

    models = read_model_list(settings.model_list)
    previews = preview_run(questions, out, selection, limits, models)
    click.echo("\n".join(preview_lines(previews, models)), err=bodies)
    if bodies:
        shown = {"calls": sum(each.calls for each in previews), "providers": [asdict(each) for each in previews]}
        click.echo(cli.json_bytes(shown), nl=False)
    following = f"citejury pipeline sources {click.format_filename(out)} --out records.jsonl"
    is_left = any(each.calls for each in previews)
    cli.tell_next("the same command without `--dry-run`" if is_left else following, "Nothing was sent.")
