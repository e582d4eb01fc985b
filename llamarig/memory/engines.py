"""Which of the engine's memory models a version follows.

KV cache, state and weights were laid out alike in every build that is looked at here; what one pass needs
(the compute buffers) changed five times in 2026. The first changes are upstream pull requests whose build numbers are
known; the last one was found by comparing the trees of 0.1 (b10454), 0.4.0 (b10809) and 0.5-dev (b11312) file by file.
An era is what holds from one change to the next.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from llamarig.errors import RigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """What the engine does in one pass, as far as it bears on memory."""

    name: str
    """Year and month in which it began; ``older`` for all before."""
    first_build: int
    """Upstream's number of the first build."""
    rotation: bool
    """K and V are rotated before they are quantised, and the query with them."""
    half_mask: bool
    """With flash attention the mask is made in f16; before, an f32 mask stood beside its f16 copy."""
    outputs_only: bool
    """Logits are reserved for the rows that a server can ask for; before, for every token of a pass."""
    staging: bool
    """CUDA's f16 copy of a layer's K and V is part of the compute buffer; before, the driver's pool grew by it."""
    every_input: bool
    """As a pipeline, inputs that no node reads are kept for each pass in flight, too."""
    flat_projections: bool
    """Mamba-2's matrices multiply all rows of a pass at once; before, those of each slot apart."""
    draft_sampling: bool
    """The tokens of a draft are chosen where its logits are, from a copy of them."""
    fused_injection: bool
    """A dflash drafter decodes the target's rows at once; before, it encoded them in a pass that yields all rows."""
    source: str
    """The change that began the era: pull request and commit."""


OLDER: Final = Era(
    name="older",
    first_build=1,
    rotation=False,
    half_mask=False,
    outputs_only=False,
    staging=False,
    every_input=False,
    flat_projections=False,
    draft_sampling=False,
    fused_injection=False,
    source="as read back from the logs of builds of February and March 2026",
)
APRIL_2026: Final = Era(
    name="2026-04",
    first_build=8607,
    rotation=True,
    half_mask=False,
    outputs_only=False,
    staging=False,
    every_input=False,
    flat_projections=False,
    draft_sampling=True,
    fused_injection=False,
    source="pull request 21038, commit 744c0c731 of 2026-04-01",
)
MAY_2026: Final = Era(
    name="2026-05",
    first_build=9410,
    rotation=True,
    half_mask=True,
    outputs_only=False,
    staging=False,
    every_input=False,
    flat_projections=False,
    draft_sampling=True,
    fused_injection=False,
    source="pull request 23764, commit 031ddb2e0 of 2026-05-29",
)
JUNE_2026: Final = Era(
    name="2026-06",
    first_build=9489,
    rotation=True,
    half_mask=True,
    outputs_only=True,
    staging=True,
    every_input=False,
    flat_projections=False,
    draft_sampling=True,
    fused_injection=False,
    source="pull requests 23861 (commit de6f727aa of 2026-06-01) and 23907 (commit f8f0a47a5 of 2026-06-03)",
)
AUGUST_2026: Final = Era(
    name="2026-08",
    first_build=10_455,
    rotation=True,
    half_mask=True,
    outputs_only=True,
    staging=True,
    every_input=False,
    flat_projections=True,
    draft_sampling=True,
    fused_injection=False,
    source="pull request 27513 of 2026-08-21, which b10809 has and b10454 has not",
)
SEPTEMBER_2026: Final = Era(
    name="2026-09",
    first_build=10_810,
    rotation=True,
    half_mask=True,
    outputs_only=True,
    staging=True,
    every_input=True,
    flat_projections=True,
    draft_sampling=True,
    fused_injection=True,
    source="pass 6 of ggml_backend_sched_split_graph, which b11312 has and b10809 has not",
)
ERAS: Final = (OLDER, APRIL_2026, MAY_2026, JUNE_2026, AUGUST_2026, SEPTEMBER_2026)
"""From the oldest to the newest. Where the build of a change is not known to the digit, an era is computed rather too
big than too small: 2026-04 chooses drafts where the logits are although pull request 23287 came between b9246 and b9410
(issue 23903); 2026-05 reserves all logits although pull request 23861 came a few builds before 23907; 2026-08 encodes
for dflash although 0.4.0 has pull request 27310; 2026-08 and 2026-09 begin right after the last build that was seen
without their change."""

CURRENT: Final = ERAS[-1]
_COMPARED: Final = (JUNE_2026, AUGUST_2026, SEPTEMBER_2026)
"""Eras of trees that were read."""

NEWEST_COMPARED: Final = 11_312
"""The newest build whose source was compared: 0c1e57098, 0.5-dev."""

KNOWN_COMMITS: Final = {
    "64ac9ab66": 8586,
    "744c0c731": 8607,
    "0f1bb602d": 8946,
    "1d7ab2b94": 9272,
    "031ddb2e0": 9410,
    "f8f0a47a5": 9489,
    "4df29be4f": 10_454,
    "5266f24da": 10_809,
    "0c1e57098": 11_312,
}
"""Builds by the first nine digits of their commit; 5266f24da is 0.4.0."""

_RELEASE = re.compile(r"v?0\.([0-9]{1,3})(\.[0-9]{1,3})?(-dev)?")
_BUILD = re.compile(r"b?([0-9]{1,6})(-[0-9a-f]{7,40})?")
_LAST_RELEASES: Final = ((1, JUNE_2026), (4, AUGUST_2026))
"""The last minor release of an era: 0.1 is b10454, 0.4 is b10809."""
_COMMIT = re.compile(r"(?!b[0-9]+$)[0-9a-f]{7,40}")


@dataclass(frozen=True, slots=True)
class EngineModel:
    """The era of one engine, and what is not certain about it."""

    era: Era
    build: int | None
    note: str = ""
    """What the reader of a plan should know: empty when the version's own model is computed."""


def of_build(number: int) -> EngineModel:
    """The era of upstream's build ``number``."""
    era = next(era for era in reversed(ERAS) if number >= era.first_build)
    if era not in _COMPARED:
        return EngineModel(
            era,
            number,
            f"b{number} is computed by the memory model of older builds ({era.name}), which was held to fewer published"
            " logs than the newer ones",
        )
    if number > NEWEST_COMPARED:
        return EngineModel(
            era, number, f"b{number} is newer than b{NEWEST_COMPARED}, the last one whose memory model was compared"
        )
    return EngineModel(era, number)


def of_version(version: str | None) -> EngineModel:
    """The era of a version as people write it: ``b10454``, ``10454``, ``b10454-4df29be4f``, ``0.4.0`` or a commit.

    None means the current one; releases are numbered since 0.1, which is b10454. A commit that is not known is
    taken for a current one, with a note. Raises :class:`RigError` for anything else.
    """
    if version is None:
        return EngineModel(CURRENT, None)
    build = _BUILD.fullmatch(version)
    if build is not None and int(build[1]) > 0:
        return of_build(int(build[1]))
    release = _RELEASE.fullmatch(version)
    if release is not None:
        minor = int(release[1])
        return EngineModel(next((era for last, era in _LAST_RELEASES if minor <= last), CURRENT), None)
    if _COMMIT.fullmatch(version):
        known = next((number for commit, number in KNOWN_COMMITS.items() if _same(commit, version)), None)
        if known is not None:
            return of_build(known)
        return EngineModel(
            CURRENT,
            None,
            f"the build number of {version[:12]} is not known; it is computed by the memory model {CURRENT.name}",
        )
    raise RigError(
        what=f"--engine is {version[:40]!a}, which is no build",
        fix="name a build, a release or a commit, for example --engine b10454, 0.4.0 or 4df29be4f",
    )


def _same(commit: str, given: str) -> bool:
    length = min(len(commit), len(given))
    return commit[:length] == given[:length]
