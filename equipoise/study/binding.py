"""Binds a study to its data: what the images are goes into every recipe, and so into the key of every run.

Runs on other images then have other keys: they cannot be taken for runs of this study, whatever lies in its folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..analysis.statistics.priority import check_classes
from ..core import Spec, card
from ..core.escaping import visible
from ..core.files import features_folder
from ..data import DataError, Task, data_notes, load_task, placeless
from ..store import Record, Store
from ..train import Recipe, TaskChoice
from .study import Study


def bound(study: Study, store: Store | None = None) -> Study:
    """The study with the content of its data in every recipe. Files are looked through, and not decoded.

    Data that cannot answer the study's question is refused: a class that the priority names and that is not there, an
    empty test set, other images than a recipe was bound to before, or than the runs in `store` saw.
    """
    return _with_data(study, store)[0]


def bind(study: Study, store: Store, say: Callable[[str], None]) -> Study:
    """The same for a study about to run in `store`; its data is described."""
    study, tasks = _with_data(study, store)
    said = []
    for choice, task in tasks.items():
        whole = choice.imbalance is None and choice.n_max is None
        said += [*data_notes(task, whole), *_batch_notes(study, choice, task)]
    said += [note for recipe in study.methods.values() if (note := _augmentation(recipe))]
    said += [note for recipe in study.methods.values() if (note := recipe.head_note(tasks[recipe.task]))]
    said += [note for recipe in study.methods.values() if (note := _features(recipe))]
    for note in dict.fromkeys(said):
        say(note)
    return study


def _batch_notes(study: Study, choice: TaskChoice, task: Task) -> list[str]:
    """Batch sizes that no batch can have."""
    images = len(task.train)
    asked = {recipe.plan.batch_size for recipe in study.methods.values() if recipe.task == choice}
    return [
        f"batch_size = {size:,} is more than there are training images: every batch has all {images:,} of them."
        for size in sorted(asked)
        if size > images
    ]


def _with_data(study: Study, store: Store | None) -> tuple[Study, dict[TaskChoice, Task]]:
    """The study bound to its data, and that."""
    tasks = {choice: _task(study, choice) for choice in _tasks(study)}
    contents = {choice: replace(choice, content=task.content) for choice, task in tasks.items()}
    recipes = {name: replace(recipe, task=contents[recipe.task]) for name, recipe in study.methods.items()}
    study = replace(study, methods=recipes)
    if store is not None:
        refuse_other_data(study, store)
    return study, {contents[choice]: task for choice, task in tasks.items()}


def refuse_other_data(study: Study, store: Store) -> None:
    """Stop where the store has runs of this task that saw other images than there are now."""
    now = {placeless(task.name): task for task in _tasks(study) if task.content}
    if not now or not store.exists:
        return
    for name, task in now.items():
        others = [record for record in store.records() if _saw_other_images(record, name, task)]
        if others:
            raise DataError(_other_images(others, store, task, _task(study, task).class_names))


def _saw_other_images(record: Record, name: str, task: TaskChoice) -> bool:
    seen = record.recipe["task"]
    return placeless(seen["name"]) == name and seen.get("content") != task.content


def _other_images(records: list[Record], store: Store, task: TaskChoice, class_names: tuple[str, ...]) -> str:
    count = "1 run" if len(records) == 1 else f"{len(records)} runs"
    then = next((record.class_names for record in records if record.class_names), class_names)
    classes = "" if then == class_names else f" Classes then: {', '.join(then)}; now: {', '.join(class_names)}."
    way_out = (
        f"{'It is' if len(records) == 1 else 'They are'} kept. To train every method on the images that are there now, "
        "choose another folder with --out"
    )
    if all(record.recipe["task"].get("content") is None for record in records):
        return (
            f"{count} in {store.path} were trained by a version of equipoise that did not record which images it saw, "
            f"so they cannot be compared with new ones. {way_out}."
        )
    return (
        f"{count} in {store.path} saw other images than {visible(task.name)} has now: images, classes or their order "
        f"have changed since, and what was learned from unlike images is not compared.{classes} {way_out}; to go on "
        "here, put the images back as they were."
    )


def _tasks(study: Study) -> list[TaskChoice]:
    return list(dict.fromkeys(recipe.task for recipe in study.methods.values()))


def _task(study: Study, choice: TaskChoice) -> Task:
    """A task of the study with the images of a folder left in their files, if it can answer the study's question."""
    task = load_task(**choice.__dict__, seed=study.seeds[0], decode=False)
    study.check(choice, task)
    if study.priority is not None:
        check_classes(study.priority, task.class_names)
    if not len(task.test):
        raise DataError(f"{visible(choice.name)} has no test images, so a study of it has nothing to report: add some")
    return task


def _features(recipe: Recipe) -> str | None:
    """Where a head is trained on features."""
    if recipe.plan.train == "all":
        return None
    return (
        f"Heads are trained on the features that {recipe.model} gives, which stays as it is: it looks at every image "
        f"once, without augmentation, and {features_folder()} keeps what it saw."
    )


def _augmentation(recipe: Recipe) -> str | None:
    """What the data set brings along, where the user has not chosen otherwise."""
    brought = card(Spec.parse(recipe.task.name).name, "task").companions.get("augment")
    if brought is None or recipe.augment != str(Spec.parse(brought).resolved("augment")):
        return None
    said = f"Training images are augmented as this data set suggests: {recipe.augment}. "
    if dict(Spec.parse(recipe.augment).params).get("flip"):
        said += "Half of them are mirrored: where a mirror image is of another class, say flip=False there. "
    return said + 'To train on the images as they are, write augment = "none" in [base].'
