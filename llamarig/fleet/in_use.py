"""Look whether hosts are in use, and wait for running requests where the policy says so."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from llamarig.converge.events import Sink
from llamarig.converge.explain import explain
from llamarig.converge.private import private_directory
from llamarig.converge.run import HostVariables, Run, run_playbook
from llamarig.errors import ExitCode, RigError
from llamarig.fleet.policy.busy import Rules, Use, busy
from llamarig.prove import probe_services

PLAYBOOK = "busy"
_NOT_SENT = frozenset({"llamarig_wanted", "llamarig_probe"})

Verdict = Use | RigError | None
"""Why a host is left for later; None when it may be changed, an error when it could not be asked."""


def hosts_in_use(rules: Mapping[str, Rules], variables: HostVariables, sink: Sink | None = None) -> dict[str, Verdict]:
    """What stands against changing each host of ``rules`` now.

    ``variables`` are those that Ansible sees (:func:`llamarig.converge.hosts.host_variables`). One run looks at all
    hosts; a second one waits on those that answer requests and may be drained.
    """
    asked = {host: 0 for host, each in rules.items() if _has_to_be_asked(each)}
    verdicts: dict[str, Verdict] = dict.fromkeys(rules)
    verdicts |= _asked(rules, asked, variables, sink)
    draining = {host: rules[host].drain_s for host, use in verdicts.items() if isinstance(use, Use) and use.drains}
    return verdicts | _asked(rules, {host: wait for host, wait in draining.items() if wait}, variables, sink)


def _has_to_be_asked(rules: Rules) -> bool:
    return rules.asks_servers or rules.users == "defer" or bool(rules.windows)


def _asked(
    rules: Mapping[str, Rules], waits: Mapping[str, int], variables: HostVariables, sink: Sink | None
) -> dict[str, Verdict]:
    """Look at the hosts of ``waits``, each for as many seconds as it says while it answers requests."""
    if not waits:
        return {}
    given = {host: _variables(variables[host], rules[host], wait) for host, wait in waits.items()}
    with private_directory() as private:
        run = run_playbook(PLAYBOOK, given, private, sink=sink)
    now = time.time()
    found: dict[str, Verdict] = {}
    for host in waits:
        idle = _idle(run, host)
        found[host] = idle if isinstance(idle, RigError) else busy(idle, rules[host], now)
    return found


def _variables(own: Mapping[str, Any], rules: Rules, wait_s: int) -> dict[str, Any]:
    services = probe_services(own["llamarig_wanted"]) if rules.asks_servers else []
    minutes = rules.within_min if rules.requests == "defer" else 0
    question = {"services": services, "minutes": minutes, "wait_s": wait_s}
    return {name: value for name, value in own.items() if name not in _NOT_SENT} | {"llamarig_busy": question}


def _idle(run: Run, host: str) -> Mapping[str, Any] | RigError:
    outcome = run.hosts[host]
    seen = outcome.results.get("rig_idle", {}).get("idle")
    if isinstance(seen, dict) and not outcome.failures:
        return seen
    if outcome.failures:
        return explain(host, outcome.failures[-1])
    what, words = "Ansible ended without an answer", run.messages[-4000:]
    return RigError(what=what, where=host, why=words, code=ExitCode.HOST_FAILED)


__all__ = ["Verdict", "hosts_in_use"]
