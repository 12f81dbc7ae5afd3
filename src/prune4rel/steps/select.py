"""Select subsets by methods, and how an entry of a comparison names a method."""

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

from prune4rel.errors import InputError, nearest, refuse_unknown
from prune4rel.progress import Progress, Tasks
from prune4rel.steps.model import WHAT, ModelOptions
from prune4rel.steps.options import option, refuse_twice
from prune4rel.steps.step import DONE, SignalsStep, Step, Steps, slug, written

if TYPE_CHECKING:
    from prune4rel.methods import Method
    from prune4rel.signals import Signals

KEYS = ("method", "options", "balanced", "label", "ratios", "learners")
USUAL = {"labels", "probabilities", "embeddings", "losses"}
"""Signals that every warm-up provides."""

EVERYTHING = "everything"
"""What a training on the whole set is called."""


@dataclass(frozen=True)
class OwnMethod:
    """What a run folder says of a method in code of the user's own, so that the folder is read without running it."""

    name: str
    needs: tuple[str, ...]
    balances: bool
    code: str


@dataclass(frozen=True)
class MethodSpec:
    """Which method, with which options, what to call it, at which ratios, and which learners are trained on its picks.

    Ratios and learners are those of the whole comparison unless told.

    Examples
    --------
    >>> MethodSpec.read("prune4rel:0.4:trust", balanced=True).ratios
    (0.4,)
    >>> MethodSpec.read("prune4rel/official", balanced=True).options
    {'preset': 'official'}
    >>> MethodSpec.read({"method": "prune4rel", "options": {"tau": 0.9}, "label": "ours"}, balanced=False).label
    'ours'
    """

    method: str
    options: dict[str, Any]
    balanced: bool
    label: str
    ratios: tuple[float, ...] = ()
    learners: tuple[str, ...] = ()
    own: OwnMethod | None = None
    all_needs: tuple[str, ...] = ()

    @classmethod
    def read(
        cls, value: str | Mapping[str, Any], *, balanced: bool, own: Mapping[str, OwnMethod] = MappingProxyType({})
    ) -> Self:
        """Read ``"NAME"``, ``"NAME/PRESET"``, either with ``":RATIO"`` or ``":RATIO:LEARNER"``, or a mapping.

        `balanced` is what holds unless a mapping says so itself. Code of the user's own is imported, unless `own`
        describes it by its name.
        """
        if isinstance(value, str):
            value = in_full(value)
        if not isinstance(value, Mapping) or "method" not in value:
            raise InputError(
                f"methods: each is a name, NAME/PRESET, or a mapping with 'method', not {value!r}", "methods"
            )
        for key in value:
            if key not in KEYS:
                raise InputError(f"methods: unknown key {key!r}; {nearest(key, KEYS)}", "methods")
        from prune4rel.methods import get

        told = value["method"]
        method = own[told] if isinstance(told, str) and told in own else get(told)
        evenly = value.get("balanced", balanced)
        if not isinstance(evenly, bool):
            raise InputError(f"methods: balanced must be true or false, not {evenly!r}", "methods")
        options = _check_options(method, value.get("options"))
        described = method if isinstance(method, OwnMethod) else _describe(told, method)
        label = str(value.get("label") or _label(method.name, options))
        if label == EVERYTHING:
            raise InputError(f"methods: {label!r} means training on the whole set; choose another label", "methods")
        evenly = evenly and method.balances
        ratios, learners = _ratios(value.get("ratios")), _names(value.get("learners"))
        return cls(told, options, evenly, label, ratios, learners, described, method.needs)

    @property
    def learns(self) -> bool:
        """Whether its picks depend on a warm-up at all."""
        return any(need != "labels" for need in self.all_needs)

    @property
    def may_use(self) -> frozenset[str]:
        """Signals it goes by where they are there."""
        return frozenset(name for need in self.all_needs for name in need.split("|"))

    @property
    def needs(self) -> tuple[str, ...]:
        """Signals beyond the usual ones that a warm-up has to provide for it."""
        wanted = (need.split("|") for need in self.all_needs)
        return tuple(names[0] for names in wanted if not USUAL & set(names))

    def as_dict(self) -> dict[str, Any]:
        """Return what decides its picks; for a method in a file of the user's own, also what is in that file."""
        known = {"method": self.method, "options": self.options, "balanced": self.balanced}
        return known if self.own is None else known | {"code": self.own.code}


def in_full(entry: str) -> dict[str, Any]:
    """Return the mapping that ``NAME[/PRESET][:RATIO[:LEARNER]]`` stands for.

    >>> in_full("prune4rel/coverage:0.4:trust")
    {'method': 'prune4rel', 'options': {'preset': 'coverage'}, 'ratios': [0.4], 'learners': ['trust']}
    >>> in_full("my_file:my_function:0.4")["method"]
    'my_file:my_function'
    """
    found = re.fullmatch(r"(?P<method>.*?)(?::(?P<ratio>[\d.]+(?:e-?\d+)?)(?::(?P<learner>[^:]+))?)?", entry, re.DOTALL)
    if found is None:
        raise AssertionError("the method takes what else there is")
    name, slash, preset = found["method"].partition("/")
    value: dict[str, Any] = {"method": name, "options": {"preset": preset} if slash else {}}
    if found["ratio"]:
        try:
            value["ratios"] = [float(found["ratio"])]
        except ValueError:
            raise InputError(f"methods: {found['ratio']!r} in {entry!r} is no ratio", "methods") from None
    return value | ({"learners": [found["learner"]]} if found["learner"] else {})


def learners_named(methods: Iterable[Any]) -> tuple[str, ...]:
    """Return the learners that entries of a comparison name themselves.

    >>> learners_named(["uniform", "prune4rel:0.4:trust", {"method": "margin", "learners": ["sop"]}])
    ('trust', 'sop')
    """
    full = (in_full(each) if isinstance(each, str) else each for each in methods)
    return tuple(
        dict.fromkeys(name for one in full if isinstance(one, Mapping) for name in _names(one.get("learners")))
    )


def names_of_code(methods: Iterable[Any]) -> set[str]:
    """Names of methods, as a configuration gives them, that are code of somebody's own.

    >>> names_of_code(["uniform", {"method": "my_file:f"}, 5])
    {'my_file:f'}
    """
    names = (each.get("method") if isinstance(each, Mapping) else in_full(str(each))["method"] for each in methods)
    return {name for name in names if isinstance(name, str) and ":" in name}


def _describe(name: str, method: "Method") -> OwnMethod | None:
    return OwnMethod(method.name, method.needs, method.balances, _code_of(method)) if ":" in name else None


def _names(given: Any) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else given
    if names is None:
        return ()
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise InputError(f"methods: learners must be a list of names, not {given!r}", "methods")
    return names


def _ratios(given: Any) -> tuple[float, ...]:
    """Check some ratios; none where none are given."""
    ratios = () if given is None else tuple(given) if isinstance(given, list | tuple) else (given,)
    for ratio in ratios:
        if not isinstance(ratio, int | float) or isinstance(ratio, bool) or not 0 < ratio <= 1:
            raise InputError(f"ratios: each must be above 0 and at most 1, not {ratio!r}", "ratios")
    refuse_twice("ratios", ratios)
    return tuple(map(float, ratios))


def _label(name: str, options: Mapping[str, Any]) -> str:
    words = [str(value) if option == "preset" else f"{option}={value}" for option, value in options.items()]
    return f"{name} ({', '.join(words)})" if words else name


def _check_options(method: "Method | OwnMethod", given: Any) -> dict[str, Any]:
    """Refuse unknown options, and values of options that only take certain ones, before a warm-up was made for them."""
    options = {} if given is None else given
    if not isinstance(options, Mapping):
        raise InputError(f"methods: options of {method.name!r} must be names and values, not {options!r}", "methods")
    if isinstance(method, OwnMethod):
        return dict(options)
    refuse_unknown(f"method {method.name!r}", options, method.options, "methods")
    choices = _choices_of(method)
    for name, value in options.items():
        known = choices.get(name)
        if known is not None and (value is None or value not in known):
            raise InputError(f"method {method.name!r}: unknown {name} {value!r}; {nearest(value, known)}", "methods")
    return dict(options)


def _choices_of(method: "Method") -> dict[str, list[str]]:
    """Return which words an option takes, of options that take nothing else."""
    try:
        hints = get_type_hints(method.run)
    except (NameError, TypeError):  # a user's own function may be annotated in any way
        return {}
    found = {}
    for name, hint in hints.items():
        parts = [hint] if get_origin(hint) is Literal else [part for part in get_args(hint) if part is not NoneType]
        if parts and all(get_origin(part) is Literal for part in parts):
            found[name] = [word for part in parts for word in get_args(part)]
    return found


def _code_of(method: "Method") -> str:
    """Return a fingerprint of the file a method is in."""
    import hashlib

    try:
        return hashlib.sha256(Path(inspect.getfile(method.run)).read_bytes()).hexdigest()
    except (OSError, TypeError):
        return ""


@dataclass(frozen=True)
class Contender:
    """Who takes part in a comparison: a method's picks at a ratio, or everything, and who is trained on them.

    `spec` is None for everything.
    """

    spec: MethodSpec | None
    ratio: float
    learner: str

    @property
    def name(self) -> str:
        """What it is called."""
        label = EVERYTHING if self.spec is None else self.spec.label
        return f"{label}:{written(self.ratio)}:{self.learner}"


@dataclass(frozen=True)
class SelectOptions(ModelOptions):
    """What to compare.

    `own` is no option: it says what is known of methods in code of the user's own, which is not imported then.
    """

    own: Mapping[str, OwnMethod] = field(default_factory=dict, repr=False, compare=False)
    methods: tuple[str | dict[str, Any], ...] = option(
        ("prune4rel",),
        "Methods, with commas between; NAME/PRESET for a preset of prune4rel. NAME:RATIO or NAME:RATIO:LEARNER stands "
        "for that one alone, also everything:1:LEARNER.",
        panel=WHAT,
    )
    ratios: tuple[float, ...] = option((0.2,), "Shares to keep, with commas between.", panel=WHAT)
    balanced: bool = option(True, "Go round the (noisy) classes.", flag="--balanced/--unbalanced", panel=WHAT)
    everything: bool | None = option(
        None,
        "Train on the whole set, too, to compare with; so it is with --equal-steps unless told.",
        flag="--everything/--no-everything",
        panel=WHAT,
    )
    equal_steps: bool = option(
        False,
        "Give everybody the same number of steps, --steps or what fits --time-budget: their warm-up and looking at "
        "examples are paid for out of it.",
        flag="--equal-steps",
        panel=WHAT,
    )
    steps: int | None = option(None, "How many, with --equal-steps.", least=1, panel=WHAT)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "ratios", _ratios(self.ratios))
        self._check_methods()
        self._check_steps()

    def _check_methods(self) -> None:
        from prune4rel.learners import get
        from prune4rel.training.warmup import EXTRAS

        usual = [spec.label for spec in self.specs if not spec.ratios and not spec.learners]
        refuse_twice("methods", usual, "; give one of them another label")
        for learner in learners_named(self.methods):
            get(learner)
        for spec in self.specs:
            if missing := [need for need in spec.needs if need not in EXTRAS]:
                raise InputError(
                    f"methods: {spec.label!r} needs {missing[0]}, which no warm-up provides; use it with "
                    "`prune4rel select`",
                    "methods",
                )
        refuse_twice("methods", [each.name for each in self.contenders])

    def _check_steps(self) -> None:
        if self.steps is not None and not self.equal_steps:
            raise InputError("steps: is for --equal-steps; trainings are as long as --epochs otherwise", "steps")
        if self.equal_steps and (self.epochs is not None or {"epochs", "steps"} & set(self.training)):
            raise InputError("equal_steps: trainings are as long as --steps allow; leave epochs out", "equal_steps")

    @cached_property
    def specs(self) -> tuple[MethodSpec, ...]:
        """The methods, resolved."""
        found = tuple(
            MethodSpec.read(method, balanced=self.balanced, own=self.own)
            for method in self.methods
            if _everything_in(method) is None
        )
        known: dict[str, MethodSpec] = {}
        for spec in found:
            same = known.setdefault(spec.label, spec)
            if same.as_dict() != spec.as_dict():
                refuse_twice("methods", [spec.label] * 2, "; give one of them another label")
        return found

    @cached_property
    def contenders(self) -> tuple[Contender, ...]:
        """Everybody that is compared, learner by learner."""
        named = [learners for method in self.methods if (learners := _everything_in(method)) is not None]
        wanted = self.equal_steps if self.everything is None else self.everything
        whole = [*(learner for learners in named for learner in learners or self.learners)]
        whole += [learner for learner in self.learners if wanted and learner not in whole]
        found = []
        for learner in dict.fromkeys(
            (*self.learners, *(name for spec in self.specs for name in spec.learners), *whole)
        ):
            for spec in self.specs:
                if learner in (spec.learners or self.learners):
                    found += [Contender(spec, ratio, learner) for ratio in spec.ratios or self.ratios]
            found += [Contender(None, 1.0, one) for one in whole if one == learner]
        return tuple(found)

    @property
    def all_learners(self) -> tuple[str, ...]:
        """All learners that are trained."""
        return tuple(dict.fromkeys(each.learner for each in self.contenders))


@dataclass(frozen=True)
class SelectStep(Step):
    """One selection; shared by all learners that go by the same signals."""

    title: ClassVar[str] = "selection"
    place: ClassVar[str] = "selections"
    spreads: ClassVar[bool] = False

    spec: MethodSpec
    ratio: float
    seed: int
    provider: SignalsStep
    device: str

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.folder / "selection.parquet"

    @classmethod
    def lay_out(cls, steps: Steps) -> None:
        """Make a selection of every method, ratio, seed, and learner that goes by signals of its own."""
        for seed in steps.seeds:
            for each in steps.options.contenders:
                if each.spec is not None:
                    cls.of(steps, each.spec, each.ratio, each.learner, seed)

    @property
    def round(self) -> int:
        """That of the signals it goes by."""
        return self.provider.round

    @classmethod
    def of(
        cls,
        steps: Steps,
        spec: MethodSpec,
        ratio: float,
        learner: str,
        seed: int,
        provider: SignalsStep | None = None,
    ) -> Self:
        """Return the selection that a learner is trained on; by signals of its own, or by some provider's."""
        provider = provider or steps.provider(learner, seed)
        before = {"after": provider.key} if spec.learns else {"labels": steps.data["labels"]}
        return steps.once(
            (cls, spec.label, ratio, provider.learner, seed),
            lambda: cls(
                f"selection by {spec.label}, ratio {written(ratio)}, seed {seed}",
                steps.folder / cls.place / f"{slug(spec.label)}-{written(ratio)}-{slug(provider.learner)}-seed{seed}",
                {**spec.as_dict(), "ratio": ratio, "seed": seed, **before},
                spec,
                ratio,
                seed,
                provider,
                steps.options.device,
            ),
        )

    @property
    def uses(self) -> tuple[Step, ...]:
        """The step whose signals it goes by."""
        return (self.provider,)

    def used(self) -> dict[str, str]:
        """Return fingerprints of the signals, unless it only goes by labels, which it depends on anyway."""
        return self.provider.outputs() if self.spec.learns else {}

    def outputs(self) -> dict[str, str]:
        """Return the fingerprint of the picks."""
        record = self.record() or {}
        return {"picks": record["picks"]} if "picks" in record else {}

    def work(self, progress: Progress) -> Mapping[str, Any]:
        """Select and save."""
        from prune4rel.methods import select
        from prune4rel.provenance import fingerprint

        chosen = select(
            self.spec.method,
            _load(self.provider.signals, (self.provider.folder / DONE).stat().st_mtime_ns),
            ratio=self.ratio,
            balanced=self.spec.balanced,
            seed=self.seed,
            device=self.device,
            progress=Tasks(progress),
            **self.spec.options,
        )
        chosen.save(self.path, force=True)
        return {
            "notes": list(chosen.notes),
            "picking_seconds": chosen.stats["seconds"]["total"],
            "picks": fingerprint(chosen.indices),
        }


def _everything_in(entry: Any) -> tuple[str, ...] | None:
    """Return the learners that an entry has trained on everything, none for all of them; None where it is a method."""
    value = in_full(entry) if isinstance(entry, str) else entry
    if not isinstance(value, Mapping) or value.get("method") != EVERYTHING:
        return None
    if _ratios(value.get("ratios")) not in ((), (1.0,)) or set(value) - {"method", "options", "ratios", "learners"}:
        raise InputError("methods: everything is all examples: everything, or everything:1:LEARNER", "methods")
    return _names(value.get("learners"))


@lru_cache(maxsize=1)
def _load(path: Path, _written: int) -> "Signals":
    """Read signals once for all selections that go by them."""
    from prune4rel.signals import Signals

    return Signals.load(path)
