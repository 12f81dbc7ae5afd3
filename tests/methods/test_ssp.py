import math

import numpy as np
import pytest
from tests.oracles.ranking import assert_ranks_by, assert_same_from_disk_in_blocks, distinct
from tests.planted import EASY, HARD, MISLABELLED, N, assert_twins_side_by_side, places, planted
from threadpoolctl import threadpool_limits

import prune4rel as p4r
from prune4rel.methods.ssp import prototype_distances


def blobs(seed, *, each=25, dim=6):
    """Four directions far from each other, and their examples; lengths differ, directions hardly do."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(4), each)
    rows = (np.eye(4, dim)[of] + 0.05 * rng.normal(size=(len(of), dim))) * rng.uniform(1, 9, (len(of), 1))
    return rows.astype(np.float32), of


def cosine_distance(a, b):
    dot = math.fsum(x * y for x, y in zip(a, b, strict=True))
    return 1 - dot / math.sqrt(math.fsum(x * x for x in a) * math.fsum(x * x for x in b))


def distances(rows, of):
    """Cosine distances to the nearest mean direction of the groups, by loops."""
    rows = [[float(x) for x in row] for row in rows]
    units = [[x / math.hypot(*row) for x in row] for row in rows]
    means = []
    for g in sorted(set(of)):
        mine = [unit for unit, theirs in zip(units, of, strict=True) if theirs == g]
        means.append([math.fsum(column) / len(mine) for column in zip(*mine, strict=True)])
    return [min(cosine_distance(row, mean) for mean in means) for row in rows]


def test_distance_to_the_nearest_of_given_centroids(rng):
    rows, centroids = rng.normal(size=(30, 5)).astype(np.float32), rng.normal(size=(4, 5))
    lengths = np.linalg.norm(rows.astype(float), axis=1)
    found = prototype_distances(rows, lengths, centroids)
    wide, aims = rows.astype(float).tolist(), centroids.tolist()
    np.testing.assert_allclose(found, [min(cosine_distance(r, c) for c in aims) for r in wide], atol=1e-14)


@pytest.mark.parametrize(("direction", "keep"), [("hard", "highest"), ("prototypical", "lowest")])
def test_ranks_by_the_distance_from_well_separated_prototypes(direction, keep):
    rows, of = blobs(0)
    arrays = {"embeddings": rows, "labels": np.arange(len(of)) % 3}
    fitted = p4r.select("ssp", **arrays, size=1, clusters=4).scores
    # Mini-batches only come near the means.
    np.testing.assert_allclose(fitted, distances(rows, of), atol=0.01)
    assert_ranks_by("ssp", arrays, fitted, keep=keep, clusters=4, direction=direction)


def test_self_supervised_embeddings_go_first(small, rng):
    own = rng.normal(size=(30, 4))
    with_both = p4r.select("ssp", **small, ssl_embeddings=own, size=9)
    alone = p4r.select("ssp", labels=small["labels"], ssl_embeddings=own, size=9)
    assert with_both.indices.tolist() == alone.indices.tolist()
    assert with_both.indices.tolist() != p4r.select("ssp", **small, size=9).indices.tolist()


def test_one_cluster_a_class_unless_told_otherwise(small):
    assert p4r.select("ssp", **small, size=1).options["clusters"] == 3
    assert p4r.select("ssp", **small, size=1, clusters=5).options["clusters"] == 5
    two = {"labels": [0, 1], "embeddings": np.eye(2), "probabilities": np.full((2, 4), 0.25)}
    assert p4r.select("ssp", **two, size=1).options["clusters"] == 2


@pytest.mark.parametrize("options", [{"clusters": 0}, {"clusters": 31}, {"clusters": 2.5}, {"direction": "harder"}])
def test_refuses_what_makes_no_sense(small, options):
    with pytest.raises(p4r.InputError, match=next(iter(options))):
        p4r.select("ssp", **small, size=1, **options)


def test_lengths_do_not_matter_and_zeros_are_at_right_angles(rng):
    rows, of = blobs(1)
    stretched = rows * rng.choice([0.5, 1, 4], (len(of), 1)).astype(np.float32)
    picks = [p4r.select("ssp", embeddings=e, labels=of, size=30).indices.tolist() for e in (rows, stretched)]
    assert picks[0] == picks[1]
    assert prototype_distances(np.zeros((1, 3), dtype=np.float32), np.zeros(1), np.eye(3)).tolist() == [1.0]


def test_fewer_distinct_examples_than_clusters(small):
    chosen = p4r.select("ssp", embeddings=np.ones((30, 8)), labels=small["labels"], size=5)
    np.testing.assert_allclose(chosen.scores, 0, atol=1e-12)


def test_fits_a_sample_where_there_is_too_much(monkeypatch):
    arrays = distinct()
    assert not p4r.select("ssp", **arrays, size=5).approximate
    monkeypatch.setattr("prune4rel.methods.ssp.FIT_NUMBERS", 100)
    chosen = p4r.select("ssp", **arrays, size=5)
    assert chosen.stats["fitted_on"] == 20
    assert chosen.approximate


def test_blocks_on_disk(monkeypatch, tmp_path):
    monkeypatch.setattr("prune4rel.methods.ssp.GATHERED_ROWS", 7)
    assert_same_from_disk_in_blocks("ssp", monkeypatch, tmp_path)


def test_threads_do_not_matter(monkeypatch):
    arrays = distinct(n=3000, classes=10, dim=16)
    outcomes = []
    for threads in (1, 4):
        monkeypatch.setenv("PRUNE4REL_THREADS", str(threads))
        with threadpool_limits(threads):
            outcomes.append(p4r.select("ssp", **arrays, size=300))
    np.testing.assert_array_equal(outcomes[0].scores, outcomes[1].scores)
    np.testing.assert_array_equal(outcomes[0].indices, outcomes[1].indices)


def test_labels_play_no_part():
    relabelled = p4r.Signals(labels=(planted().labels + 1) % 3, embeddings=planted().embeddings)
    picks = [p4r.select("ssp", signals, ratio=0.3).indices.tolist() for signals in (planted(), relabelled)]
    assert picks[0] == picks[1]


def test_hard_first_and_what_lies_in_the_middle_of_a_cluster_last_mislabelled_or_not():
    place = places("ssp")
    assert place[HARD] == 0
    assert min(place[EASY], place[MISLABELLED]) > 0.8 * N
    assert_twins_side_by_side(place)
    place = places("ssp", direction="prototypical")
    assert place[HARD] == N - 1
    assert max(place[EASY], place[MISLABELLED]) < 0.2 * N
