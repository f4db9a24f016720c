"""Which steps of a task are worth a lesson."""

from __future__ import annotations

from collections.abc import Sequence

from exact.reflection.base import Kind, Surprise


def contrast(steps: Sequence[Surprise], *, threshold: float, kinds: Sequence[Kind] = ("policy",)) -> tuple[tuple[Kind, Surprise], ...]:
    """The most surprising of a task's committed steps, once for each kind of lesson; empty where nothing surprised.

    A step surprises by |real - Q(s, a)|, in [0, 1]: Q as it stood at the decision, against what the state that came turned out to be
    worth (ExACT, arXiv:2410.02052, takes the first V(s'), which a deep Q knows better than). It counts
    from `threshold` on. Of equal ones the earliest wins, for later ones often follow from it. Refused steps led nowhere and are
    passed over.
    """
    carried_out = [step for step in steps if not step.step.error]
    if not carried_out:
        return ()
    most = max(carried_out, key=lambda step: abs(step.surprise))
    return tuple((kind, most) for kind in kinds) if abs(most.surprise) >= threshold else ()
