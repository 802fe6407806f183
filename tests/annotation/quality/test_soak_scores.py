"""How often the rules about controls find who does not look, and how often they reproach who does: simulated people.

Controls come as `annotation.quality.planting` makes them: each label has both answers among them, at least a third
each. It is looked again and again whether anything is said, as by somebody who looks at `citejury annotation status`
often.
"""

import sys
from collections.abc import Callable
from random import Random

import pytest

from annotation.argilla.labels import LABELS, TASKS, TaskName
from annotation.quality.scores import ControlAnswer, Habit, score_answers

SEED = 20261123
PEOPLE, SAMPLE = 600, 20
WITHIN, LONGEST = 30, 60
"""Controls within which somebody is to be found, and until which honest people are watched."""
LOOKS = 3
"""After so many controls it is looked whether anything is said, again and again."""

Ways = dict[str, Callable[[], "Person"]]
Person = Callable[[Random, dict[str, bool]], dict[str, bool]]
"""What somebody says to the labels of a control with these known answers."""


def honest(error: float) -> Person:
    return lambda random, known: {label: value != (random.random() < error) for label, value in known.items()}


def misled(random: Random, known: dict[str, bool]) -> dict[str, bool]:
    """Errs in one answer of ten, most of them on the one control of five that is hard."""
    return honest(0.4 if random.random() < 0.2 else 0.025)(random, known)


def always(said: bool, slips: float = 0.0) -> Person:
    return lambda random, known: {label: said != (random.random() < slips) for label in known}


def always_by_label(random: Random) -> Person:
    """Says yes to some labels and no to others, whatever is shown."""
    said = {label: random.random() < 0.5 for task in TASKS for label in LABELS[task]}
    return lambda random, known: {label: said[label] for label in known}


def known_answers(task: TaskName, number: int, random: Random) -> list[dict[str, bool]]:
    """The answers of so many controls, at least a third of them yes and a third no for each label, in any order."""
    columns = {}
    for label in LABELS[task]:
        yes = random.randint(-(-number // 3), number - -(-number // 3)) if number >= 2 else number // 2
        column = [place < yes for place in range(number)]
        random.shuffle(column)
        columns[label] = column
    return [{label: column[place] for label, column in columns.items()} for place in range(number)]


def answered(person: Person, tasks: tuple[TaskName, ...], number: int, random: Random) -> list[list[ControlAnswer]]:
    """One person's answers to each of her controls in the order in which she meets them."""
    controls = [(task, known) for task in tasks for known in known_answers(task, number // len(tasks), random)]
    random.shuffle(controls)
    return [
        [
            ControlAnswer("anna", task, label, "known", str(place), known[label], given)
            for label, given in person(random, known).items()
        ]
        for place, (task, known) in enumerate(controls)
    ]


def said_of(person: Person, tasks: tuple[TaskName, ...], number: int, random: Random) -> set[Habit]:
    """What is said of the person at any time until so many controls."""
    met: list[ControlAnswer] = []
    said: set[Habit] = set()
    for place, control in enumerate(answered(person, tasks, number, random), start=1):
        met += control
        if place % LOOKS == 0:
            said |= {notice.habit for notice in score_answers(met)[0].notices}
    return said


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def share_of(people: list[set[Habit]], *habits: Habit) -> float:
    return sum(bool(said & set(habits)) for said in people) / len(people)


WORK: dict[str, tuple[TaskName, ...]] = {"all tasks": TASKS, **{task: (task,) for task in TASKS}}
every_work = pytest.mark.parametrize("tasks", WORK.values(), ids=WORK)


def check_found(tasks: tuple[TaskName, ...], count: int) -> None:
    random = Random(SEED)
    ways: Ways = {
        "yes": lambda: always(True),
        "no": lambda: always(False),
        "by label": lambda: always_by_label(random),
        "no with slips": lambda: always(False, slips=0.03),
    }
    for name, way in ways.items():
        found = share_of([said_of(way(), tasks, WITHIN, random) for _ in range(count)], "same_always", "same_label")
        tell(f"always {name}, {'+'.join(tasks)}: {found:.3f} found within {WITHIN}")
        assert found >= 0.95
    guessing = share_of([said_of(honest(0.5), tasks, WITHIN, random) for _ in range(count)], "many_wrong")
    tell(f"guessing, {'+'.join(tasks)}: {guessing:.3f} found within {WITHIN}")
    assert guessing >= 0.95


def check_spared(tasks: tuple[TaskName, ...], count: int) -> None:
    random = Random(SEED)
    people_who_look: dict[str, Person] = {"an error of .1": honest(0.1), "errors on hard controls": misled}
    for name, person in people_who_look.items():
        people = [said_of(person, tasks, LONGEST, random) for _ in range(count)]
        same, wrong = share_of(people, "same_always", "same_label"), share_of(people, "many_wrong")
        tell(f"{name}, {'+'.join(tasks)}: same {same:.4f}, wrong {wrong:.4f} until {LONGEST}")
        assert share_of(people, "same_always", "same_label", "many_wrong") <= 0.05


@every_work
def test_the_same_said_is_found_within_thirty_controls_and_honesty_spared(
    tasks: tuple[TaskName, ...],
) -> None:
    check_found(tasks, SAMPLE)
    check_spared(tasks, SAMPLE)


@pytest.mark.soak
@every_work
def test_rules_find_and_spare_people_at_full_size(tasks: tuple[TaskName, ...]) -> None:
    check_found(tasks, PEOPLE)
    check_spared(tasks, PEOPLE)
