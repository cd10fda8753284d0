"""The README.md of a saved model: what it is, how good it is, for which images, and how to use it, in plain words."""

from __future__ import annotations

from ..core.escaping import markdown
from ..core.words import counted
from .description import Description, Score

MOST_CLASSES = 50  # that the table lists


def model_card(it: Description) -> str:
    """Markdown, ten lines of use included."""
    parts = [_what(it), _how_good(it), _for_which_images(it), _use(), _origin(it), _licence(it)]
    return "\n\n".join(parts) + "\n"


def _what(it: Description) -> str:
    names = ", ".join(map(markdown, it.class_names[:MOST_CLASSES]))
    more = f" and {len(it.class_names) - MOST_CLASSES} more" if len(it.class_names) > MOST_CLASSES else ""
    return (
        f"# A classifier of images: {markdown(it.study or it.method)}\n\n"
        f"For each image it says which of {counted(len(it.class_names), 'class', 'classes')} it shows, with a "
        f"probability for each: {names}{more}."
    )


def _how_good(it: Description) -> str:
    scores = "\n".join(f"- {markdown(score.label)}: {score}" for score in _first(it))
    calibrated = (
        f"Probabilities are calibrated on {counted(it.calibration.images, 'validation image')}."
        if it.calibration.images
        else "Probabilities are not calibrated: there were no validation images."
    )
    if not it.study:
        return (
            f"## How good it is\n\nOn images that were held out:\n\n{scores}\n\n{calibrated}\n\n"
            f"{markdown(it.verdict)}\n\n{_classes(it)}"
        )
    return (
        f"## How good it is\n\n{_expected(it)}On test images that training never saw:\n\n{scores}\n\n"
        "These are means over all trainings of this kind, with intervals for other trainings and the same test images; "
        f"this network is the one with seed {it.seed}. {calibrated}\n\n"
        f"The study it comes from found: {markdown(it.verdict)}\n\n{_classes(it)}"
    )


def _expected(it: Description) -> str:
    return "" if it.promise is None else f"{it.promise}\n\n"


def _first(it: Description) -> list[Score]:
    """The score that the study was about, then those that any reader asks for."""
    names = dict.fromkeys((it.metric, "accuracy", "balanced_accuracy", "worst_class", "ece"))
    return [it.scores[name] for name in names if name in it.scores]


def _classes(it: Description) -> str:
    recalls = it.recalls or (None,) * len(it.class_names)
    rows = [
        f"| {markdown(name)} | {count:,} | {'–' if recall is None else recall} |"
        for name, count, recall in list(zip(it.class_names, it.class_counts, recalls, strict=True))[:MOST_CLASSES]
    ]
    return "\n".join(["| class | training images | recognised |", "|---|---|---|", *rows])


def _for_which_images(it: Description) -> str:
    size = it.preprocessing.frame.size
    colours = "in colour" if it.preprocessing.channels == 3 else "in grey"
    return (
        "## For which images this holds\n\n"
        f"For images like those it was trained and tested on ({markdown(it.recipe['task']['name'])}). It sees their "
        f"middle square, {colours}, at {size} × {size} pixels. Of images from other cameras, places or times nothing "
        "is known until they are tried. An image of something else is called one of these classes too.\n\n"
        "Where classes come more or less often than in training, say so with a prior: the probabilities follow."
    )


def _use() -> str:
    return (
        "## How to use it\n\n"
        "```sh\npip install 'equipoise[study,images]'\n"
        "equipoise predict THIS_FOLDER photos --out predictions.csv\n```\n\n"
        "```python\nimport equipoise\n\n"
        'model = equipoise.TrainedModel.load("THIS_FOLDER")\n'
        'said = equipoise.predict(model, "photos")  # a folder, paths, or uint8 arrays\n'
        'for row in said.rows():\n    print(row["image"], row["prediction"], row["probability"])\n```\n\n'
        "`equipoise export THIS_FOLDER --to onnx` makes a file that runs without Equipoise."
    )


def _origin(it: Description) -> str:
    dials = [f"- {name}: `{value}`" for name, value in it.recipe.items() if isinstance(value, str)]
    versions = ", ".join(f"{name} {version}" for name, version in it.versions.items())
    content = f" of the set {it.content}" if it.content else ""
    if not it.study:
        return (
            f"## How it was made\n\nA trained {markdown(it.recipe['model'])} was corrected by 'equipoise improve': "
            f"{markdown(it.method)}.\n\n- {it.parameters:,} parameters\n- made with {versions}"
        )
    return (
        f"## How it was made\n\nMethod {markdown(it.method)} of the study {markdown(it.study)}"
        f"{': ' + markdown(it.question) if it.question else ''}\n\n"
        + "\n".join(dials)
        + f"\n- {it.parameters:,} parameters, {counted(it.recipe['plan']['epochs'], 'epoch')} of training\n"
        f"- images: {it.fingerprint}{content}\n- made with {versions}"
    )


def _licence(it: Description) -> str:
    if it.licence is None:
        return "## Licence of the weights\n\nThey were trained from nothing but the images named above."
    return f"## Licence of the weights\n\n{markdown(it.licence)}"
