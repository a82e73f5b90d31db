"""Job files of other systems: which system wrote a file, and the Hearth job that says the same.

    convert(raw, "deploy.yaml")     # Converted: the format, the checked job, and what could not be carried over
    peer_of(raw)                    # the Format, or None

Pure: text in, a document and notes out. Sources: each system's public documentation of its format.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hearth.base.errors import SpecError
from hearth.jobfile.convert import akash, bacalhau, compose, nosana, skypilot
from hearth.jobfile.convert.draft import Draft, NotConvertible, Note
from hearth.jobfile.convert.read import Unreadable, read_documents
from hearth.jobfile.loaded import spec_from
from hearth.jobfile.model import JobSpec

__all__ = ["FORMATS", "Converted", "Format", "Note", "convert", "peer_of"]

_PRICE: Final = Note(
    "price", 'a job names the most that it pays: add price: {max_rate: "..."}; hearth offers shows what workers ask'
)
_RUNTIME: Final = Note("limits", "a unit is ended after 10m: write limits: {runtime: 2h} where it may take longer")
_OUTPUTS: Final = Note("outputs", "only what the job writes to /out comes back")


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file: its short name, what to call one, how to know one, and how to convert one where that is so."""

    name: str
    called: str
    recognise: Callable[[dict[str, Any]], bool]
    convert: Callable[[dict[str, Any], Draft], None] | None = None


@dataclass(frozen=True, slots=True)
class Converted:
    """A job that `load_spec` takes, and what of the file it was made of could not be carried over."""

    format: Format
    spec: JobSpec
    notes: tuple[Note, ...]


def _is_nunet(document: dict[str, Any]) -> bool:
    inner = document.get("V1", document)
    return (
        isinstance(inner, dict) and isinstance(inner.get("allocations"), dict) and isinstance(inner.get("nodes"), dict)
    )


def _is_lilypad(document: dict[str, Any]) -> bool:
    job = document.get("job")
    return isinstance(document.get("machine"), dict) and isinstance(job, dict) and "Spec" in job


def _is_iexec(document: dict[str, Any]) -> bool:
    app = document.get("app")
    orders = {"apporder", "datasetorder", "workerpoolorder", "requestorder"}
    order = document.get("order")
    return (isinstance(app, dict) and "multiaddr" in app) or (isinstance(order, dict) and bool(orders & set(order)))


def _is_golem(document: dict[str, Any]) -> bool:
    return isinstance(document.get("payloads"), dict) and isinstance(document.get("nodes"), dict)


def _is_kubernetes(document: dict[str, Any]) -> bool:
    return isinstance(document.get("apiVersion"), str) and isinstance(document.get("kind"), str)


FORMATS: Final = (
    Format("akash", "an Akash SDL file", akash.recognise, akash.convert),
    Format("bacalhau", "a bacalhau job file", bacalhau.recognise, bacalhau.convert),
    Format("bacalhau-old", "a bacalhau job file of a version before 1.0", bacalhau.recognise_old),
    Format("nosana", "a Nosana job definition", nosana.recognise, nosana.convert),
    Format("nunet", "a NuNet ensemble", _is_nunet),
    Format("lilypad", "a Lilypad module", _is_lilypad),
    Format("iexec", "an iExec project file", _is_iexec),
    Format("golem", "a Golem application descriptor", _is_golem),
    Format("kubernetes", "a Kubernetes manifest", _is_kubernetes),
    Format("compose", "a Docker Compose file", compose.recognise, compose.convert),
    Format("skypilot", "a SkyPilot task file", skypilot.recognise, skypilot.convert),
)
"""Every format that is known, the ones with the plainer signs first."""


def peer_of(raw: bytes) -> Format | None:
    """Return which other system's file this is, or None for any other text."""
    try:
        documents = read_documents(raw)
    except Unreadable:
        return None
    return _format_of(documents)


def convert(raw: bytes, name: str) -> Converted:
    """Return the job that says what a file of another system says; `name` is shown in errors.

    Raises SpecError: UNKNOWN_FORMAT for text of no known system, NOT_CONVERTIBLE with the reason, or what is wrong with
    the job that came out (a bad CID, a name that stands twice).
    """
    try:
        documents = read_documents(raw)
    except Unreadable as error:
        raise SpecError(
            f"{name}: {error}", hint="name a YAML or JSON file", code="UNKNOWN_FORMAT", file=name
        ) from error
    found = _format_of(documents)
    if found is None:
        known = ", ".join(one.name for one in FORMATS if one.convert)
        raise SpecError(
            f"{name}: this is no file of a system that is known here ({known})",
            hint=f"if it is a Hearth job file: hearth check {name}",
            code="UNKNOWN_FORMAT",
            file=name,
        )
    draft = Draft()
    try:
        if found.convert is None:
            raise NotConvertible("this kind of file cannot be converted")
        if len(documents) > 1:
            raise NotConvertible(f"it holds {len(documents)} documents, and a job is one")
        found.convert(documents[0], draft)
    except NotConvertible as error:
        raise SpecError(
            f"{name}: this is {found.called}, and no Hearth job: {error}",
            hint="hearth init --template docker writes a job to start from; docs/JOB.md explains its keys",
            code="NOT_CONVERTIBLE",
            file=name,
            format=found.name,
        ) from error
    loaded = spec_from(draft.job, f"{name}, converted", Path(name).parent)
    notes = [*draft.notes, *([] if "outputs" in draft.job else [_OUTPUTS])]
    notes += [*([] if "limits" in draft.job else [_RUNTIME]), _PRICE]
    return Converted(found, loaded.spec, tuple(notes))


def _format_of(documents: list[Any]) -> Format | None:
    """Return the format of the first document that has one: a pipeline may begin with its name alone."""
    for document in documents:
        if isinstance(document, dict):
            found = next((one for one in FORMATS if one.recognise(document)), None)
            if found is not None:
                return found
    return None
