"""The job file: fields with types and bounds, rules, runtimes (hearth/jobfile, hearth/protocol/runtimes.py).

A field whose type this module does not know stops it: the page must not read such a field by a rule of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from hearth.jobfile import model, plan, resolved, rules, sugar, text
from hearth.protocol.runtimes import DEFAULT, RESERVED_ENV, RUNTIMES
from hearth.protocol.types import MAX_PROOF_SECONDS, MAX_VRAM_GIB

_READERS: Mapping[Any, str] = {
    get_args(kind)[1]: name
    for name, kind in {
        "text": model.Text,
        "duration": model.Duration,
        "size": model.Size,
        "amount": model.Amount,
        "fee": model.Fee,
        "rate": model.Rate,
        "decimal": model.Decimal,
    }.items()
}
"""The name of each kind of text, by the function that reads it."""
_FORMS: Mapping[str, str] = {"_parent": "parent", "_parents": "parents"}
"""Functions of the model that bring a value into the one form of its type."""


def tables() -> Mapping[str, Any]:
    """Return the model of a job file, and what its rules, its plan and its document are bounded by."""
    return {
        "SPEC_TEXT": {
            "maxBytes": text.MAX_BYTES,
            "maxDepth": text.MAX_DEPTH,
            "maxValues": text.MAX_VALUES,
            "integer": text._INTEGER.pattern,
            "number": text._NUMBER.pattern,
            "constants": [[word, value] for word, value in rules.CONSTANTS.items()],
        },
        "SPEC_MODELS": {one.__name__: _fields(one) for one in _models(model.JobSpec)},
        "SPEC_BOUNDS": {
            "maxText": rules.MAX_TEXT,
            "maxPath": rules.MAX_PATH,
            "maxPathDepth": rules.MAX_PATH_DEPTH,
            "maxRuntime": model.MAX_RUNTIME,
            "maxMatchWindow": model.MAX_MATCH_WINDOW,
            "maxChallengeWindow": model.MAX_CHALLENGE_WINDOW,
            "maxTries": model.MAX_TRIES,
            "mostVramGib": MAX_VRAM_GIB,
            "mostMemoryGib": model.MAX_MEMORY_GIB,
            "mostDiskGib": model.MAX_DISK_GIB,
            "maxSize": resolved.MAX_SIZE,
            "fuelPerSecond": resolved.FUEL_PER_SECOND,
            "maxProofSeconds": MAX_PROOF_SECONDS,
            "autoKeeperShare": plan.AUTO_KEEPER_SHARE,
            "defaultDeadline": plan.DEFAULT_DEADLINE,
            "maxRate": plan.MAX_RATE,
            "maxEscrow": plan.MAX_ESCROW,
            "lastYear": plan.LAST_YEAR,
        },
        "SPEC_PATTERNS": {
            "name": rules.NAME.pattern,
            "decimal": rules.DECIMAL.pattern,
            "image": rules.IMAGE.pattern,
            "digestImage": rules.DIGEST_IMAGE.pattern,
            "envName": rules.ENV_NAME.pattern,
            "secretName": rules._SECRET_NAME.pattern,
            "password": rules._PASSWORD.pattern,
            "jobId": model.JOB_ID.pattern,
            "whole": model._WHOLE.pattern,
            "gpu": sugar._GPU.pattern,
            "shell": sugar._SHELL.pattern,
        },
        "NAME_ATTESTERS": model.NAME_ATTESTERS,
        "RESERVED_PREFIXES": RESERVED_ENV,
        "COMPARED": {
            kind: {"needed": sorted(needed), "optional": sorted(optional)}
            for kind, (needed, optional) in rules.COMPARED.items()
        },
        "RUNTIMES": [
            {
                "name": kind.name,
                "title": kind.title,
                "flag": int(kind.flag),
                "program": kind.program,
                "example": kind.example,
                "metersFuel": kind.meters_fuel,
                "takesGpu": kind.takes_gpu,
                "webassembly": kind.webassembly,
                "leastMemory": kind.least_memory,
                "leastMemoryWithGpus": kind.least_memory_with_gpus,
            }
            for kind in RUNTIMES.values()
        ],
        "DEFAULT_RUNTIME": DEFAULT.name,
    }


def _models(root: type[BaseModel]) -> list[type[BaseModel]]:
    """Return the models that a model is made of, itself first."""
    found = [root]
    for one in found:
        for field in one.model_fields.values():
            found += [inner for inner in _models_in(field.annotation) if inner not in found]
    return found


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [inner for argument in get_args(annotation) for inner in _models_in(argument)]


def _fields(one: type[BaseModel]) -> list[Mapping[str, Any]]:
    # What a default holds is written as the model's own fields have it, without aliases.
    return [
        {
            "key": field.alias or name,
            **({"name": name} if field.alias else {}),
            "type": _type(field.annotation, field.metadata),
            **({} if field.is_required() else {"default": _plain(field.default)}),
        }
        for name, field in one.model_fields.items()
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _type(annotation: Any, metadata: Any) -> Mapping[str, Any]:
    """Return what a value must be: its kind, its bounds, and the form that it is brought into before."""
    origin, arguments, metadata = get_origin(annotation), get_args(annotation), _flat(metadata)
    if origin is Annotated:
        return _type(arguments[0], [*annotation.__metadata__, *metadata])
    if origin in (Union, UnionType):
        inner = [argument for argument in arguments if argument is not NoneType]
        if len(inner) != 1 or len(arguments) != 2 or metadata:
            raise TypeError(f"no rule for {annotation}")
        return {"kind": "nullable", "inner": _type(inner[0], [])}
    said = _said(metadata)
    if origin is Literal:
        return {"kind": "word", "words": list(arguments), **said}
    if origin is list:
        return {"kind": "list", "item": _type(arguments[0], []), **said}
    if origin is dict and arguments[0] is str:
        return {"kind": "map", "item": _type(arguments[1], []), **said}
    if annotation is bool:
        return {"kind": "bool", **said}
    if annotation is int and said.pop("digits", False):
        return {"kind": "whole", **said}
    if annotation is str and "kind" in said:
        return said
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {"kind": "model", "model": annotation.__name__, **said}
    raise TypeError(f"no rule for {annotation} with {metadata}")


def _flat(metadata: Any) -> list[Any]:
    """Return bounds and readers one by one: a Field within Annotated holds its own."""
    return [inner for one in metadata for inner in (one.metadata if isinstance(one, FieldInfo) else [one])]


def _said(metadata: list[Any]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for one in metadata:
        if isinstance(one, Ge | Le):
            said |= {"least": one.ge} if isinstance(one, Ge) else {"most": one.le}
        elif isinstance(one, MinLen | MaxLen):
            said |= {"fewest": one.min_length} if isinstance(one, MinLen) else {"most": one.max_length}
        elif isinstance(one, BeforeValidator) and one in _READERS:
            said["kind"] = _READERS[one]
        elif one is model._DIGITS:
            said["digits"] = True
        elif isinstance(one, BeforeValidator) and getattr(one.func, "__name__", "") in _FORMS:
            said["form"] = _FORMS[one.func.__name__]
        elif getattr(one, "pattern", None) is not None:
            if one.pattern != rules.NAME.pattern:
                raise TypeError(f"no rule for the pattern {one.pattern}")
            said["pattern"] = "name"
        elif type(one).__name__ != "WithJsonSchema":
            raise TypeError(f"no rule for {one}")
    return said
