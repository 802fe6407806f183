"""Who answered: names of annotators by user id, or the pseudonyms that stand for them."""

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from annotation.argilla.client import Argilla
from pipeline.core.errors import InputError, OutputError
from pipeline.core.files import OWNER_ONLY, output_errors, staged_file
from pipeline.core.schema import Frozen
from pipeline.core.sentences import sentences

_say = sentences(__file__)


class KeyedAnnotator(Frozen):
    """Whom a pseudonym stands for."""

    user_id: str
    """Id of the user on the Argilla server."""
    username: str
    """Their user name when an export last met them; the id where the server no longer knew it."""


class AnnotatorKey(Frozen):
    """The key file: whoever has it can undo the pseudonyms."""

    citejury_annotator_key: Literal[1] = 1
    """Version of this file."""
    annotators: dict[str, KeyedAnnotator]
    """The annotators by pseudonym."""


class Pseudonyms:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._content = _read_content(path)
        key = AnnotatorKey(annotators={}) if self._content is None else _parse_key(path, self._content)
        self._annotators = dict(key.annotators)
        self._by_user = {person.user_id: pseudonym for pseudonym, person in self._annotators.items()}

    @property
    def is_new(self) -> bool:
        return self._content is None

    def pseudonym(self, user_id: str, username: str) -> str:
        """Their pseudonym, such as `annotator-01`; a new one has the next number that is free."""
        if user_id not in self._by_user:
            number = len(self._annotators) + 1
            while f"annotator-{number:02}" in self._annotators:
                number += 1
            self._by_user[user_id] = f"annotator-{number:02}"
        pseudonym = self._by_user[user_id]
        if pseudonym not in self._annotators or username != user_id:
            self._annotators[pseudonym] = KeyedAnnotator(user_id=user_id, username=username)
        return pseudonym

    def known(self, user_id: str) -> str:
        return self._by_user.get(user_id, "")

    def save(self) -> None:
        """Write the key file, for its owner only from its first byte on, unless another export changed it meanwhile."""
        key = AnnotatorKey(annotators=dict(sorted(self._annotators.items())))
        content = json.dumps(key.model_dump(), ensure_ascii=False, indent=2).encode("utf-8") + b"\n"
        unwritten = f"The key file `{self.path}` cannot be written"
        with (
            output_errors(unwritten, "Name another one with `--key-file`."),
            staged_file(self.path, OWNER_ONLY) as file,
        ):
            file.write(content)
            if _read_content(self.path) != self._content:
                raise OutputError(_say("key_changed", path=self.path))


def pseudonyms_of(out: Path, named: Path | None, wanted: bool) -> Pseudonyms | None:
    """Those kept beside `out` or in the file named; None where none are wanted."""
    if named is not None and not wanted:
        raise InputError("`--key-file` is for pseudonyms. Give `--anonymize` too, or leave it out.")
    return Pseudonyms(key_path(out, named)) if wanted else None


def key_path(out: Path, named: Path | None) -> Path:
    """Where the key file is: as named, otherwise beside the export folder `out`, under its name."""
    folder = out.resolve()
    path = folder.with_name(f"{folder.name}.annotators.json") if named is None else named.resolve()
    if folder == path or folder in path.parents:
        raise OutputError(_say("key_inside", path=path, out=out))
    return path


def _read_content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(_say("key_unread", path=path, error=error.strerror)) from error


def _parse_key(path: Path, content: bytes) -> AnnotatorKey:
    try:
        found = json.loads(content)
        if not isinstance(found, dict) or "citejury_annotator_key" not in found:
            raise ValueError("it does not say so")
        key = AnnotatorKey.model_validate(found)
    except (ValidationError, ValueError) as error:
        raise InputError(_say("no_key", path=path)) from error
    people = [person.user_id for person in key.annotators.values()]
    twice = sorted({user_id for user_id in people if people.count(user_id) > 1})
    if twice:
        raise InputError(_say("twice", path=path, user=twice[0]))
    return key


class Annotators:
    """Names of annotators by user id; an id that the server does not know stands for itself."""

    def __init__(self, client: Argilla, pseudonyms: Pseudonyms | None = None) -> None:
        self._client = client
        self._names = client.usernames()
        self._pseudonyms = pseudonyms

    def name(self, user_id: str) -> str:
        """The name; the server is asked again for an id that is new, once, since users come while we read."""
        if user_id not in self._names:
            self._names = {user_id: user_id, **self._names, **self._client.usernames()}
        return self._names[user_id]

    def known_name(self, user_id: str) -> str:
        """What stands for them in the export; empty for somebody who has no pseudonym yet."""
        return self.name(user_id) if self._pseudonyms is None else self._pseudonyms.known(user_id)

    def names_of(self, user_id: str) -> set[str]:
        return {user_id, self.name(user_id), self.known_name(user_id)} - {""}

    def exported_names(self, named: Collection[str]) -> frozenset[str]:
        """Under which names those stand in files who were named by id, name or pseudonym."""
        wanted = set(named)
        return frozenset(wanted).union(*(self.names_of(each) for each in self._names if self.names_of(each) & wanted))

    def meet(self, user_ids: Iterable[str]) -> None:
        """Give those who are new their pseudonyms, in the order of their ids: it tells neither names nor responses."""
        for user_id in sorted(user_ids):
            self.exported_name(user_id)

    def exported_name(self, user_id: str) -> str:
        name = self.name(user_id)
        return name if self._pseudonyms is None else self._pseudonyms.pseudonym(user_id, name)
