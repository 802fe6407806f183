"""Everything that is changed in argilla-server: one table, applied before the server starts.

A row has a digest of the source that was read in `VERSION`, and stands under what is not good enough there.
tests/annotation/server/test_patches.py holds each against the installed one, so that an upgrade of argilla-server
fails with the name of what is gone or different. What to do then: read it anew, correct the change, set the digest.
"""

from collections.abc import Awaitable, Callable
from functools import reduce
from importlib import import_module
from typing import Any

from argilla_server.contexts.webhooks import list_enabled_webhooks
from pydantic import TypeAdapter

from annotation.server.home.damage import stop_writing_once_damaged
from annotation.server.page import change_page
from annotation.server.patches import access, annotator, errors, events, practice, routes
from annotation.server.patches.engine import register_engine
from annotation.server.patches.middleware import surround
from annotation.server.search.filters import check_search

_WEBHOOKS_KNOWN = "citejury_has_webhook"


class _NoEvent:
    async def notify(self, db: Any) -> list[Any]:
        return []


async def _only_for_webhooks(build: Callable[..., Awaitable[Any]], db: Any, event: Any, subject: Any) -> Any:
    if _WEBHOOKS_KNOWN not in db.info:  # looked up once in a session, which is once in a request
        db.info[_WEBHOOKS_KNOWN] = bool(await list_enabled_webhooks(db))
    return await build(db, event, subject) if db.info[_WEBHOOKS_KNOWN] else _NoEvent()


def _build_reader_once(settings: property) -> property:
    """The same property of a row, read by a pydantic reader that is built now."""
    read = TypeAdapter(settings.fget.__annotations__["return"]).validate_python
    return property(lambda row: read(row.settings))


def _wrap(new: Callable[..., Any]) -> "Change":
    def change(before: Any) -> Any:
        return lambda *arguments, **named: new(before, *arguments, **named)

    return change


def _use(new: Callable[..., Any]) -> "Change":
    return lambda _: new


Change = Callable[[Any], Any]
"""Gives what takes the place of what it gets; None where that stays, and what it belongs to is changed."""

PATCHES: tuple[tuple[str, str, Change | None], ...] = (
    # The jobs for the Hugging Face Hub import datasets, pandas and PyArrow: a fifth of a start's time, and 110 MB.
    # `web.loading` puts another module in its place, before this one here is imported.
    ("jobs.hub_jobs", "402098ef5359", None),
    # fastapi has no help of a parameter any more. `first` leaves it out, before any part of argilla-server is there.
    ("api.handlers.v1.datasets.records:parse_record_include_param", "e69c0c18168e", None),
    # A job of rq has to be told its queue's connection. `first` does so.
    ("jobs.dataset_jobs", "1a35a79e2ae3", None),
    ("jobs.webhook_jobs", "e803238252e4", None),
    # Clients of Elasticsearch and OpenSearch are loaded, whichever engine is used; `first` leaves them out.
    ("search_engine", "479905a046b6", None),
    # Elasticsearch or OpenSearch would have to run, and neither knows the queue.
    ("search_engine:SearchEngine", "c38a0ae6c49b", register_engine),
    # A pydantic reader is built at each look at a question's settings: half of the time that a response takes.
    ("models.database:Question.parsed_settings", "5d2f427fe465", _build_reader_once),
    ("models.database:MetadataProperty.parsed_settings", "263c9f47b2de", _build_reader_once),
    # Events are built, with six selects each, before anything looks for a webhook: nine tenths of a bulk upload.
    ("webhooks.v1.datasets:build_dataset_event", "7152b06a1769", _wrap(_only_for_webhooks)),
    ("contexts.datasets:build_dataset_event_v1", "7152b06a1769", _wrap(_only_for_webhooks)),
    ("webhooks.v1.records:build_record_event", "97d977a11126", _wrap(_only_for_webhooks)),
    ("contexts.records:build_record_event_v1", "97d977a11126", _wrap(_only_for_webhooks)),
    ("contexts.datasets:build_record_event_v1", "97d977a11126", _wrap(_only_for_webhooks)),
    ("webhooks.v1.responses:build_response_event", "86800f9b0da9", _wrap(_only_for_webhooks)),
    ("contexts.datasets:build_response_event_v1", "86800f9b0da9", _wrap(_only_for_webhooks)),
    # Passwords are hashed by the one thread that answers everybody, a fifth of a second each.
    ("contexts.accounts:authenticate_user", "3b0e3b992e9e", _use(access.check_elsewhere)),
    # Passwords can be tried without end, as fast as the server hashes.
    ("api.handlers.v1.authentication:create_token", "139ed4e2a1a2", access.slow_down),
    # Nobody can end a log-in: a token holds for a day, whatever becomes of its user.
    ("models.database:User", "d3938ba0e3a8", access.know_epochs),
    # A token does not say when it was made.
    ("contexts.accounts:generate_user_token", "1fe015eea013", _use(access.token_with_epoch)),
    # A token is taken of anybody who has the user name by now, and of who is in no workspace any more.
    ("security.authentication.db:BearerTokenAuthenticationBackend.authenticate", "663b952ad819", _use(access.by_token)),
    # A key is taken of who is in no workspace any more.
    ("security.authentication.db:APIKeyAuthenticationBackend.authenticate", "f9e2fce487b3", _use(access.by_key)),
    # Whoever asks is looked up twice in each request, with their workspaces: a third of what a small one costs.
    ("contexts.accounts:get_user_by_username", "efa2296fc209", _wrap(access.remembered)),
    # Who was taken out of all workspaces logs in with her old password.
    ("contexts.accounts:authenticate_user", "3b0e3b992e9e", _wrap(access.refuse_log_in_of_removed)),
    # There is no way to end somebody's log-ins and to change an API key.
    ("contexts.accounts:update_user", "c0d19ccf0f91", access.serve_revocation),
    # Nobody is told of log-ins, nor of a dataset that opens or is deleted.
    ("contexts.accounts:authenticate_user", "3b0e3b992e9e", _wrap(events.log_login)),
    ("contexts.datasets:publish_dataset", "4a6f9fa37b5f", _wrap(events.log_published_dataset)),
    ("contexts.datasets:delete_dataset", "a2e413530df9", _wrap(events.log_deleted_dataset)),
    # Who asks is known to the request only, and not where something is deleted.
    ("security.authentication.provider:set_request_user", "dae5235da2ae", _wrap(events.note_who_asks)),
    # The last answer to a record counts, even of a tab that shows an older state of it.
    ("security.authentication.provider:set_request_user", "dae5235da2ae", _wrap(annotator.note_what_was_seen)),
    ("contexts.datasets:update_response", "f3d61b6dcfc9", _wrap(annotator.refuse_older_state)),
    # Nobody is told of answers, records and users, with all their answers, that are deleted, of records that come and
    # of submissions.
    ("contexts.datasets:delete_response", "8440968b0e34", _wrap(events.log_deleted_response)),
    ("contexts.records:delete_record", "b355e5f49a61", _wrap(events.log_deleted_record)),
    ("contexts.records:delete_records", "090a2664f68d", _wrap(events.log_deleted_records)),
    ("contexts.accounts:delete_user", "1ef68e30e662", _wrap(events.log_deleted_user)),
    ("bulk.records_bulk:CreateRecordsBulk.create_records_bulk", "ab81ddb7fc2b", _wrap(events.log_push)),
    ("bulk.records_bulk:UpsertRecordsBulk.upsert_records_bulk", "6fdbe42a1282", _wrap(events.log_push)),
    ("contexts.datasets:create_response", "96812886c301", _wrap(events.log_submission)),
    ("contexts.datasets:update_response", "f3d61b6dcfc9", _wrap(events.log_submission)),
    ("contexts.datasets:upsert_response", "518d334ddfeb", _wrap(events.log_submission)),
    # It knows required questions, and none that is required of some records only: labels that are disputed, and marks
    # where another question is answered with yes.
    ("validators.responses:ResponseValidator.validate", "d1306ae6b178", _wrap(practice.ask_for_what_is_required)),
    # A note may be as long as a body, and each change of it is kept in the history.
    ("validators.responses:ResponseValidator.validate", "d1306ae6b178", _wrap(practice.refuse_long_answers)),
    # It takes answers of somebody who has not passed the practice that comes first.
    ("contexts.datasets:create_response", "96812886c301", _wrap(practice.refuse_before_practice)),
    ("contexts.datasets:upsert_response", "518d334ddfeb", _wrap(practice.refuse_before_practice)),
    # After an error of the database it goes on in the failed transaction, and answers with the database's texts.
    (
        "use_cases.responses.upsert_responses_in_bulk:UpsertResponsesInBulkUseCase.execute",
        "e8a57d688256",
        _use(errors.store_in_turn),
    ),
    # A full disk, a lock and a duplicate are all answered with status 500 and the statement with its values.
    ("api.errors.v1.exception_handlers:add_exception_handlers", "7cea04dadbf9", errors.answer_database_errors),
    # It goes on writing to a database that SQLite has found damaged.
    ("database:set_sqlite_pragma", "fa3e22a39562", stop_writing_once_damaged),
    # The text of an unexpected error, which may be a statement with its values, is sent to the client.
    ("errors.base_errors:GenericServerError.__init__", "6f8fc02fcf64", _use(errors.name_the_kind)),
    # What is wrong with an invalid request is answered with as much of its text as it likes.
    ("errors.base_errors:ValidationError.__init__", "24bd0a588fe4", _use(errors.name_first_errors)),
    # An invalid request is written into the log, twice and whole.
    ("errors.error_handler:APIErrorHandler._exception_to_argilla_error", "260354dfd234", errors.log_without_values),
    # A value that is refused is answered whole.
    ("errors.future.base_errors:NotFoundError.__init__", "dd936f9b3c85", _wrap(errors.shorten_message)),
    ("errors.future.base_errors:NotUniqueError.__init__", "61b72558f34c", _wrap(errors.shorten_message)),
    ("errors.future.base_errors:UnprocessableEntityError.__init__", "c973de97ac57", _wrap(errors.shorten_message)),
    # Malformed searches are answered with 500, and there are filters and orders that nobody here needs.
    ("api.handlers.v1.datasets.records:_validate_search_records_query", "cbeaebf092ba", _use(check_search)),
    # A range from a number to a word is answered with 500 instead of 422.
    ("api.schemas.v1.records:RangeFilter.check_ge_and_le", "a54473d25f83", errors.answer_type_errors),
    # So is a change that is no JSON object; the same answer is given.
    ("api.schemas.v1.commons:UpdateSchema.validate_non_nullable_fields", "e94692dbe9d7", None),
    # An annotator gets everybody's responses to a record, and metadata that are hidden from her.
    ("api.handlers.v1.records:get_record", "a1d2333cd2c8", annotator.serve_own_record_only),
    # It knows no practice: cases with known answers, and how far somebody is.
    ("api.handlers.v1.records:get_record", "a1d2333cd2c8", practice.serve_practice),
    # Every member of a workspace may see and answer every record in it.
    ("api.policies.v1:RecordPolicy.get", "390548390c53", _wrap(annotator.for_its_users_only)),
    ("api.policies.v1:RecordPolicy.create_response", "b3b353c4a7d1", _wrap(annotator.for_its_users_only)),
    ("api.policies.v1:RecordPolicy.get_suggestions", "987787e8549d", _wrap(annotator.for_its_users_only)),
    # Who is not in the workspace any more changes and deletes her responses there.
    ("api.policies.v1:ResponsePolicy.update", "09022f7ef446", _wrap(access.for_members_only)),
    ("api.policies.v1:ResponsePolicy.delete", "75a6401d4f1d", _wrap(access.for_members_only)),
    # Every record of a dataset waits for as many submissions as the dataset says.
    ("contexts.distribution:_update_record_status_with_overlap_strategy", "84010b435dcf", _wrap(annotator.set_status)),
    # An annotator's records are counted with those that others alone get.
    ("contexts.datasets:get_user_dataset_metrics", "cc72a22cc96c", _wrap(annotator.count_what_she_gets)),
    # An annotator sees when a record came and whether it is done, and so which were mixed in.
    ("api.handlers.v1.datasets.records:_filter_record_metadata_for_user", "37051579176b", _wrap(annotator.hide_origin)),
    # An annotator filters by what she is not told of records.
    ("api.handlers.v1.datasets.records:_to_search_engine_filter", "83357318e84b", _wrap(annotator.limit_filter)),
    # An annotator learns how far all others together are.
    ("api.handlers.v1.datasets.datasets:get_dataset_progress", "e7d6e5378ba5", annotator.serve_own_progress),
    # An annotator gets everybody's user name, and how many records each has answered.
    ("api.handlers.v1.datasets.datasets:get_dataset_users_progress", "13edc7eba105", annotator.serve_own_part_of_users),
    # An annotator begins with everybody's datasets in all languages, and cannot ask what is next for her.
    ("api.handlers.v1.datasets.datasets:get_dataset", "480b98b14956", annotator.serve_start),
    # An annotator's notes are read by nobody, and there is no way to reply to one.
    ("api.handlers.v1.records:get_record", "a1d2333cd2c8", annotator.serve_replies),
    # A page of records is parsed, validated and written again, which takes many times as long as reading it.
    ("api.handlers.v1.datasets.records:list_dataset_records", "ef263588e05b", routes.serve_record_pages),
    # Who answered what cannot be asked without the records' texts.
    ("api.policies.v1:DatasetPolicy.list_records_with_all_responses", "27cc4d694ea4", routes.serve_status_rows),
    # What changed in records cannot be asked without their texts.
    ("api.policies.v1:DatasetPolicy.list_records_with_all_responses", "27cc4d694ea4", routes.serve_changes),
    # It keeps the last state of a response only.
    ("api.policies.v1:DatasetPolicy.list_records_with_all_responses", "27cc4d694ea4", routes.serve_history),
    # The page loses answers that the server does not take, knows no rules between labels, and wants foreign fonts.
    ("_app:configure_app_statics", "ca3a11988607", change_page),
    # Answers lack security headers and a request's id, and nothing can be refused that came without HTTPS.
    ("_app:app", "FastAPI", surround),
)
"""Places in argilla_server, `module:name`, each with a digest of its source and its change; why is said above it."""


def apply_patches() -> None:
    for target, _, change in PATCHES:
        if change is None:
            continue
        module, _, path = target.partition(":")
        *owners, name = path.split(".")
        owner = reduce(getattr, owners, import_module(f"argilla_server.{module}"))
        changed = change(getattr(owner, name))
        if changed is not None:
            setattr(owner, name, changed)
