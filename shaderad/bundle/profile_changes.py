"""What a build is told of its targets -> their profiles, changed.

Of ``--atomics`` and ``--features``, ``VALUE`` goes for every target of the build, ``TARGET:VALUE``
for one, and wins there. Invariant: a profile never gets what its target cannot have; that is
refused with what it can.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from shaderad.bundle.profiles import Profile
from shaderad.diagnostics import error
from shaderad.lower.bindings import ATOMICS, WORKGROUP_SIZE

FEATURES = ("float-atomics", "subgroups")
"""Those that a build chooses; `half` and `double` are used where a kernel holds them."""
_NOT = "no-"


@dataclass(frozen=True, slots=True)
class _Wish:
    """One item of an option."""

    target: str
    """Empty: every target."""
    subject: str
    """What it decides: ``atomics``, or a feature."""
    value: str
    text: str
    """As it was written, with its option."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a build is told of its targets, as it was written."""

    atomics: Sequence[str] = ()
    features: Sequence[str] = ()
    workgroup: int = WORKGROUP_SIZE
    space: int = 0
    first_binding: int = 0


def changed_profiles(profiles: Sequence[Profile], changes: Changes) -> tuple[Profile, ...]:
    """The profiles with what was asked of them.

    Raises:
        CompileError: SR0740 or SR0741, where a word is unknown; SR0742, where it is for a target
            that is not built; SR0743, where a target cannot have it; SR0744, where two contradict;
            SR0745, where a number is out of a target's range.
    """
    names = [profile.name for profile in profiles]
    wishes = [_way(*one) for one in _items("--atomics", changes.atomics, names)]
    wishes += [_feature(*one) for one in _items("--features", changes.features, names)]
    return tuple(_placed(_changed(one, _settled(one.name, wishes)), changes) for one in profiles)


def _placed(profile: Profile, changes: Changes) -> Profile:
    # The constant buffer and as many storage buffers as an entry point may bind have a slot.
    last_binding = profile.limits.slots - profile.limits.storage_buffers - 1
    for option, found, low, high in (
        ("--workgroup", changes.workgroup, 1, profile.limits.workgroup),
        ("--space", changes.space, 0, profile.limits.spaces - 1),
        ("--binding-base", changes.first_binding, 0, last_binding),
    ):
        if not low <= found <= high:
            raise error("SR0745", option=option, found=found, target=profile.name,
                        low=low, high=high)  # fmt: skip
    return replace(profile, workgroup=changes.workgroup, space=changes.space,
                   first_binding=changes.first_binding)  # fmt: skip


def _items(
    option: str, texts: Iterable[str], targets: Sequence[str]
) -> Iterable[tuple[str, str, str]]:
    """The target, the word and the text of every item."""
    for text in (part.strip() for each in texts for part in each.split(",")):
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


def _settled(target: str, wishes: Iterable[_Wish]) -> dict[str, _Wish]:
    """What goes for one target, by subject: its own items before those for all."""
    for_all = [wish for wish in wishes if not wish.target]
    own = [wish for wish in wishes if wish.target == target]
    found: dict[str, _Wish] = {}
    for level in (for_all, own):
        by_subject: dict[str, _Wish] = {}
        for wish in level:
            _check_agreement(by_subject.setdefault(wish.subject, wish), wish, target)
        found |= by_subject
    return found


def _changed(profile: Profile, wishes: Mapping[str, _Wish]) -> Profile:
    atomics = _atomics(profile, wishes.get("atomics"), wishes.get("float-atomics"))
    subgroups = wishes.get("subgroups")
    has_subgroups = profile.has_subgroups if subgroups is None else subgroups.value == "subgroups"
    return replace(profile, atomics=atomics, has_subgroups=has_subgroups)


def _atomics(profile: Profile, way: _Wish | None, feature: _Wish | None) -> str:
    """How floats are added, by the option of its own or by the feature it rests on."""
    others = [one for one in profile.possible_atomics if one != "native"]
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
        asked = way or feature
        assert asked is not None, "a profile's own atomics are possible"
        raise error("SR0743", text=asked.text, target=profile.name,
                    possible=", ".join(f"`{one}`" for one in profile.possible_atomics))  # fmt: skip
    return chosen


def _check_agreement(first: _Wish, second: _Wish, target: str) -> None:
    if first.value != second.value:
        raise _contradiction(first, second, target)


def _contradiction(first: _Wish, second: _Wish, target: str) -> Exception:
    return error("SR0744", first=first.text, second=second.text, target=target)
