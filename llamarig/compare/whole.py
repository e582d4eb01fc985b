"""All comparisons in one: what is to be done to a host, in the order in which it is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llamarig.compare import content, driver, kept, power, running, system, toolkit
from llamarig.compare.act import fit
from llamarig.compare.action import ORDER, Action
from llamarig.compare.load import wanted_from_json
from llamarig.compare.machine import refuse_another
from llamarig.compare.view import view_of
from llamarig.render.wanted import Wanted


def compare(wanted: Wanted | Mapping[str, Any], observed: Mapping[str, Any]) -> list[Action]:
    """Every action that makes the host what is wanted, each once, ordered by kind and then by subject.

    Pure: the same two documents give the same list. What is missing in
    ``observed`` or of the wrong type counts as different; what is no observation
    at all, or one of another machine than the spec means, raises
    :class:`~llamarig.errors.RigError`. ``wanted`` may be given as its JSON form,
    as the playbooks have it.
    """
    view = view_of(wanted if isinstance(wanted, Wanted) else wanted_from_json(wanted), observed)
    refuse_another(view)
    actions = [
        *system.packages(view),
        *system.users(view),
        *system.directories(view),
        *driver.driver(view),
        *toolkit.toolkit(view),
        *content.release(view),
        *content.models(view),
        *system.credentials(view),
        *system.files(view),
        *content.switch(view),
        *running.ports(view),
        *power.power(view),
    ]
    actions += running.services(view, actions)
    actions += kept.record(view, actions)
    each = dict.fromkeys(fit(action) for action in actions)
    return sorted(each, key=lambda action: (ORDER.index(action.kind), action.subject))


def restarts(actions: list[Action], wanted: Wanted) -> list[str]:
    """The services that the actions start or restart, each once, in the order of the wanted state."""
    named = {name for action in actions for name in action.restarts}
    return [service.name for service in wanted.services if service.name in named]
