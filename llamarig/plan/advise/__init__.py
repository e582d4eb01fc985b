"""Which quant of a model suits a card, from exact file sizes and the memory model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from llamarig.catalog import gpus
from llamarig.catalog.known_files import KnownFile, Table
from llamarig.errors import RigError
from llamarig.gguf import Header
from llamarig.memory import read_shape
from llamarig.plan.advise.month import Money, month_of
from llamarig.plan.advise.question import CONTEXT, Question, card_names, card_notes
from llamarig.plan.advise.row import Row
from llamarig.plan.advise.summary import ram_speed, summary
from llamarig.plan.advise.trial import Trial
from llamarig.plan.advise.verdict import ROOM, SLOWEST_TOK_S, VERDICTS, verdict
from llamarig.plan.alternatives.search import Verdict, first_fitting
from llamarig.plan.quality import quality_words
from llamarig.plan.short import MEMORY_CODES
from llamarig.plan.stand_in import composed
from llamarig.speed import Speed

__all__ = ["CONTEXT", "ROOM", "VERDICTS", "Advice", "Money", "Question", "Row", "advise", "card_names", "card_notes"]

_KV_TYPES = ("f16", "q8_0", "q4_0")
AtHand = Callable[[KnownFile], Header | None]
"""The header of a file, when the project has it."""


@dataclass(frozen=True)
class Advice:
    """Rows, best first."""

    question: Question
    rows: tuple[Row, ...]
    rounded: int
    """Files left out because only rounded sizes of them are known."""
    notes: tuple[str, ...] = ()

    @property
    def host(self) -> bool:
        """Whether there is anything that one could serve at all."""
        return any(row.verdict not in ("not-a-host", "does-not-fit") for row in self.rows)

    @property
    def summary(self) -> str:
        """The verdict on the cards in one line."""
        return summary(self.rows, self.question.context)

    def to_json(self) -> dict[str, Any]:
        """The documented form."""
        asked = self.question
        return {
            "gpus": list(asked.gpus),
            "model": asked.model,
            "context": asked.context,
            "projector": asked.projector,
            "host": self.host,
            "summary": self.summary,
            "notes": list(self.notes),
            "advice": [row.to_json() for row in self.rows],
            "rounded-sizes-left-out": self.rounded,
        }


def advise(question: Question, known: Table, at_hand: AtHand) -> Advice:
    """The best file of each class of bits, ranked.

    Sizes are exact; a file whose header ``at_hand`` does not have is planned with a layout composed from the model's
    dimensions. Raises :class:`RigError` when the table has no file of the model, or when neither header nor dimensions
    are known.
    """
    files = [each for each in known.of(question.model) if each.size is not None]
    if not files:
        raise RigError(
            what=f"no file of {question.model} is known to the byte", fix="run `llamarig lock --known-files`"
        )
    model = known.models[question.model]
    seen: dict[KnownFile, tuple[Header, bool]] = {}
    for file in files:
        real = at_hand(file)
        stand_in = composed(model, file) if real is None else None
        if real is not None:
            seen[file] = (real, False)
        elif stand_in is not None:
            # The row tells that its layout is composed; a plan that leaves its verdict open would be no advice.
            seen[file] = (replace(stand_in, embedding_assumed=False), True)
    if not seen:
        raise RigError(
            what=f"neither the dimensions of {question.model} nor a header of one of its files are at hand",
            fix="name one of its files in a spec and run `llamarig lock`, which stores the header under headers/",
        )
    projectors = known.projectors(question.model) if question.projector and model.vision else ()
    by_class: dict[int, list[Trial]] = {}
    for file, (header, _) in seen.items():
        trial = Trial(question, file, header, projectors[-1] if projectors else None)
        by_class.setdefault(file.quant_class, []).append(trial)
    rows = [_row(bits, trials, {file: made for file, (_, made) in seen.items()}) for bits, trials in by_class.items()]
    rounded = len(known.of(question.model)) - len(files)
    ranked = tuple(sorted(rows, key=lambda row: row.rank))
    return Advice(question, ranked, rounded, _notes(question, [header for header, _ in seen.values()], ranked))


def _row(bits: int, trials: list[Trial], made: dict[KnownFile, bool]) -> Row:
    """The largest file of a class that leaves room, else the largest that fits whole, else the smallest, not whole."""
    trials = sorted(trials, key=lambda trial: -trial.file.most_bytes)
    smallest = trials[-1]
    _require_plannable(smallest)
    found = _largest(trials, lambda trial: trial.room) or _largest(trials, lambda trial: trial.verdict)
    if found is None:
        return _partly(bits, smallest, made[smallest.file])
    return _whole(bits, found, made[found.file])


def _largest(trials: list[Trial], judge: Callable[[Trial], Verdict]) -> Trial | None:
    """The first of ``trials``, the largest file first, that fits as ``judge`` says."""
    first, rest = judge(trials[0]), trials[1:]
    if first.fits:
        return trials[0]
    sizes = [-float(trial.file.most_bytes) for trial in trials]
    at = first_fitting(len(rest), lambda at: judge(rest[at]), first.short_mib, lambda at: sizes[at + 1])
    return None if at is None else rest[at]


def _require_plannable(trial: Trial) -> None:
    """What memory does not cure is said, not weighed."""
    for finding in trial.whole.findings:
        if finding.severity == "error" and finding.code not in MEMORY_CODES:
            raise RigError(what=f"{finding.code}: {finding.message}", fix=finding.fix)


def _whole(bits: int, trial: Trial, made: bool) -> Row:
    asked = trial.question.context
    trained = trial.shape.trained_context
    windows = _windows(trial)
    room = (windows["f16"] or 0) >= min(ROOM * asked, trained or ROOM * asked)
    speed = trial.speed()
    bound = trial.decode_bound() if speed is None else None
    full = None if speed is None else speed.at_depth[-1].decode_tok_s
    found = verdict(bits, "whole", room=room, tok_s=full if speed else bound)
    reasons = [f"fits whole with a window of {asked:,} tokens in f16", _growth(windows, room, trained)]
    reasons += quality_words(bits) + _speed(speed, bound, asked)
    free = {device.gpu: device.free_mib for device in trial.whole.devices}
    row = Row(bits, trial.file, found, tuple(reasons), made, True, free, windows, decode_at_most=bound)
    return _timed(row, trial, speed)


def _timed(row: Row, trial: Trial, speed: Speed | None) -> Row:
    """The row with its speed, and what a month costs at the speeds of a full window."""
    if speed is None:
        return row
    full = speed.at_depth[-1]
    card = gpus.cards()[trial.question.gpus[0]]
    return replace(
        row,
        decode_empty=speed.decode_tok_s,
        decode_tok_s=full.decode_tok_s,
        prefill_tok_s=full.prefill_tok_s,
        month=month_of(trial.question.money, card, full.prefill_tok_s, full.decode_tok_s),
    )


def _growth(windows: dict[str, int | None], room: bool, trained: int) -> str:
    """How far the window can grow, and whether the KV cache is to be watched."""
    longest = windows["f16"] or 0
    if trained and longest >= trained:
        return f"and with all {trained:,} tokens that the model was trained for"
    words = f"{'with room: ' if room else 'watch the KV cache: no room, '}the window can grow to {longest:,} tokens"
    return f"{words}, with a q8_0 cache to {windows['q8_0'] or 0:,}"


def _windows(trial: Trial) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for kind in _KV_TYPES:
        value = trial.longest(kind).value
        found[kind] = value if isinstance(value, int) else None
    return found


def _partly(bits: int, trial: Trial, made: bool) -> Row:
    """Nothing of the class fits as asked: what its smallest file could do."""
    asked = trial.question.context
    windows = _windows(trial)
    reasons = [_short(trial)]
    narrow = next((kind for kind, tokens in windows.items() if tokens and tokens >= asked), None)
    speed = None
    if narrow:
        speed = trial.speed(**{"kv-cache": {"k": narrow, "v": narrow}})
        reasons.append(f"with a {narrow} cache it fits whole, with windows of up to {windows[narrow] or 0:,} tokens")
    elif windows["f16"]:
        reasons.append(f"a window of {windows['f16']:,} tokens fits in f16")
    moved = trial.spilled()
    if moved is None and not narrow:
        reasons.append("not even without its layers: the cache of the window alone is too big")
        return Row(bits, trial.file, "does-not-fit", tuple(reasons), made, windows=windows)
    bound = moved.bound if moved is not None and not narrow else None
    full = None if speed is None else speed.at_depth[-1].decode_tok_s
    found = verdict(bits, "narrow" if narrow else "partly", room=False, tok_s=full if full is not None else bound)
    if moved is not None:
        cost = "at a cost in speed" if narrow or bound is not None else ram_speed(None)
        reasons.append(f"{'or ' if narrow else ''}with {moved.words} in RAM, {cost}")
    reasons += quality_words(bits) + _speed(speed, bound, asked)
    row = Row(
        bits,
        trial.file,
        found,
        tuple(reasons),
        made,
        windows=windows,
        kv_cache=narrow or "f16",
        layers_in_ram=moved.layers if moved else 0,
        experts_in_ram=moved.experts if moved else 0,
        in_ram=moved.words if moved else "",
        decode_at_most=bound,
    )
    return _timed(row, trial, speed)


def _short(trial: Trial) -> str:
    errors = [finding.message for finding in trial.whole.findings if finding.severity == "error"]
    first = errors[0].partition(":")[0]
    return f"with a window of {trial.question.context:,} tokens in f16 it is {first}"


def _speed(speed: Speed | None, bound: float | None, depth: int) -> list[str]:
    slow = f": below {SLOWEST_TOK_S:.0f}, not a host"
    if speed is not None:
        full = speed.at_depth[-1].decode_tok_s
        words = f"about {speed.decode_tok_s:,.0f} tok/s with an empty window, {full:,.0f} with it full"
        return [words + (slow if full < SLOWEST_TOK_S else "")]
    if bound is not None:
        words = f"at most {bound:,.1f} tok/s with {depth:,} tokens in the window"
        return [words + (slow if bound < SLOWEST_TOK_S else "")]
    return []


def _notes(question: Question, headers: list[Header], rows: tuple[Row, ...]) -> tuple[str, ...]:
    """What is to be known of the question itself."""
    said = card_notes(question.gpus)
    trained = max((read_shape(header).trained_context for header in headers), default=0)
    if trained and question.context > trained:
        said.append(
            f"the model was trained for {trained:,} tokens: a window of {question.context:,} is beyond that, and what "
            "lies beyond is answered badly or not at all"
        )
    if len(question.gpus) > 1:
        said.append("the speed of a model on several cards is not predicted, only bounded by the fastest of them")
    if question.money is not None and not any(row.month for row in rows):
        said.append("no month is reckoned: the speed or the card's power is not known")
    return tuple(said)
