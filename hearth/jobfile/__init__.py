"""The job spec: what a user writes, the canonical document on chain, and the terms that follow from them.

loaded = load_spec(Path("job.yaml"), {"EPOCHS": "3"})          # checked, every refusal with file and line
resolved = resolve(loaded.spec, blobs)                         # after the caller has uploaded local_sources()
digest = spec_digest(resolved)                                 # the 32 bytes on chain
prices = plan_prices(loaded.spec, asset, policy)
"""

from hearth.jobfile.load import AnyJob, as_data, dump_spec, load_spec, parse_spec, spec_of
from hearth.jobfile.loaded import LoadedSpec, spec_from
from hearth.jobfile.model import JobSpec, local_sources
from hearth.jobfile.plan import (
    Prices,
    billing_of,
    deadline_of,
    lease_seconds,
    match_window_of,
    parents_of,
    plan_prices,
    terms_of,
)
from hearth.jobfile.resolved import (
    FUEL_PER_SECOND,
    Blob,
    ResolvedInput,
    ResolvedOutput,
    ResolvedResources,
    ResolvedSpec,
    canonical,
    canonical_bytes,
    exact_tier,
    near_tiers,
    needs_of,
    parse_canonical,
    resolve,
    spec_digest,
    tier_number,
    tier_slug,
)

__all__ = [
    "FUEL_PER_SECOND",
    "AnyJob",
    "Blob",
    "JobSpec",
    "LoadedSpec",
    "Prices",
    "ResolvedInput",
    "ResolvedOutput",
    "ResolvedResources",
    "ResolvedSpec",
    "as_data",
    "billing_of",
    "canonical",
    "canonical_bytes",
    "deadline_of",
    "dump_spec",
    "exact_tier",
    "lease_seconds",
    "load_spec",
    "local_sources",
    "match_window_of",
    "near_tiers",
    "needs_of",
    "parents_of",
    "parse_canonical",
    "parse_spec",
    "plan_prices",
    "resolve",
    "spec_digest",
    "spec_from",
    "spec_of",
    "terms_of",
    "tier_number",
    "tier_slug",
]
