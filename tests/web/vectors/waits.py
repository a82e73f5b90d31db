"""Jobs that wait for others: what people are told of each parent, and of who may end the waiting."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from hearth.client.job.parents import ParentView, _is_job, latest_end, waits_for
from hearth.client.reading import _view
from hearth.market.reads import Posted, UnitView
from hearth.protocol import words
from hearth.protocol.parents import Condition, Parent
from hearth.protocol.types import Accused, JobId, State, Terms, TermsFlag, Unit
from tests.web.vectors import _chance
from tests.web.vectors._drawn import NOW, drawn_policy, drawn_terms, drawn_unit, terms_words
from tests.web.vectors.parents import _words
from tests.web.vectors.views import LOG, _Head

COUNT = 32


def cases() -> Any:
    """Return blocked jobs with their parents' words and terms, and what is said of them."""
    draw = _chance.source("waits 11")
    known = [word for word in _words() if _stands(word)]
    return [_case(draw, known) for _ in _chance.rows(COUNT)]


def _stands(word: int) -> bool:
    """Say whether the chain may hold a word: a unit that is settled has an outcome."""
    try:
        if not _is_job(word) or words.is_header(word):
            return True
        unit = words.unpack_unit(word)
    except ValueError:
        return False
    return unit.state is not State.SETTLED or bool(unit.outcome)


def _case(draw: random.Random, known: list[int]) -> dict[str, Any]:
    policy = drawn_policy(draw)
    terms = replace(drawn_terms(draw, policy), units=1, chunk=1, replicas=1, flags=TermsFlag(0))
    if draw.random() < 0.9:
        terms = replace(terms, deadline=NOW + 10**7, max_seconds=600)
    posted = Posted(JobId(bytes(32)), terms, words.pack_terms(terms), (), LOG)
    view = _view(posted, None, [UnitView(Unit(State.BLOCKED, started=5), 0, Accused())], _Head(NOW))  # type: ignore[arg-type]
    parents = [_parent(draw, known) for _ in range(draw.randrange(1, 4))]
    return {
        "terms": terms_words(terms),
        "now": NOW,
        "parents": [
            {
                "job": "0x" + one.parent.job.hex(),
                "condition": int(one.parent.condition),
                "word": hex(one.word),
                "terms": None if one.posted is None else terms_words(one.posted.terms),
                "text": one.text,
                "latest": None if one.posted is None else latest_end(one.posted.terms),
            }
            for one in parents
        ],
        "waits": waits_for(view, parents),
    }


def _parent(draw: random.Random, known: list[int]) -> ParentView:
    word = draw.choice(known)
    if draw.random() < 0.5:
        unit = replace(drawn_unit(draw), flags=type(Unit().flags)(0))
        # What is settled has an outcome.
        word = words.pack_unit(unit if unit.outcome or unit.state is not State.SETTLED else Unit(State.RUNNING))
    posted = None
    if _is_job(word):
        terms: Terms = drawn_terms(draw, drawn_policy(draw))
        if draw.random() < 0.7:
            terms = replace(terms, deadline=NOW + 10**5)
        posted = Posted(JobId(bytes(32)), terms, words.pack_terms(terms), (), LOG)
    return ParentView(Parent(JobId(draw.randbytes(32)), draw.choice(list(Condition))), word, posted, NOW)
