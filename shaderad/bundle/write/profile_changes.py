"""The target options of a build -> the profiles for which kernels are lowered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from shaderad.compiler.launch_shapes import PORTABLE
from shaderad.diagnostics import error
from shaderad.lower.bindings import ATOMICS
from shaderad.lower.targets import PROFILES, Profile


def profiles_of(targets: Iterable[str]) -> tuple[Profile, ...]:
    """The profiles of `targets`, in the order of the table; a text may name several with commas.

    Raises:
        CompileError: SR0504, if a target is unknown; SR0713, if `targets` is empty.
    """
    wanted = [name.strip() for joined in targets for name in joined.split(",") if name.strip()]
    names = ", ".join(f"`{name}`" for name in PROFILES)
    for target in wanted:
        if target not in PROFILES:
            raise error("SR0504", target=target, targets=names)
    if not wanted:
        raise error("SR0713", targets=names)
    return tuple(profile for name, profile in PROFILES.items() if name in wanted)


FEATURES = ("float-atomics", "subgroups")
"""The optional features; `half` and `double` follow from the types of a kernel."""
_NOT = "no-"


@dataclass(frozen=True, slots=True)
class _Wish:
    """One item of an option."""

    target: str
    """Empty for every target."""
    subject: str
    """``atomics``, or the name of a feature."""
    value: str
    text: str
    """The option and the item as written."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The target options of a build, as written."""

    atomics: Sequence[str] = ()
    features: Sequence[str] = ()
    workgroup: int = PORTABLE.workgroup
    space: int = 0
    first_binding: int = 0


def changed_profiles(profiles: Sequence[Profile], changes: Changes) -> tuple[Profile, ...]:
    """The profiles with `changes` applied.

    Raises:
        CompileError: SR0740 or SR0741, if a word is unknown; SR0742, if its target is not built;
            SR0743, if its target does not support it; SR0744, if two words contradict each other;
            SR0745, if a number is out of range for a target.
    """
    names = [profile.name for profile in profiles]
    wishes = [_way(*item) for item in _items("--atomics", changes.atomics, names)]
    wishes += [_feature(*item) for item in _items("--features", changes.features, names)]
    return tuple(
        _placed(_changed(profile, _settled(profile.name, wishes)), changes) for profile in profiles
    )


def _placed(profile: Profile, changes: Changes) -> Profile:
    # The constant buffer and the maximum number of storage buffers need slots.
    last_binding = profile.limits.slots - profile.limits.storage_buffers - 1
    for option, number, low, high in (
        ("--workgroup", changes.workgroup, 1, profile.limits.workgroup),
        ("--space", changes.space, 0, profile.limits.spaces - 1),
        ("--binding-base", changes.first_binding, 0, last_binding),
    ):
        if not low <= number <= high:
            raise error("SR0745", option=option, found=number, target=profile.name,
                        low=low, high=high)  # fmt: skip
    return replace(profile, workgroup=changes.workgroup, space=changes.space,
                   first_binding=changes.first_binding)  # fmt: skip


def _items(
    option: str, texts: Iterable[str], targets: Sequence[str]
) -> Iterable[tuple[str, str, str]]:
    """The target, the word and the text of every item of `option`."""
    for text in (part.strip() for joined in texts for part in joined.split(",")):
        target, colon, word = text.rpartition(":")
        if colon and target not in targets:
            raise error("SR0742", text=f"{option} {text}", target=target,
                        targets=", ".join(f"`{name}`" for name in targets))  # fmt: skip
        yield target, word, f"{option} {text}"


def _way(target: str, word: str, text: str) -> _Wish:
    if word not in ATOMICS:
        raise error("SR0740", word=word, known=", ".join(f"`{name}`" for name in ATOMICS))
    return _Wish(target, "atomics", word, text)


def _feature(target: str, word: str, text: str) -> _Wish:
    subject = word.removeprefix(_NOT)
    if subject not in FEATURES:
        raise error("SR0741", word=word, known=", ".join(f"`{name}`" for name in FEATURES))
    return _Wish(target, subject, word, text)


def _settled(target: str, wishes: Sequence[_Wish]) -> dict[str, _Wish]:
    """The items for one target, by subject; its own items take precedence over general ones."""
    settled: dict[str, _Wish] = {}
    for scope in ("", target):
        by_subject: dict[str, _Wish] = {}
        for wish in (wish for wish in wishes if wish.target == scope):
            other = by_subject.setdefault(wish.subject, wish)
            if other.value != wish.value:
                raise _contradiction(other, wish, target)
        settled |= by_subject
    return settled


def _changed(profile: Profile, wishes: Mapping[str, _Wish]) -> Profile:
    atomics = _atomics(profile, wishes.get("atomics"), wishes.get("float-atomics"))
    subgroups = wishes.get("subgroups")
    has_subgroups = profile.has_subgroups if subgroups is None else subgroups.value == "subgroups"
    return replace(profile, atomics=atomics, has_subgroups=has_subgroups)


def _atomics(profile: Profile, way: _Wish | None, feature: _Wish | None) -> str:
    """The kind of atomics from ``--atomics``, else the one that ``float-atomics`` implies."""
    others = [kind for kind in profile.possible_atomics if kind != "native"]
    chosen = profile.atomics
    if feature is not None and feature.value == "float-atomics":
        chosen = "native"
    elif feature is not None and chosen == "native":
        chosen = others[0]
    if way is not None:
        if feature is not None and (way.value == "native") != (feature.value == "float-atomics"):
            raise _contradiction(way, feature, profile.name)
        chosen = way.value
    if chosen not in profile.possible_atomics:
        wish = way or feature
        assert wish is not None, "a profile's own atomics are possible"
        possible = ", ".join(f"`{kind}`" for kind in profile.possible_atomics)
        raise error("SR0743", text=wish.text, target=profile.name, possible=possible)
    return chosen


def _contradiction(first: _Wish, second: _Wish, target: str) -> Exception:
    return error("SR0744", first=first.text, second=second.text, target=target)
