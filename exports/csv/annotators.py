"""Who answered: names of annotators by user id, or the pseudonyms that stand for them."""

from collections.abc import Iterable

from annotation.client import Argilla
from exports.csv.anonymize import Pseudonyms


class Annotators:
    """Names of annotators by user id; an id that the server does not know stands for itself."""

    def __init__(self, client: Argilla, pseudonyms: Pseudonyms | None = None) -> None:
        """Ask for the names of all users once."""
        self._client = client
        self._names = client.usernames()
        self._pseudonyms = pseudonyms

    def name(self, user_id: str) -> str:
        """The name; the server is asked again for an id that is new, once, since users come while we read."""
        if user_id not in self._names:
            self._names = {user_id: user_id, **self._names, **self._client.usernames()}
        return self._names[user_id]

    def meet(self, user_ids: Iterable[str]) -> None:
        """Give those who are new their pseudonyms, in the order of their ids: it tells neither names nor responses."""
        for user_id in sorted(user_ids):
            self.shown(user_id)

    def shown(self, user_id: str) -> str:
        """What stands in the export for her: the name, or the pseudonym."""
        name = self.name(user_id)
        return name if self._pseudonyms is None else self._pseudonyms.pseudonym(user_id, name)
