"""Everything that is changed in argilla-server: one table, applied before the server starts.

A row says what it changes and why, and has a digest of the source that was read in `VERSION`.
tests/annotation/embedded/test_patches.py holds each against the installed one, so that an upgrade of argilla-server
fails with the name of what is gone or different. What to do then: read it anew, correct the change, set the digest.
"""

from collections.abc import Awaitable, Callable
from functools import reduce
from importlib import import_module
from typing import Any, NamedTuple

from argilla_server.contexts.webhooks import list_enabled_webhooks
from pydantic import TypeAdapter

from annotation.embedded.home.damage import stop_writing_once_damaged
from annotation.embedded.page import change_page
from annotation.embedded.patches import access, annotator, errors, events, practice, responses, routes
from annotation.embedded.patches.engine import register_engine
from annotation.embedded.patches.middleware import surround

_WEBHOOKS_KNOWN = "citejury_has_webhook"


class _Patch(NamedTuple):
    """A change of argilla-server."""

    why: str
    """What is not good enough there."""
    change: Callable[[Any], Any]
    """Gives what takes the place of what it gets; None where that stays, and what it belongs to is changed."""
    targets: dict[str, str]
    """Places in argilla_server, `module:name`, each with a digest of its source; a module alone is not imported yet."""


class _NoEvent:
    """An event that nobody waits for."""

    async def notify(self, db: Any) -> list[Any]:
        """No job."""
        return []


def _only_for_webhooks(build: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The same builder, but for an event that goes nowhere where no webhook is enabled."""

    async def build_if_wanted(db: Any, event: Any, subject: Any) -> Any:
        if _WEBHOOKS_KNOWN not in db.info:  # looked up once in a session, which is once in a request
            db.info[_WEBHOOKS_KNOWN] = bool(await list_enabled_webhooks(db))
        return await build(db, event, subject) if db.info[_WEBHOOKS_KNOWN] else _NoEvent()

    return build_if_wanted


def _build_reader_once(settings: property) -> property:
    """The same property of a row, read by a pydantic reader that is built now."""
    read = TypeAdapter(settings.fget.__annotations__["return"]).validate_python
    return property(lambda row: read(row.settings))


PATCHES = (
    _Patch(
        "The jobs for the Hugging Face Hub import datasets, pandas and PyArrow: a fifth of a start's time, and 110 MB.",
        lambda _: None,  # `web.loading` has put another module in its place, before this one here was imported
        {"jobs.hub_jobs": "402098ef5359"},
    ),
    _Patch(
        "Elasticsearch or OpenSearch would have to run, and neither knows the queue.",
        lambda _: register_engine(),
        {"search_engine:SearchEngine": "c38a0ae6c49b"},
    ),
    _Patch(
        "A pydantic reader is built at each look at a question's settings: half of the time that a response takes.",
        _build_reader_once,
        {
            "models.database:Question.parsed_settings": "5d2f427fe465",
            "models.database:MetadataProperty.parsed_settings": "263c9f47b2de",
        },
    ),
    _Patch(
        "Events are built, with six selects each, before anything looks for a webhook: nine tenths of a bulk upload.",
        _only_for_webhooks,
        {
            "webhooks.v1.datasets:build_dataset_event": "7152b06a1769",
            "contexts.datasets:build_dataset_event_v1": "7152b06a1769",
            "webhooks.v1.records:build_record_event": "97d977a11126",
            "contexts.records:build_record_event_v1": "97d977a11126",
            "contexts.datasets:build_record_event_v1": "97d977a11126",
            "webhooks.v1.responses:build_response_event": "86800f9b0da9",
            "contexts.datasets:build_response_event_v1": "86800f9b0da9",
        },
    ),
    _Patch(
        "Passwords are hashed by the one thread that answers everybody, a fifth of a second each.",
        access.check_elsewhere,
        {"contexts.accounts:authenticate_user": "3b0e3b992e9e"},
    ),
    _Patch(
        "So are those of new users, and new ones of others.",
        access.hash_first,
        {
            "contexts.accounts:create_user": "554fcc728269",
            "contexts.accounts:update_user": "c0d19ccf0f91",
        },
    ),
    _Patch("What is hashed is hashed again.", access.hash_once, {"contexts.accounts:hash_password": "17830c1b66a4"}),
    _Patch(
        "Passwords can be tried without end, as fast as the server hashes.",
        access.slow_down,
        {"api.handlers.v1.authentication:create_token": "139ed4e2a1a2"},
    ),
    _Patch(
        "Nobody can end a log-in: a token holds for a day, whatever becomes of its user.",
        access.know_epochs,
        {"models.database:User": "d3938ba0e3a8"},
    ),
    _Patch(
        "A token does not say when it was made.",
        access.say_epoch_in_tokens,
        {"contexts.accounts:generate_user_token": "1fe015eea013"},
    ),
    _Patch(
        "A token is taken of anybody who has the user name by now, and of who is in no workspace any more.",
        access.check_epoch_of_tokens,
        {
            "security.authentication.db:BearerTokenAuthenticationBackend.authenticate": "663b952ad819",
        },
    ),
    _Patch(
        "A key is taken of who is in no workspace any more.",
        access.check_workspace_of_keys,
        {"security.authentication.db:APIKeyAuthenticationBackend.authenticate": "f9e2fce487b3"},
    ),
    _Patch(
        "Who was taken out of all workspaces logs in with her old password.",
        access.refuse_log_in_of_removed,
        {"contexts.accounts:authenticate_user": "3b0e3b992e9e"},
    ),
    _Patch(
        "There is no way to end somebody's log-ins and to change an API key.",
        access.serve_revocation,
        {"contexts.accounts:update_user": "c0d19ccf0f91"},
    ),
    _Patch("Nobody is told of logins.", events.log_login, {"contexts.accounts:authenticate_user": "3b0e3b992e9e"}),
    _Patch(
        "Nobody is told of a dataset that opens.",
        events.log_published_dataset,
        {"contexts.datasets:publish_dataset": "4a6f9fa37b5f"},
    ),
    _Patch(
        "Nobody is told of a dataset that is deleted.",
        events.log_deleted_dataset,
        {"contexts.datasets:delete_dataset": "a2e413530df9"},
    ),
    _Patch(
        "Who asks is known to the request only, and not where something is deleted.",
        events.note_who_asks,
        {"security.authentication.provider:set_request_user": "dae5235da2ae"},
    ),
    _Patch(
        "Nobody is told of answers that are deleted.",
        events.log_deleted_response,
        {"contexts.datasets:delete_response": "8440968b0e34"},
    ),
    _Patch(
        "Nobody is told of a record that is deleted.",
        events.log_deleted_record,
        {"contexts.records:delete_record": "b355e5f49a61"},
    ),
    _Patch(
        "Nobody is told of records that are deleted.",
        events.log_deleted_records,
        {"contexts.records:delete_records": "090a2664f68d"},
    ),
    _Patch(
        "Nobody is told of a user who is deleted, and all her answers with her.",
        events.log_deleted_user,
        {"contexts.accounts:delete_user": "1ef68e30e662"},
    ),
    _Patch(
        "Nobody is told of records that come.",
        events.log_push,
        {
            "bulk.records_bulk:CreateRecordsBulk.create_records_bulk": "ab81ddb7fc2b",
            "bulk.records_bulk:UpsertRecordsBulk.upsert_records_bulk": "6fdbe42a1282",
        },
    ),
    _Patch(
        "Nobody is told of submissions.",
        events.log_submission,
        {
            "contexts.datasets:create_response": "96812886c301",
            "contexts.datasets:update_response": "f3d61b6dcfc9",
            "contexts.datasets:upsert_response": "518d334ddfeb",
        },
    ),
    _Patch(
        "It knows required questions, and none that is required of some records only: labels that are disputed, and "
        "marks where another question is answered with yes.",
        lambda validate: responses.require_marks(responses.ask_for_disputed(validate)),
        {"validators.responses:ResponseValidator.validate": "d1306ae6b178"},
    ),
    _Patch(
        "A note may be as long as a body, and each change of it is kept in the history.",
        responses.refuse_long_answers,
        {"validators.responses:ResponseValidator.validate": "d1306ae6b178"},
    ),
    _Patch(
        "It takes answers of somebody who has not passed the practice that comes first.",
        practice.refuse_before_practice,
        {
            "contexts.datasets:create_response": "96812886c301",
            "contexts.datasets:upsert_response": "518d334ddfeb",
        },
    ),
    _Patch(
        "After an error of the database it goes on in the failed transaction, and answers with the database's texts.",
        errors.store_in_turn,
        {
            "use_cases.responses.upsert_responses_in_bulk:UpsertResponsesInBulkUseCase.execute": "e8a57d688256",
        },
    ),
    _Patch(
        "A full disk, a lock and a duplicate are all answered with status 500 and the statement with its values.",
        errors.answer_database_errors,
        {"api.errors.v1.exception_handlers:add_exception_handlers": "7cea04dadbf9"},
    ),
    _Patch(
        "It goes on writing to a database that SQLite has found damaged.",
        lambda _: stop_writing_once_damaged(),
        {"database:set_sqlite_pragma": "fa3e22a39562"},
    ),
    _Patch(
        "The text of an unexpected error, which may be a statement with its values, is sent to the client.",
        errors.keep_reasons_in_the_log,
        {"errors.base_errors:GenericServerError.__init__": "6f8fc02fcf64"},
    ),
    _Patch(
        "What is wrong with an invalid request is answered with as much of its text as it likes.",
        errors.name_first_errors,
        {"errors.base_errors:ValidationError.__init__": "24bd0a588fe4"},
    ),
    _Patch(
        "An invalid request is written into the log, twice and whole.",
        errors.log_without_values,
        {"errors.error_handler:APIErrorHandler._exception_to_argilla_error": "260354dfd234"},
    ),
    _Patch(
        "A value that is refused is answered whole.",
        errors.shorten_message,
        {
            "errors.future.base_errors:NotFoundError.__init__": "dd936f9b3c85",
            "errors.future.base_errors:NotUniqueError.__init__": "61b72558f34c",
            "errors.future.base_errors:UnprocessableEntityError.__init__": "c973de97ac57",
        },
    ),
    _Patch(
        "Malformed searches are answered with 500 instead of 422.",
        errors.check_search_first,
        {"api.handlers.v1.datasets.records:_validate_search_records_query": "cbeaebf092ba"},
    ),
    _Patch(
        "A range from a number to a word is answered with 500 instead of 422.",
        errors.answer_type_errors,
        {"api.schemas.v1.records:RangeFilter.check_ge_and_le": "a54473d25f83"},
    ),
    _Patch(
        "An annotator gets everybody's responses to a record, and metadata that are hidden from her.",
        annotator.serve_own_record_only,
        {"api.handlers.v1.records:get_record": "a1d2333cd2c8"},
    ),
    _Patch(
        "It knows no practice: cases with known answers, and how far somebody is.",
        practice.serve_practice,
        {"api.handlers.v1.records:get_record": "a1d2333cd2c8"},
    ),
    _Patch(
        "Every member of a workspace may see and answer every record in it.",
        annotator.for_its_users_only,
        {
            "api.policies.v1:RecordPolicy.get": "390548390c53",
            "api.policies.v1:RecordPolicy.create_response": "b3b353c4a7d1",
            "api.policies.v1:RecordPolicy.get_suggestions": "987787e8549d",
        },
    ),
    _Patch(
        "Who is not in the workspace any more changes and deletes her responses there.",
        access.for_members_only,
        {
            "api.policies.v1:ResponsePolicy.update": "09022f7ef446",
            "api.policies.v1:ResponsePolicy.delete": "75a6401d4f1d",
        },
    ),
    _Patch(
        "Every record of a dataset waits for as many submissions as the dataset says.",
        annotator.wait_for_as_many_as_assigned,
        {"contexts.distribution:_update_record_status_with_overlap_strategy": "84010b435dcf"},
    ),
    _Patch(
        "An annotator's records are counted with those that others alone get.",
        annotator.count_what_she_gets,
        {"contexts.datasets:get_user_dataset_metrics": "cc72a22cc96c"},
    ),
    _Patch(
        "An annotator sees when a record came and whether it is done, and so which were mixed in.",
        annotator.hide_what_tells,
        {"api.handlers.v1.datasets.records:_filter_record_metadata_for_user": "37051579176b"},
    ),
    _Patch(
        "An annotator sorts by what she is not told of records.",
        annotator.sort_by_what_she_is_told,
        {"api.handlers.v1.datasets.records:_to_search_engine_sort": "1886c0a5aece"},
    ),
    _Patch(
        "An annotator filters by what she is not told of records.",
        annotator.filter_by_what_she_is_told,
        {"api.handlers.v1.datasets.records:_to_search_engine_filter": "83357318e84b"},
    ),
    _Patch(
        "An annotator learns how far all others together are.",
        annotator.serve_own_progress,
        {"api.handlers.v1.datasets.datasets:get_dataset_progress": "e7d6e5378ba5"},
    ),
    _Patch(
        "An annotator gets everybody's user name, and how many records each has answered.",
        annotator.serve_own_part_of_users,
        {"api.handlers.v1.datasets.datasets:get_dataset_users_progress": "13edc7eba105"},
    ),
    _Patch(
        "An annotator begins with everybody's datasets in all languages, and cannot ask what is next for her.",
        annotator.serve_start,
        {"api.handlers.v1.datasets.datasets:get_dataset": "480b98b14956"},
    ),
    _Patch(
        "An annotator's notes are read by nobody, and there is no way to reply to one.",
        annotator.serve_replies,
        {"api.handlers.v1.records:get_record": "a1d2333cd2c8"},
    ),
    _Patch(
        "A page of records is parsed, validated and written again, which takes many times as long as reading it.",
        routes.serve_record_pages,
        {"api.handlers.v1.datasets.records:list_dataset_records": "ef263588e05b"},
    ),
    _Patch(
        "Who answered what cannot be asked without the records' texts.",
        routes.serve_status_rows,
        {"api.policies.v1:DatasetPolicy.list_records_with_all_responses": "27cc4d694ea4"},
    ),
    _Patch(
        "What changed in records cannot be asked without their texts.",
        routes.serve_changes,
        {"api.policies.v1:DatasetPolicy.list_records_with_all_responses": "27cc4d694ea4"},
    ),
    _Patch(
        "It keeps the last state of a response only.",
        routes.serve_history,
        {"api.policies.v1:DatasetPolicy.list_records_with_all_responses": "27cc4d694ea4"},
    ),
    _Patch(
        "What was answered at an earlier moment cannot be asked.",
        routes.serve_past_responses,
        {"api.policies.v1:DatasetPolicy.list_records_with_all_responses": "27cc4d694ea4"},
    ),
    _Patch(
        "The page loses answers that the server does not take, knows no rules between labels, and wants foreign fonts.",
        change_page,
        {"_app:configure_app_statics": "ca3a11988607"},
    ),
    _Patch(
        "Answers lack security headers and a request's id, and nothing can be refused that came without HTTPS.",
        surround,
        {"_app:app": "FastAPI"},
    ),
)


def apply_patches() -> None:
    """Import argilla-server and change it.

    Raises:
        InputError: a language of the page lacks a text.
    """
    for patch in PATCHES:
        for target in patch.targets:
            module, _, path = target.partition(":")
            if not path:
                continue
            *owners, name = path.split(".")
            owner = reduce(getattr, owners, import_module(f"argilla_server.{module}"))
            changed = patch.change(getattr(owner, name))
            if changed is not None:
                setattr(owner, name, changed)
