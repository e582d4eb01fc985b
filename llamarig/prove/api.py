"""Checks of what the server says and does: ready, keyed, shaped as planned, and able to answer."""

from __future__ import annotations

from llamarig.prove.check import Outcome, Rule
from llamarig.prove.hostile import count, integer, mapping, number, sequence, show, text
from llamarig.prove.services import View

OK = 200
UNAUTHORISED = 401
TELLING_DRAFTS = 16
"""Drafted tokens after which none accepted means a broken draft, not bad luck."""


def health(view: View) -> Outcome:
    """The server has loaded its model. Says nothing of the GPU."""
    status = view.status("health")
    if status == OK:
        return True, "200"
    return False, f"{status or 'no answer'}: {show(view.trouble('health'))}"


def key(view: View) -> Outcome:
    """A planned key is asked for: 401 without and with a wrong one, 200 with it. Without a plan, none is."""
    without = view.status("open")
    if not view.service["keyed"]:
        return without == OK, f"no key is planned; without one the server says {without or 'nothing'}"
    wrong = view.status("wrong-key")
    if without != UNAUTHORISED or wrong != UNAUTHORISED:
        return False, f"without a key the server says {without}, with a wrong one {wrong}; both must be 401"
    withheld = text(view.probe, "withheld")
    if withheld:
        return False, f"the key could not be tried: {show(withheld)}"
    with_key = view.status("props")
    return with_key == OK, f"401 without, 401 with a wrong key, {with_key or 'no answer'} with it"


def _answers(view: View) -> bool:
    """Whether the server told about itself, whatever it does with other keys."""
    return view.status("props") == OK


def build(view: View) -> Outcome:
    """build_info is the label of the wanted release."""
    release = view.wanted["release"]
    prefix = f"b{release['build_number']}-"
    expected = release["label"] if release["label"].startswith(prefix) else prefix + release["label"]
    seen = text(view.said("props"), "build_info")
    return seen == expected, f"{show(seen) or 'none'}, planned {expected}"


def context(view: View) -> Outcome:
    """Every slot has the planned window."""
    planned = view.service["context"]
    windows = [integer(slot, "n_ctx") for slot in sequence(view.probe, "slots", "json")]
    windows.append(integer(view.said("props"), "n_ctx"))
    wrong = sorted({show(window) for window in windows if window != planned})
    return not wrong, f"{', '.join(wrong) if wrong else planned} tokens a slot, planned {planned}"


def slots(view: View) -> Outcome:
    """The server has the planned number of slots, by two of its own accounts."""
    planned, total = view.service["slots"], integer(view.said("props"), "total_slots")
    listed = len(sequence(view.probe, "slots", "json"))
    return total == planned == listed, f"{show(total)} slots, {listed} listed, planned {planned}"


def modalities(view: View) -> Outcome:
    """It takes exactly the planned kinds of input; a projector that was not loaded shows here."""
    said = mapping(view.said("props"), "modalities")
    seen = {"text"} | {kind for kind in ("vision", "audio") if said.get(kind) is True}
    planned = set(view.service["modalities"]) | {"text"}
    return seen == planned, f"{', '.join(sorted(seen))}; planned {', '.join(sorted(planned))}"


def served_model(view: View) -> Outcome:
    """The server names the planned file, and the planned alias among its models."""
    path, planned = text(view.said("props"), "model_path"), view.service["model_path"]
    alias, ids = view.service["alias"], sequence(view.said("models"), "ids")
    if path != planned:
        return False, f"it serves {show(path) or 'nothing'}, planned {planned}"
    if alias and alias not in ids:
        return False, f"it calls its models {show(ids)}, planned {show(alias)}"
    return True, f"{planned}" + (f" as {show(alias)}" if alias else "")


def completion(view: View) -> Outcome:
    """One bounded greedy request returns text."""
    answer = view.said("completion")
    written = text(answer, "text").strip() or text(answer, "reasoning").strip()
    status = view.status("completion")
    if status != OK or not written:
        return False, f"{status or 'no answer'}: {show(view.trouble('completion')) if status != OK else 'no text'}"
    speed = number(answer, "timings", "predicted_per_second")
    pace = f" at {speed:.1f} tok/s" if speed is not None else ""
    return True, f"{show(written, 60)!r}{pace}"


def _drafts(view: View) -> bool:
    """Whether the plan has a drafter that drafts on every prompt (n-grams need a repeating one)."""
    argv = list(view.service["argv"])
    kinds = [argv[at + 1] for at, flag in enumerate(argv[:-1]) if flag == "--spec-type"]
    return any(kind.startswith(("draft", "eagle", "dflash")) for kind in kinds)


def speculation(view: View) -> Outcome:
    """Every slot speculates exactly when planned, and a drafter's tokens are drafted and accepted."""
    planned = bool(view.service["speculative"])
    seen = [mapping(slot).get("speculative") for slot in sequence(view.probe, "slots", "json")]
    if not seen or any(each is not planned for each in seen):
        return False, f"slots say {show(seen)}, planned {planned}"
    if not planned or not _drafts(view):
        return True, "on" if planned else "off, as planned"
    timings = mapping(view.said("completion"), "timings")
    drafted, accepted = integer(timings, "draft_n") or 0, integer(timings, "draft_n_accepted") or 0
    if not drafted or (drafted >= TELLING_DRAFTS and not accepted):
        return False, f"{drafted} tokens drafted, {accepted} accepted"
    return True, f"{accepted} of {drafted} drafted tokens accepted"


def metrics(view: View) -> Outcome:
    """The planned /metrics answers with counters."""
    found = len(view.said("metrics"))
    return view.status(
        "metrics"
    ) == OK and found > 0, f"{view.status('metrics') or 'no answer'}, {count(found, 'value')}"


RULES: tuple[Rule[View], ...] = (
    Rule("health", health, needs=("unit", "port")),
    Rule("key", key, needs=("health",), enough=_answers),
    Rule("build", build, needs=("health", "key")),
    Rule("context", context, needs=("health", "key")),
    Rule("slots", slots, needs=("health", "key")),
    Rule("modalities", modalities, needs=("health", "key")),
    Rule("served-model", served_model, needs=("health", "key")),
    Rule("completion", completion, needs=("health", "key")),
    Rule("speculation", speculation, needs=("health", "key", "completion")),
    Rule("metrics", metrics, needs=("health", "key"), when=lambda view: "--metrics" in view.service["argv"]),
)
