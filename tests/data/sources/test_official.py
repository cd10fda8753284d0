"""What is said of every published set: its row in docs/data.md, its sentence where it is missing."""

from pathlib import Path

import pytest

from equipoise.core import EquipoiseError, card
from equipoise.data.sources import OFFICIAL

ROWS = {
    cells[1].strip(" `"): cells
    for line in Path(__file__).parents[3].joinpath("docs", "data.md").read_text().splitlines()
    if len(cells := line.split("|")) == 7
}


@pytest.mark.parametrize("task", OFFICIAL)
def test_its_row_in_the_documents(task):
    _, _, classes, images, files, _, _ = ROWS[task]
    official = OFFICIAL[task]
    told = [0 if cell == "–" else int(cell.replace(",", "")) for cell in images.strip().split(", ")]
    assert official.size == (int(classes.replace(",", "")), told[0], told[2], told[1])
    assert all((layout.folder or layout.files[0]) in files for layout in official.layouts)


@pytest.mark.parametrize("task", OFFICIAL)
def test_a_missing_set_says_where_to_get_it(task, tmp_path):
    entry, official = card(task, "task"), OFFICIAL[task]
    with pytest.raises(EquipoiseError) as error:
        entry.factory(root=tmp_path)
    text = str(error.value)
    assert f"the files of {task} were not found" in text and official.get in text
    assert all(name in text for layout in official.layouts for name in layout.files)
    numbers = [number for number in official.size if number]
    assert entry.year and "Reference:" in entry.factory.__doc__ and "Differs from the paper:" in entry.factory.__doc__
    words = {10: "ten", 100: "a hundred", 200: "two hundred", 1000: "a thousand"}
    for number in numbers:
        assert f"{number:,}" in entry.factory.__doc__ or words[number] in entry.factory.__doc__


@pytest.mark.parametrize("task", [name for name, _ in OFFICIAL.items() if "size" in card(name, "task").parameters])
def test_a_size_is_checked_before_files_are_looked_for(task, tmp_path):
    with pytest.raises(ValueError, match="size must be"):
        card(task, "task").factory(root=tmp_path, size=0)


@pytest.mark.parametrize("task", [name for name, _ in OFFICIAL.items() if "resize" in card(name, "task").parameters])
def test_images_cannot_be_smaller_than_what_is_cut_out_of_them(task, tmp_path):
    with pytest.raises(ValueError, match="expected size ≤ resize"):
        card(task, "task").factory(root=tmp_path, size=64, resize=63)
