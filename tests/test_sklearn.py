"""Estimators as scikit-learn and imbalanced-learn use them."""

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import prune4rel as p4r
from prune4rel.sklearn import LabelCleaner, NoisyLabelClassifier, SubsetSelector


@parametrize_with_checks(
    [NoisyLabelClassifier(DecisionTreeClassifier(max_depth=3), cv=2), SubsetSelector(), LabelCleaner()]
)
def test_it_is_an_estimator(estimator, check):
    check(estimator)


def some_data(n=300, wrong=0.2, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    X = 4 * rng.normal(size=(3, 8))[truth] + rng.normal(size=(n, 8))
    y = np.where(rng.random(n) < wrong, (truth + 1) % 3, truth)
    return X, y, truth


@pytest.mark.parametrize("train_on", ["kept", "weighted", "corrected"])
def test_what_memorises_learns_better_from_labels_that_were_judged(train_on):
    X, y, truth = some_data(1300)
    (X, fresh), y, (truth, right) = np.split(X, [300]), y[:300], np.split(truth, [300])
    splitter = DecisionTreeClassifier(min_impurity_decrease=1e-4, random_state=0)  # splits for what weighs something
    memoriser = splitter if train_on == "weighted" else KNeighborsClassifier(1)
    plain = memoriser.fit(X, y).score(fresh, right)
    model = NoisyLabelClassifier(memoriser, train_on=train_on, judging="features").fit(X, y)
    assert model.score(fresh, right) > plain + 0.05
    assert (model.corrected_labels_ == truth).mean() > 0.95
    assert ((y != truth) == model.label_issues_).mean() > 0.95
    np.testing.assert_allclose(model.noise_matrix_.sum(axis=1), 1)
    assert model.noise_matrix_[0, 1] == pytest.approx(0.2, abs=0.1)
    assert isinstance(model.labels_, p4r.Labels)


def test_labels_keep_their_words():
    X, y, truth = some_data()
    names = np.array(["owl", "ant", "bee"])
    model = NoisyLabelClassifier().fit(X, names[y])
    assert model.classes_.tolist() == ["ant", "bee", "owl"]
    assert (model.corrected_labels_ == names[truth]).mean() > 0.95
    assert set(model.predict(X)) == set(names)


def test_features_may_be_sparse_and_nothing_is_made_dense():
    X, y, truth = some_data()
    X = np.where(np.abs(X) > 1, X, 0)
    model = NoisyLabelClassifier().fit(csr_matrix(X), y)
    assert (model.predict(csr_matrix(X)) == truth).mean() > 0.95
    kept, theirs = LabelCleaner().fit_resample(csr_matrix(X), y)
    assert kept.shape[0] == len(theirs) < len(y)
    picked, _ = SubsetSelector(size=30).fit_resample(csr_matrix(X), y)
    assert picked.shape == (30, 8)


def test_texts_go_by_the_classifier_alone():
    rng = np.random.default_rng(0)
    words = [["sun", "warm", "summer"], ["snow", "cold", "winter"]]
    truth = rng.integers(0, 2, 120)
    texts = [" ".join(rng.choice(words[c], 2)) for c in truth]
    y = np.where(np.arange(120) < 15, 1 - truth, truth)
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression())
    for X in (texts, pd.Series(texts), np.array(texts)):
        model = NoisyLabelClassifier(pipeline).fit(X, y)
        assert model.judging_ == "estimator"
        assert model.label_issues_[:15].all()
        assert (model.predict(X) == truth).all()
    with pytest.raises(p4r.InputError, match="X holds words: give a classifier that takes them"):
        NoisyLabelClassifier().fit(texts, y)
    with pytest.raises(p4r.InputError, match="use another classifier"):
        NoisyLabelClassifier(make_pipeline(TfidfVectorizer(), LinearSVC())).fit(texts, y)


@pytest.mark.parametrize("with_words", [False, True])
def test_tables_reach_the_classifier_as_tables(with_words):
    X, y, truth = some_data()
    table = pd.DataFrame(X, columns=list("abcdefgh"))
    if with_words:
        table["a"] = np.where(table["a"] > 0, "more", "less")
    coded = make_column_transformer(
        (OneHotEncoder(), ["a"]) if with_words else (StandardScaler(), ["a"]), remainder="passthrough"
    )
    model = NoisyLabelClassifier(make_pipeline(coded, LogisticRegression(max_iter=1000))).fit(table, y)
    assert model.judging_ == ("estimator" if with_words else "both")
    assert (model.predict(table) == truth).mean() > 0.9
    search = GridSearchCV(model, {"cv": np.array([2, 3])}, cv=2).fit(table, y)
    assert search.best_estimator_.predict_proba(table).shape == (300, 3)


def test_clone_grid_search_and_pickle(tmp_path):
    X, y, truth = some_data()
    model = NoisyLabelClassifier(LogisticRegression(max_iter=1000), random_state=3)
    assert clone(model).get_params()["random_state"] == 3
    search = GridSearchCV(model, {"estimator__C": [0.01, 1.0], "train_on": ["kept", "corrected"]}, cv=2)
    search.fit(X, y)
    assert search.best_params_.keys() == {"estimator__C", "train_on"}
    joblib.dump(search.best_estimator_, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(again.predict_proba(X), search.best_estimator_.predict_proba(X))
    assert (again.corrected_labels_ == truth).mean() > 0.95


def test_the_same_seed_gives_the_same():
    X, y, _ = some_data()
    forest = RandomForestClassifier(10, random_state=0)
    first, second = (NoisyLabelClassifier(forest).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.label_scores_, second.label_scores_)


def test_only_what_the_classifier_can_is_offered():
    X, y, _ = some_data()
    model = NoisyLabelClassifier(LinearSVC()).fit(X, y)
    assert not hasattr(model, "predict_proba")
    assert model.decision_function(X).shape == (300, 3)
    with pytest.raises(p4r.InputError, match="judging='features'"):
        NoisyLabelClassifier(LinearSVC(), judging="both").fit(X, y)


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_tables_come_back_as_tables():
    X, y, truth = some_data()
    table, series = pd.DataFrame(X, columns=list("abcdefgh")), pd.Series(y, name="kind", index=range(100, 400))
    kept, theirs = LabelCleaner().fit_resample(table, series)
    assert list(kept.columns) == list("abcdefgh")
    assert theirs.name == "kind"
    assert (theirs.to_numpy() == truth[theirs.index - 100]).mean() > 0.97
    words = pd.Categorical.from_codes(y, ["ant", "bee", "owl"])
    for given in (pd.Series(words, name="kind"), pd.Series(words.astype(str)), pd.DataFrame({"kind": words})):
        _, better = LabelCleaner("correct").fit_resample(table, given)
        assert type(better) is type(given)
        column = better["kind"] if isinstance(better, pd.DataFrame) else better
        assert column.dtype == (given["kind"] if isinstance(given, pd.DataFrame) else given).dtype
        assert (column.to_numpy() == np.array(["ant", "bee", "owl"])[truth]).mean() > 0.95
    same, better = LabelCleaner("correct").fit_resample(table, series)
    assert len(same) == 300
    assert better.index.tolist() == series.index.tolist()
    assert (better.to_numpy() == truth).mean() > 0.95


def test_a_selector_picks_what_select_picks():
    X, y, _ = some_data()
    selector = SubsetSelector("small-loss", ratio=0.1, balanced=False).fit(X, y)
    found = p4r.clean(embeddings=X, labels=y)
    chosen = p4r.select("small-loss", found.signals, ratio=0.1)
    assert selector.sample_indices_.tolist() == chosen.indices.tolist()


def test_no_class_is_emptied():
    X, y, _ = some_data()
    y = np.where(np.arange(300) % 50 == 0, 7, y)  # six members, all of them strangers
    kept, theirs = LabelCleaner().fit_resample(X, y)
    assert (theirs == 7).sum() >= 5
    assert len(kept) == len(theirs)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (NoisyLabelClassifier(train_on="keptt"), "did you mean 'kept'"),
        (NoisyLabelClassifier(judging="feature"), "did you mean 'features'"),
        (NoisyLabelClassifier(LogisticRegression), "expected a classifier"),
        (LabelCleaner("drop"), "unknown action"),
    ],
)
def test_what_cannot_be_is_refused(model, words):
    X, y, _ = some_data()
    with pytest.raises(p4r.InputError, match=words):
        model.fit(X, y)


def test_weights_need_a_classifier_that_takes_them():
    X, y, _ = some_data()
    with pytest.raises(p4r.InputError, match="takes no sample_weight"):
        NoisyLabelClassifier(KNeighborsClassifier(), train_on="weighted").fit(X, y)


def test_a_pipeline_of_imbalanced_learn_takes_the_samplers():
    pipeline = pytest.importorskip("imblearn.pipeline", reason="imbalanced-learn is not installed")
    X, y, truth = some_data()
    steps = [LabelCleaner(), SubsetSelector(ratio=0.5), LogisticRegression()]
    model = pipeline.make_pipeline(*steps).fit(X, y)
    assert (model.predict(X) == truth).mean() > 0.95
