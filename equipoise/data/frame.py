"""`Frame`: at which sizes image files are kept, and seen by networks."""

from __future__ import annotations

from dataclasses import dataclass

from ..core import checks

MARGIN = 8 / 7  # the usual short side of 256 for views of 224


@dataclass(frozen=True)
class Frame:
    """Sizes in pixels. With `size` alone, the middle square of each image is kept, at `size` × `size`.

    Args:
        size: side of the square that networks see.
        resize: images are scaled so that their short side is this before the test view, the middle square of `size`, is
            cut out of them; by default `size`.
        keep: images are kept in their own shape, with a short side of at most this; by default `resize`.

    >>> Frame(224, resize=256)
    Frame(size=224, resize=256, keep=256)
    """

    size: int
    resize: int | None = None
    keep: int | None = None

    def __post_init__(self) -> None:
        checks.whole("size", self.size, 1)
        if self.resize is None and self.keep is None:
            return
        resize = self.size if self.resize is None else checks.whole("resize", self.resize, 1)
        keep = resize if self.keep is None else checks.whole("keep", self.keep, 1)
        if not self.size <= resize <= keep:
            raise ValueError(
                f"expected size ≤ resize ≤ keep, got {self.size}, {resize} and {keep}: the test view of `size` is cut "
                "out of images with a short side of `resize`, and those are made of what is kept"
            )
        object.__setattr__(self, "resize", resize)
        object.__setattr__(self, "keep", keep)

    @property
    def whole(self) -> bool:
        """Whether images keep their shape."""
        return self.keep is not None


def frame_of_photographs(size: int, resize: int | None) -> Frame:
    """Images are kept whole; the test view is the middle of an image whose short side is `resize`.

    >>> frame_of_photographs(224, None).resize
    256
    """
    checks.whole("size", size, 1)
    return Frame(size, round(MARGIN * size) if resize is None else resize)
