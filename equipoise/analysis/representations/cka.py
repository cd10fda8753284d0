"""Linear centred kernel alignment: how alike two representations of the same samples are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._kinds import Array, as_tensor, double, either_kind, to_numpy
from ._rows import lengths, mean_row, pieces, rows_at_once, rows_of, sum_of_squares

Layers = Sequence[Any]  # arrays or tensors, each (N, d) or (N, c, h, w)

MANY = 4096  # samples from which features in single precision are multiplied in it
RUN = 512  # rows of them at a time, whose products are added in float64: 7 digits are right, for half the time
ROUNDING = 1e-12  # a debiased self term below this share of the plain one is rounding


@either_kind
def linear_cka(x: Array, y: Array, debiased: bool = False) -> Any:
    r"""Similarity of two representations x (N, d) and y (N, e) of the same samples: 1 if alike, near 0 if unrelated.

    .. math:: \mathrm{CKA} = \frac{\mathrm{HSIC}(X, Y)}{\sqrt{\mathrm{HSIC}(X, X) \, \mathrm{HSIC}(Y, Y)}}, \qquad
        \mathrm{HSIC}(X, Y) = \langle X X^\top, Y Y^\top \rangle = \|X^\top Y\|_F^2

    with columns centred. Rotating, shifting or scaling a representation does not change it. Maps (N, c, h, w) are
    flattened. An N × N matrix is formed only of a representation with N < d, where it is the smaller one. Computed in
    float64; on the CPU, features of 4096 samples and more that come in single or half precision are multiplied in
    single precision and added in float64, which leaves seven digits.

    Args:
        x, y: one row for each sample, in the same order.
        debiased: with the unbiased HSIC of Song et al.; without it few samples with many features look alike. The
            diagonals of both kernels are set to 0 and the rest is centred to suit. Where columns are centred already,
            and with :math:`a_i = \|x_i\|^2` and :math:`b_i = \|y_i\|^2`, that comes to

            .. math:: \|X^\top Y\|_F^2 - \frac{n}{n-2} \sum_i a_i b_i + \frac{\sum_i a_i \sum_i b_i}{(n-1)(n-2)}

            and a factor that cancels. Needs n > 3, and can be a little below 0.

    NaN if a representation is constant; debiased, also if all rows but one are alike.

    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [2.0, 0.0]])
    >>> linear_cka(x, 3 * x.flip(1) + 1)
    tensor(1.0000, dtype=torch.float64)
    >>> linear_cka(x, x[:, :1], debiased=True)
    tensor(0.8704, dtype=torch.float64)

    Reference: Kornblith, Norouzi, Lee, Hinton. Similarity of Neural Network Representations Revisited. ICML 2019.
    Song, Smola, Gretton, Bedo, Borgwardt. Feature Selection via Dependence Maximization. JMLR 2012.
    """
    return cka_matrix([x], [y], debiased)[0, 0]


def cka_matrix(xs: Layers, ys: Layers | None = None, debiased: bool = False) -> Any:
    """`linear_cka` of each of `xs` with each of `ys`: (len(xs), len(ys)); of `xs` among themselves without `ys`.

    All must be of the same samples in the same order; for all layers of all runs give them in one list. What concerns
    one representation alone is computed once. The answer is a tensor if any of them is one, else a numpy array.

    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    >>> cka_matrix([x, x[:, :1]])
    tensor([[1.0000, 0.7071],
            [0.7071, 1.0000]], dtype=torch.float64)
    """
    left, right, tensors = _given(xs, ys)
    layers = [_layer(x) for x in left]
    others = layers if right is None else [_layer(y) for y in right]
    plain = _products(layers, others)
    if not debiased:
        return _answer(_alignment(plain, plain), tensors)
    if len(left[0]) < 4:
        raise ValueError(f"debiased CKA needs at least 4 samples, not {len(left[0])}")
    squares = (torch.stack([layer.squares for layer in side]) for side in (layers, others))
    return _answer(_alignment(_debias(plain, *squares), plain), tensors)


@either_kind
def gram_matrix(x: Array) -> Any:
    """Products of all pairs of centred rows: (N, d) -> (N, N) in float64, for `MinibatchCKA`. Maps are flattened.

    >>> gram_matrix([[1.0], [3.0]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    return _gram(rows_of(x, "x"))


class MinibatchCKA:
    r"""Debiased `cka_matrix` of more samples than fit in memory, from the HSIC of each batch.

    .. math:: \frac{\sum_b \mathrm{HSIC}(X_b, Y_b)}
        {\sqrt{\sum_b \mathrm{HSIC}(X_b, X_b)} \sqrt{\sum_b \mathrm{HSIC}(Y_b, Y_b)}}

    HSIC is the debiased one without division by n(n - 3), so that a smaller last batch counts with that weight against
    the others, and batches of fewer than 4 samples do not count. A Gram matrix n × n of each representation is held
    during an update.

    NaN where a representation is constant within every batch.

    >>> cka = MinibatchCKA()
    >>> x = torch.arange(24.0).reshape(8, 3).square()
    >>> cka.update([x[:4], x[:4, :1]])
    >>> cka.update([x[4:], x[4:, :1]])
    >>> cka.compute()
    tensor([[1.0000, 0.9996],
            [0.9996, 1.0000]], dtype=torch.float64)

    Reference: Nguyen, Raghu, Kornblith. Do Wide and Deep Networks Learn the Same Things? ICLR 2021.
    """

    def __init__(self) -> None:
        self.plain: _Products | None = None
        self.debiased: _Products | None = None
        self.tensors = False

    def update(self, xs: Layers, ys: Layers | None = None) -> None:
        """Add a batch of each representation: of `xs` and of `ys`, or of `xs` to be compared among themselves."""
        left, right, tensors = _given(xs, ys)
        self.tensors |= tensors
        x = torch.stack([_gram(rows) for rows in left])
        self._add(x, x if right is None else torch.stack([_gram(rows) for rows in right]))

    def update_grams(self, grams: Sequence[Tensor]) -> None:
        """Add a batch by the `gram_matrix` (n, n) of each representation, to be compared among themselves.

        A Gram matrix takes less room than maps have values, so these need not be kept.
        """
        self.tensors = True
        x = double(torch.stack(list(grams)))
        self._add(x, x)

    def _add(self, x: Tensor, y: Tensor) -> None:
        if x.shape[1] < 4:
            return
        plain = _Products(x.flatten(1) @ y.flatten(1).T, x.square().sum(dim=(1, 2)), y.square().sum(dim=(1, 2)))
        debiased = _debias(plain, x.diagonal(dim1=1, dim2=2), y.diagonal(dim1=1, dim2=2))
        self.plain, self.debiased = _sum(self.plain, plain), _sum(self.debiased, debiased)

    def compute(self) -> Any:
        """CKA of all batches so far: (len(xs), len(ys))."""
        if self.plain is None or self.debiased is None:
            raise ValueError("there is no batch of at least 4 samples yet; call update first")
        return _answer(_alignment(self.debiased, self.plain), self.tensors)


class _Products(NamedTuple):
    """⟨K, L⟩ of the kernels of two lists of representations: with each other (L, M), and each with itself."""

    cross: Tensor
    own_x: Tensor
    own_y: Tensor


@dataclass(frozen=True)
class _Layer:
    """One representation, ready for products."""

    x: Tensor  # (N, d) as it came
    mean: Tensor
    squares: Tensor  # (N,) squared lengths of the centred rows
    gram: Tensor | None  # of the centred rows, where N < d

    @property
    def is_single(self) -> bool:
        # on a GPU a setting of the user's may leave single precision ten bits
        return self.x.dtype != torch.float64 and len(self.x) >= MANY and self.x.is_cpu

    @property
    def size(self) -> Tensor:
        """The length of the longest centred row, or 1 if all are 0."""
        longest = self.squares.max().sqrt()
        return torch.where(longest > 0, longest, 1.0)

    def centred(self, rows: int | None = None) -> Iterator[Tensor]:
        return (part - self.mean for part in pieces(self.x, rows))

    def in_single(self) -> Iterator[Tensor]:
        """Centred rows in float32, the longest of length 1: nothing can overflow."""
        size = self.size
        return (part.div_(size).float() for part in self.centred(RUN))


def _layer(x: Tensor) -> _Layer:
    mean = mean_row(x)
    squares = torch.cat([lengths(part - mean).square() for part in pieces(x)])
    return _Layer(x, mean, squares, _gram(x) if len(x) < x.shape[1] else None)


def _gram(x: Tensor) -> Tensor:
    """Centred rows times themselves: (N, d) -> (N, N), some columns at a time."""
    return sum_of_squares(_centred_rows(columns) for columns in pieces(x.T))


def _centred_rows(x: Tensor) -> Tensor:
    from_first = x - x[:, :1]  # as in mean_row: what is constant comes out as 0
    return from_first - from_first.mean(dim=1, keepdim=True)


def _inner(p: _Layer, q: _Layer) -> Tensor:
    """⟨K, L⟩ of the kernels of two representations, by whatever of K, L, X and Y is the smallest."""
    if p.gram is None and q.gram is not None:
        p, q = q, p
    if p.gram is None:
        return _product(p, q).square().sum()
    if q.gram is not None:
        return (p.gram * q.gram).sum()
    y = torch.cat(list(q.centred()))
    return (y * (p.gram @ y)).sum()


def _product(p: _Layer, q: _Layer) -> Tensor:
    """XᵀY of centred rows: (d, e)."""
    if p.is_single and q.is_single:
        return _product_in_single(p, q)
    if p is q:
        return sum_of_squares(p.centred())
    product = torch.zeros(p.x.shape[1], q.x.shape[1], dtype=torch.float64, device=p.x.device)
    rows = rows_at_once(max(product.shape))
    for x, y in zip(p.centred(rows), q.centred(rows), strict=True):
        product.addmm_(x.T, y)
    return product


def _product_in_single(p: _Layer, q: _Layer) -> Tensor:
    scale = p.size * q.size
    if p is q:
        return sum_of_squares(p.in_single()).mul_(scale)
    product = torch.zeros(p.x.shape[1], q.x.shape[1], dtype=torch.float64, device=p.x.device)
    for x, y in zip(p.in_single(), q.in_single(), strict=True):
        product += x.T @ y
    return product.mul_(scale)


def _products(xs: list[_Layer], ys: list[_Layer]) -> _Products:
    own_x = torch.stack([_inner(p, p) for p in xs])
    if xs is ys:
        cross = torch.diag(own_x)
        for i, j in itertools.combinations(range(len(xs)), 2):
            cross[i, j] = cross[j, i] = _inner(xs[i], xs[j])
        return _Products(cross, own_x, own_x)
    cross = torch.stack([torch.stack([_inner(p, q) for q in ys]) for p in xs])
    return _Products(cross, own_x, torch.stack([_inner(q, q) for q in ys]))


def _debias(plain: _Products, a: Tensor, b: Tensor) -> _Products:
    """The unbiased HSIC times n(n - 3), from squared lengths of the centred rows a (L, n) and b (M, n)."""
    n = a.shape[1]

    def terms(both: Tensor, sums: Tensor) -> Tensor:
        return sums / ((n - 1) * (n - 2)) - n / (n - 2) * both

    return _Products(
        plain.cross + terms(a @ b.T, torch.outer(a.sum(dim=1), b.sum(dim=1))),
        plain.own_x + terms(a.square().sum(dim=1), a.sum(dim=1).square()),
        plain.own_y + terms(b.square().sum(dim=1), b.sum(dim=1).square()),
    )


def _alignment(products: _Products, plain: _Products) -> Tensor:
    own_x = torch.where(products.own_x > ROUNDING * plain.own_x, products.own_x, torch.nan)
    own_y = torch.where(products.own_y > ROUNDING * plain.own_y, products.own_y, torch.nan)
    return products.cross / torch.outer(own_x.sqrt(), own_y.sqrt())


def _sum(total: _Products | None, batch: _Products) -> _Products:
    if total is None:
        return batch
    if total.cross.shape != batch.cross.shape:
        was, now = (" × ".join(map(str, p.cross.shape)) for p in (total, batch))
        raise ValueError(f"earlier batches compared {was} representations, this one {now}")
    return _Products(*map(torch.add, total, batch))


def _given(xs: Layers, ys: Layers | None) -> tuple[list[Tensor], list[Tensor] | None, bool]:
    """Both lists as rows on one device, checked, and whether a tensor was among them."""
    given = [*xs, *(ys if ys is not None else ())]
    if not len(xs) or (ys is not None and not len(ys)):
        raise ValueError("expected at least one representation to compare")
    device = next((x.device for x in given if isinstance(x, Tensor)), None)
    rows = [rows_of(as_tensor(x, device), "representations") for x in given]
    if len({len(x) for x in rows}) > 1:
        counts = ", ".join(str(len(x)) for x in rows)
        raise ValueError(f"representations must be of the same samples in the same order, not of {counts} samples")
    return rows[: len(xs)], None if ys is None else rows[len(xs) :], device is not None


def _answer(result: Tensor, tensors: bool) -> Any:
    return result if tensors else to_numpy(result)
