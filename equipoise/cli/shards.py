"""Large sets in tar files: `equipoise shards`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ..core.words import counted
from .app import app, console


@app.command()
def shards(
    path: Annotated[
        Path, typer.Argument(help="A folder with one folder per class, or one of tar files.", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A new folder for shards; needed where PATH has images.")
    ] = None,
    megabytes: Annotated[int, typer.Option(min=1, max=1_000_000, help="Size of a shard, about.")] = 256,
) -> None:
    """Put a folder of images into tar files (WebDataset), or write the index of tar files that other programs made.

    With --out, PATH has one folder per class, perhaps inside train, val and test; its images are copied into shards in
    random order, and an index is written beside them. Without --out, PATH has tar files with an image and a class
    number (.cls) in each sample, and gets an index. The task is then shards(path='…'); docs/data.md explains it.
    """
    from ..data import index_shards, read_index, write_shards
    from ..study import OnTerminal

    with OnTerminal(console).stages() as progress:
        if out is None:
            written = index_shards(path, progress=progress)
        else:
            written = write_shards(path, out, shard_bytes=megabytes * 2**20, progress=progress)
    index = read_index(written.parent)
    for part in index.parts:
        counts = index.class_counts(part)
        images, classes = counted(sum(counts), "image"), counted(len(counts), "class", "classes")
        console.print(f"{part}: {images} of {classes}, {min(counts):,} to {max(counts):,} a class")
    console.print(f"Index: [bold]{escape(str(written))}[/]", soft_wrap=True)
