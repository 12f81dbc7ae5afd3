"""scikit-learn's way to work with wrong labels: a classifier around any other, and two samplers for pipelines.

The judging is that of `prune4rel.clean`, the picking that of `prune4rel.select`; here they only wear other clothes.
"""

import warnings
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags, _safe_indexing, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
    validate_data,
)

from prune4rel.cleaning import Cleaned, clean
from prune4rel.errors import InputError, nearest
from prune4rel.methods import select
from prune4rel.methods.method import get

__all__ = ["LabelCleaner", "NoisyLabelClassifier", "SubsetSelector"]

JUDGING = ("auto", "both", "features", "estimator")
TRAIN_ON = ("kept", "weighted", "corrected")
ACTIONS = ("remove", "correct")

FEWEST = 5
"""Examples that every class keeps, however doubtful: its best ones, where there are more."""


def _has(method: str) -> Callable[[Any], bool]:
    """Whether the classifier inside has a method; it is asked again where that is decided at fitting."""

    def check(self: "NoisyLabelClassifier") -> bool:
        return hasattr(self.estimator_ if hasattr(self, "estimator_") else self._own(), method)

    return check


class NoisyLabelClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Any classifier, trained on labels part of which are wrong.

    `fit` judges every label out of sample, by cross-fitted discriminants on the features and by the classifier's own
    cross-validated probabilities. Then it trains the classifier on labels that can be trusted.

    Parameters
    ----------
    estimator
        Any classifier; logistic regression on standardised features unless told. It is cloned.
    train_on
        ``"kept"``: examples whose label is no issue; ``"weighted"``: all, each weighing what its label is worth, 0 to
        1 (the classifier's `fit` has to take `sample_weight`); ``"corrected"``: all, with labels corrected.
    judging
        By what labels are judged: ``"features"``, ``"estimator"`` (its cross-validated probabilities; then `X` may be
        whatever the estimator takes: texts, missing values) or ``"both"``. ``"auto"`` is both where the classifier
        gives probabilities, and the estimator alone where `X` is texts or a table with columns that are no numbers.
    cv
        Folds of the cross-validation, or anything scikit-learn takes for them.
    n_jobs
        Folds that are fitted at a time.
    random_state
        Of the folds of the judging.

    Attributes
    ----------
    estimator_
        The classifier, fitted.
    classes_
        (C,) classes.
    label_issues_
        (n,) bool, whether a label of the training set is believed to be wrong.
    label_scores_
        (n,) 0 to 1, how well the given label fits; low is suspicious.
    corrected_labels_
        (n,) what the labels should be, in the words of `y`.
    noise_rate_, noise_matrix_
        Estimated share of wrong labels; (C, C) by [true, given], rows sum to 1.
    labels_
        All of it as one table, `prune4rel.Labels`.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 3, 300)
    >>> X = rng.normal(size=(3, 8))[truth] * 3 + rng.normal(size=(300, 8))
    >>> y = np.where(rng.random(300) < 0.2, (truth + 1) % 3, truth)
    >>> model = NoisyLabelClassifier().fit(X, y)
    >>> bool((model.corrected_labels_ == truth).mean() > (y == truth).mean() + 0.1)
    True
    >>> model.predict(X[:3]).shape, model.noise_matrix_.shape
    ((3,), (3, 3))
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        train_on: str = "kept",
        judging: str = "auto",
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.train_on = train_on
        self.judging = judging
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Judge the labels, then train the classifier.

        Parameters
        ----------
        X
            (n, d) features, dense or sparse; with ``judging="estimator"`` whatever the classifier takes.
        y
            (n,) given labels.
        """
        _one_of("train_on", self.train_on, TRAIN_ON)
        _one_of("judging", self.judging, JUDGING)
        inside = self._own()
        self.judging_ = self._judging(inside, X)
        features, X, given = self._check(X, y)
        self.classes_, numbers = np.unique(given, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y has one class only, {self.classes_[0]!r}; a classifier needs two classes", "y")
        found = self._judge(inside, features, X, numbers)
        self.labels_ = found.labels
        self.label_issues_ = found.is_label_issue
        self.label_scores_ = found.label_score
        self.corrected_labels_ = self.classes_[found.corrected_label]
        self.noise_rate_, self.noise_matrix_ = found.noise_rate, found.noise_matrix
        if self.train_on == "weighted":
            self.estimator_ = inside.fit(X, given, **_weights(inside, found.label_score))
        elif self.train_on == "corrected":
            self.estimator_ = inside.fit(X, self.corrected_labels_)
        else:
            rows = _kept(found)
            self.estimator_ = inside.fit(_safe_indexing(X, rows), given[rows])
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of every row, (n,)."""
        answer: NDArray[Any] = self._fitted().predict(self._features(X))
        return answer

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return probabilities of the classes, (n, C), columns as in `classes_`."""
        return self._by_class(self._fitted().predict_proba(self._features(X)))

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return what the classifier's own `decision_function` says."""
        answer: NDArray[Any] = self._fitted().decision_function(self._features(X))
        return answer

    def _own(self) -> Any:
        if self.estimator is None:
            return make_pipeline(StandardScaler(with_mean=False), LogisticRegression(max_iter=1000))
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise InputError(f"estimator: expected a classifier, not {self.estimator!r}", "estimator")
        return clone(self.estimator)

    def _judging(self, inside: Any, X: Any) -> str:
        """Decide by what labels are judged."""
        speaks, has_numbers = hasattr(inside, "predict_proba"), _has_numbers(X)
        by = self.judging
        if by == "auto":
            by = ("both" if speaks else "features") if has_numbers else "estimator"
        if by != "features" and not speaks:
            otherwise = "use judging='features'" if has_numbers else "use another classifier"
            raise InputError(
                f"{type(inside).__name__} gives no probabilities to judge labels by; {otherwise}", "judging"
            )
        if self.estimator is None and not has_numbers:
            raise InputError(
                "X holds words: give a classifier that takes them, such as "
                "make_pipeline(TfidfVectorizer(), LogisticRegression())",
                "estimator",
            )
        return by

    def _check(self, X: Any, y: ArrayLike) -> tuple[Any, Any, NDArray[Any]]:
        """Return features to judge by, features for the classifier, and given labels (n,)."""
        if self.judging_ != "estimator":
            features, given = validate_data(self, X, y, accept_sparse="csr")
        else:
            if y is None:
                raise InputError("fit requires y to be passed, but the target y is None", "y")
            features, given = None, column_or_1d(y, warn=True)
            check_consistent_length(X, given)
        check_classification_targets(given)
        return features, X if features is None or hasattr(X, "columns") else features, given

    def _features(self, X: Any) -> Any:
        """Check features, and return them as the classifier takes them: tables remain tables."""
        if self._fitted() is None or self.judging_ == "estimator":
            return X
        features = validate_data(self, X, accept_sparse="csr", reset=False)
        return X if hasattr(X, "columns") else features

    def _fitted(self) -> Any:
        check_is_fitted(self, "estimator_")
        return self.estimator_

    def _by_class(self, answer: NDArray[Any]) -> NDArray[Any]:
        """Give every class its column, those that nothing was corrected to included."""
        columns = np.searchsorted(self.classes_, self.estimator_.classes_)
        if len(columns) == len(self.classes_):
            return answer
        full = np.zeros((len(answer), len(self.classes_)), dtype=answer.dtype)
        full[:, columns] = answer
        return full

    def _judge(self, inside: Any, features: Any, X: Any, numbers: NDArray[np.int64]) -> Cleaned:
        chances = None if self.judging_ == "features" else self._cross_validated(inside, X, numbers)
        if chances is None and features is None:
            raise InputError("every class has one example only: there is nothing to cross-validate on", "y")
        return _cleaned(features, numbers, chances, self.random_state)

    def _cross_validated(self, inside: Any, X: Any, numbers: NDArray[np.int64]) -> NDArray[Any] | None:
        """Return out-of-fold probabilities (n, C); None where no class has two members."""
        folds = min(self.cv, int(np.bincount(numbers).max())) if isinstance(self.cv, Integral) else self.cv
        if folds == 1:
            return None
        with warnings.catch_warnings():
            # rare classes may be absent from a fold: then nobody is said to belong to them there
            warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
            warnings.filterwarnings("ignore", message="Number of classes in training fold", category=RuntimeWarning)
            answer: NDArray[Any] = cross_val_predict(
                inside,
                X,
                numbers,
                cv=check_cv(folds, numbers, classifier=is_classifier(inside)),
                n_jobs=self.n_jobs,
                method="predict_proba",
            )
        total = answer.sum(axis=1, keepdims=True)
        chances: NDArray[Any] = np.where(total > 0, answer / np.where(total > 0, total, 1), 1 / answer.shape[1])
        return chances


class _Sampler(BaseEstimator):  # type: ignore[misc]
    """What both samplers share: features and labels checked; rows taken from whatever they came in."""

    sample_indices_: NDArray[np.int64]
    random_state: Any

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _judged(self, X: Any, y: ArrayLike) -> Cleaned:
        X, given = validate_data(self, X, y, accept_sparse="csr", ensure_min_samples=2)
        check_classification_targets(given)
        self.classes_, numbers = np.unique(given, return_inverse=True)
        return _cleaned(X, numbers, None, self.random_state)

    def fit_resample(self, X: Any, y: ArrayLike) -> tuple[Any, Any]:
        """Judge, then return the rows and labels that are to be trained on; both in the kind they came in.

        Parameters
        ----------
        X
            (n, d) features, dense or sparse.
        y
            (n,) given labels.
        """
        self.fit(X, y)
        return _safe_indexing(X, self.sample_indices_), _safe_indexing(self._relabelled(y), self.sample_indices_)

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Find out which rows are to be trained on; `sample_indices_` are their numbers."""
        raise NotImplementedError

    def _relabelled(self, y: Any) -> Any:
        return y


class SubsetSelector(_Sampler):
    """Picks the examples worth training on, for pipelines of imbalanced-learn or by itself.

    Labels are judged out of sample on the features; then a method of `prune4rel.select` goes by that.

    Parameters
    ----------
    method
        One of `prune4rel.list_methods()`.
    ratio, size
        How many: a share of the examples, or a number. One of them.
    balanced
        Go round the classes, so that each gets the same number of picks while it lasts.
    options
        Further options of the method.
    random_state
        Of the folds of the judging, and of methods that draw.

    Attributes
    ----------
    sample_indices_
        (s,) rows that were picked, in pick order.
    selection_
        The whole `prune4rel.Selection`.
    classes_, n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 300)
    >>> X = rng.normal(size=(3, 8))[y] + 0.3 * rng.normal(size=(300, 8))
    >>> few, theirs = SubsetSelector(ratio=0.1).fit_resample(X, y)
    >>> few.shape, np.bincount(theirs).tolist()
    ((30, 8), [10, 10, 10])
    """

    def __init__(
        self,
        method: str = "prune4rel",
        *,
        ratio: float | None = 0.2,
        size: int | None = None,
        balanced: bool = True,
        options: Mapping[str, Any] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.method = method
        self.ratio = ratio
        self.size = size
        self.balanced = balanced
        self.options = options
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Pick; see `fit_resample`."""
        found = self._judged(X, y)
        lonely = {"allow_zero": True} if "allow_zero" in get(self.method).options else {}  # rows of zeros are no error
        self.selection_ = select(
            self.method,
            found.signals,
            ratio=self.ratio if self.size is None else None,
            size=self.size,
            balanced=self.balanced,
            seed=_seed(self.random_state),
            **lonely | dict(self.options or {}),
        )
        self.sample_indices_ = self.selection_.indices
        return self


class LabelCleaner(_Sampler):
    """Removes or corrects wrong labels, for pipelines of imbalanced-learn or by itself.

    Parameters
    ----------
    action
        ``"remove"``: leave out examples whose label is an issue; ``"correct"``: keep all, with labels corrected.
    random_state
        Of the folds of the judging.

    Attributes
    ----------
    sample_indices_
        (s,) rows that are kept, in their order.
    label_issues_, corrected_labels_, noise_matrix_, noise_rate_, labels_
        As of `NoisyLabelClassifier`.
    classes_, n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 3, 300)
    >>> X = rng.normal(size=(3, 8))[truth] + 0.3 * rng.normal(size=(300, 8))
    >>> y = np.where(np.arange(300) < 30, (truth + 1) % 3, truth)
    >>> clean_X, clean_y = LabelCleaner().fit_resample(X, y)
    >>> same_X, better_y = LabelCleaner(action="correct").fit_resample(X, y)
    >>> len(clean_X) <= 272, len(same_X), bool((better_y == truth).mean() > 0.98)
    (True, 300, True)
    """

    def __init__(self, action: str = "remove", *, random_state: Any = 0) -> None:
        self.action = action
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Judge; see `fit_resample`."""
        _one_of("action", self.action, ACTIONS)
        found = self._judged(X, y)
        self.labels_ = found.labels
        self.label_issues_ = found.is_label_issue
        self.corrected_labels_ = self.classes_[found.corrected_label]
        self.noise_rate_, self.noise_matrix_ = found.noise_rate, found.noise_matrix
        self.sample_indices_ = _kept(found) if self.action == "remove" else np.arange(len(found))
        return self

    def _relabelled(self, y: Any) -> Any:
        if self.action == "remove":
            return y
        if not hasattr(y, "iloc"):
            return self.corrected_labels_
        better = y.copy()
        better.iloc[:] = self.corrected_labels_.reshape(y.shape)
        return better


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"unknown {name} {value!r}; {nearest(value, known)}", name)


def _has_numbers(X: Any) -> bool:
    """Whether features are numbers: neither texts nor a table with columns of words.

    >>> _has_numbers([[1, 2]]), _has_numbers(["a text"])
    (True, False)
    """
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        return all(each.is_numeric() if hasattr(each, "is_numeric") else each.kind in "biuf" for each in X.dtypes)
    in_line = isinstance(X, list | tuple) or getattr(X, "ndim", 2) == 1
    return not (in_line and len(X) and isinstance(next(iter(X)), str))


def _seed(random_state: Any) -> int:
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def _cleaned(X: Any, numbers: NDArray[np.int64], chances: NDArray[Any] | None, random_state: Any) -> Cleaned:
    with warnings.catch_warnings():
        # they were cross-validated here: that they agree with the labels is no sign that they were fitted
        warnings.filterwarnings("ignore", message="The probabilities agree", category=UserWarning)
        return clean(embeddings=X, labels=numbers, probabilities=chances, seed=_seed(random_state))


def _kept(found: Cleaned) -> NDArray[np.int64]:
    """Return rows whose label is no issue, and those of every class that are the least doubtful."""
    keep = ~found.is_label_issue
    given = found.labels.given_label
    for each in np.unique(given[~keep]):
        members = np.flatnonzero(given == each)
        best = members[np.argsort(-found.label_score[members], kind="stable")[:FEWEST]]
        keep[best] = True
    return np.flatnonzero(keep)


def _weights(inside: Any, scores: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Return the keyword by which a classifier, or the last step of a pipeline, takes weights."""
    last = inside.steps[-1] if hasattr(inside, "steps") else None
    if not has_fit_parameter(inside if last is None else last[1], "sample_weight"):
        raise InputError(
            f"{type(inside).__name__} takes no sample_weight; use train_on='kept' or 'corrected'", "train_on"
        )
    return {"sample_weight" if last is None else f"{last[0]}__sample_weight": scores}
