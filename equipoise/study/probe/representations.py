"""Representations of a study's runs: each method's numbers over its seeds, and how like each other the layers are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...analysis import MinibatchCKA
from ...store import Store
from ...store.analysis import Hardness, Likeness, Matrix, MethodLayers, Row
from ...train.layers import FEATURES
from .kept import Kept
from .predictions import DRAWN, between_methods, tree_of
from .subjects import Numbers, Subject, by_method, columns_over_seeds, few_of, over_seeds

SEEDS = 3  # runs of a method of which all layers are compared with those of other runs

Found = Mapping[str, Numbers]  # key of a run -> its numbers


def summarize(subjects: Sequence[Subject], numbers: Found) -> tuple[MethodLayers, ...]:
    """Each method's numbers: means over its runs with intervals; densities and spectra as means."""
    return tuple(_method(name, [numbers[s.key] for s in group]) for name, group in by_method(subjects).items())


def _method(name: str, runs: list[Numbers]) -> MethodLayers:
    first = runs[0]
    return MethodLayers(
        name=name,
        layers=tuple(first["layers"]),
        separation={d: columns_over_seeds([run["separation"][d] for run in runs]) for d in first["separation"]},
        centered=over_seeds([run["centered"] for run in runs]),
        nonzero=columns_over_seeds([run["nonzero"] for run in runs]),
        spectra={kind: _means([run["spectra"][kind] for run in runs]) for kind in first["spectra"]},
        distances={kind: _means([run["distances"][kind] for run in runs]) for kind in ("within", "between")},
        pairs_of=first["distances"]["samples"],
        hardness=_hardness([run["hardness"] for run in runs]) if "hardness" in first else None,
    )


def _hardness(runs: list[Numbers]) -> Hardness:
    mean, right, wrong = (over_seeds([run[part] for run in runs]) for part in ("mean", "right", "wrong"))
    return Hardness(mean, right, wrong, _means([run["density"] for run in runs]))


def _means(rows: Sequence[Sequence[float | None]]) -> Row:
    """Of each column that all rows have; a value that is not known in some row is not known."""
    columns = zip(*rows, strict=False)  # of fewer classes there are fewer singular values
    return tuple(np.mean(np.array(list(columns), dtype=np.float64), axis=1).tolist())


# -- similarity of layers --------------------------------------------------------------------------------------------


def compare_layers(store: Store, subjects: Sequence[Subject], numbers: Found, maps: str) -> Likeness | None:
    """Debiased linear CKA by what is kept of layers: of all runs at the features, of a few runs between all layers."""
    if len(subjects) < 2:
        return None
    features = _cka([(s, [FEATURES]) for s in subjects], store, numbers)
    few, drawn = [subjects[i] for i in few_of(subjects, SEEDS * len(by_method(subjects)))], few_of(subjects, DRAWN)
    order, tree = tree_of(features[np.ix_(drawn, drawn)])
    return Likeness(
        images=numbers[subjects[0].key]["kept"],
        runs=tuple(subjects[i].named for i in drawn),
        features=features[np.ix_(drawn, drawn)].tolist(),
        order=order,
        tree=tree,
        methods=tuple(by_method(subjects)),
        between=between_methods(subjects, features),
        seeds=max(map(len, by_method(few).values())),
        layers=_between_layers(few, store, numbers),
        maps=maps,
    )


def _between_layers(subjects: list[Subject], store: Store, numbers: Found) -> tuple[tuple[Matrix | None, ...], ...]:
    """For each pair of methods a matrix (L, L'): CKA of each layer of the one with each of the other."""
    names = {s.key: numbers[s.key]["layers"] for s in subjects}
    whole = _cka([(s, names[s.key]) for s in subjects], store, numbers)
    starts = np.cumsum([0, *(len(names[s.key]) for s in subjects)])

    def block(i: int, j: int) -> np.ndarray:
        return whole[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]

    places = [[i for i, s in enumerate(subjects) if s.method == method] for method in by_method(subjects)]
    return tuple(tuple(_mean_block(subjects, block, rows, columns) for columns in places) for rows in places)


def _mean_block(subjects: list[Subject], block: Any, rows: list[int], columns: list[int]) -> Matrix | None:
    """Over pairs of unlike seeds, as `between_methods`."""
    pairs = [(i, j) for i in rows for j in columns if i != j]
    unlike = [(i, j) for i, j in pairs if subjects[i].seed != subjects[j].seed]
    blocks = [block(i, j) for i, j in unlike or pairs]
    return np.mean(blocks, axis=0).tolist() if blocks else None


def _cka(wanted: list[tuple[Subject, list[str]]], store: Store, numbers: Found) -> np.ndarray:
    """CKA (K, K) of the K layers of these runs, one run after the other."""
    cka, layers = MinibatchCKA(), []
    for subject, names in wanted:
        kept = Kept(store, subject.key, numbers[subject.key])
        layers += [kept.grams(name) for name in names]
    for grams in zip(*layers, strict=True):  # all layers of a batch of images
        cka.update_grams(grams)
    return cka.compute().numpy()
