"""Who judges a record how often, and how long a narrative takes them."""

from collections import Counter
from collections.abc import Mapping, Sequence

from annotation.campaign.file import Campaign
from annotation.campaign.routing import expected_calibration, plan_routes
from annotation.labels import TASKS, TaskName
from annotation.planning.pace import Work, paces
from annotation.planning.population import PlannedNarrative, PlannedRecord, Population
from annotation.tasks import CALIBRATION


class Jury:
    """Overlaps and paces."""

    def __init__(
        self, population: Population, campaign: Campaign | None, overlap: int | None, work: Work | None
    ) -> None:
        """Look up overlap and paces of all that may be judged."""
        given = campaign.overlap if campaign else {}
        self.overlap: dict[TaskName, int] = {task: overlap or given.get(task, 1) for task in TASKS}
        self.campaign = campaign
        self.locales = Counter(record.locale for record in population.records)
        cells = [(task, locale) for task in TASKS for locale in sorted(self.locales)]
        self.paces = paces(population, cells, work)
        self.stored = work.stored if work else {}
        self.without_passages = self.stored.keys() - work.with_passages if work else frozenset[str]()
        self._held = Counter(place.locale for place in self.stored.values())
        self._calibrated = Counter(place.locale for place in self.stored.values() if place.round_name == CALIBRATION)
        places = [(record.locale, self.stored.get(record.record_uuid)) for record in population.records]
        self._new = Counter(locale for locale, place in places if place is None)
        self._back = Counter(locale for locale, place in places if place and place.round_name == CALIBRATION)

    def calibrating(self, locale: str, records: int) -> float:
        """How many of so many records of a language are for calibration, about; what Argilla holds stays there."""
        if self.campaign is None:
            return 0.0
        part = records / self.locales[locale]
        new = expected_calibration(
            self.campaign.calibration, part * self._new[locale], self._held[locale], self._calibrated[locale]
        )
        return part * self._back[locale] + new

    def calibration(self, records: Sequence[PlannedRecord]) -> frozenset[str]:
        """`record_uuid` of each of these records that a push of them puts into calibration.

        Raises:
            InputError: a record is assigned to a group that has nobody for its language.
        """
        if self.campaign is None:
            return frozenset()
        languages = [(record.record_uuid, record.locale) for record in records]
        without = {record.record_uuid for record in records if not record.loads["grounding"].units}
        routes = plan_routes(languages, self.stored, self.campaign, "", without | self.without_passages)
        return frozenset(record_uuid for record_uuid, place in routes.items() if place.round_name == CALIBRATION)

    def judges_calibration(self, locale: str) -> int:
        """How many annotators a record of calibration waits for."""
        campaign = self.campaign
        wanted = campaign.calibration.overlap if campaign and campaign.calibration else None
        return wanted or max(1, len(campaign.jury(locale)) if campaign else 1)

    def votes(self, task: TaskName, locale: str, share: float) -> float:
        """Submissions a unit waits for on average, with this share of the language's records in calibration."""
        if not share:
            return self.overlap[task]
        return share * self.judges_calibration(locale) + (1 - share) * self.overlap[task]

    def hours_of(self, narrative: PlannedNarrative, shares: Mapping[str, float]) -> float:
        """How long the narrative takes all its annotators together."""
        seconds = 0.0
        for record in narrative.records:
            for task, load in record.loads.items():
                votes = self.votes(task, record.locale, shares[record.locale])
                seconds += load.seconds * self.paces[task, record.locale].factor * votes
        return seconds / 3600

    def shares(self, records: Mapping[str, int]) -> dict[str, float]:
        """The share of each language's records that is for calibration, of so many records."""
        return {
            locale: self.calibrating(locale, records[locale]) / records[locale] if records.get(locale) else 0.0
            for locale in self.locales
        }
