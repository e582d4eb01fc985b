"""Look whether hosts are in use, and wait for running requests where the policy says so."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.converge.apply import Options, prepare
from llamarig.converge.events import Sink
from llamarig.converge.explain import explain
from llamarig.converge.private import private_directory
from llamarig.converge.run import HostVariables, Run, run_playbook
from llamarig.errors import ExitCode, RigError, RigErrors
from llamarig.fleet.policy.busy import Rules, Use, busy, rules_of
from llamarig.prove import probe_services
from llamarig.spec.load import load_project
from llamarig.spec.rollout import Rollout

if TYPE_CHECKING:
    from llamarig.spec.overlay import Overlay

PLAYBOOK = "busy"
_NOT_SENT = frozenset({"llamarig_wanted", "llamarig_probe"})

Verdict = Use | RigError | None
"""Why a host is left for later; None when it may be changed, an error when it could not be asked."""


def hosts_in_use(
    rules: Mapping[str, Rules], variables: HostVariables, sink: Sink | None = None, *, wait: bool = True
) -> dict[str, Verdict]:
    """What stands against changing each host of ``rules`` now.

    ``variables`` are those that Ansible sees (:func:`llamarig.converge.hosts.host_variables`). One run looks at all
    hosts; a second one waits on those that answer requests and may be drained, unless ``wait`` is off.
    """
    asked = {host: 0 for host, each in rules.items() if _has_to_be_asked(each)}
    verdicts: dict[str, Verdict] = dict.fromkeys(rules)
    verdicts |= _asked(rules, asked, variables, sink)
    draining = {
        host: rules[host].drain_s for host, use in verdicts.items() if wait and isinstance(use, Use) and use.drains
    }
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


class UseGate:
    """Asked of hosts that are to be changed: why one must not be now. It reads their specs as they are then."""

    def __init__(self, root: Path, options: Options, sink: Sink | None = None, overlay: Overlay | None = None) -> None:
        self._root, self._options, self._sink, self.overlay = root, options, sink, overlay

    def __call__(self, hosts: Sequence[str]) -> dict[str, str]:
        """The reason by host, in words; hosts that may be changed are left out."""
        verdicts = self.verdicts(hosts)
        return {host: _words(verdict) for host, verdict in verdicts.items() if verdict is not None}

    def verdicts(self, hosts: Sequence[str], *, wait: bool = True) -> dict[str, Verdict]:
        """What stands against changing each host; without ``wait`` nobody waits for running requests."""
        project = load_project(self._root, self.overlay)
        chosen = [project.named(name) for name in hosts]
        with private_directory() as private:
            try:
                ready = [host for host in prepare(self._root, chosen, private, self._options) if not host.refused]
            except RigErrors as errors:
                return dict.fromkeys(hosts, errors.errors[0])
            variables = {host.host: host.variables for host in ready}
            rules = {
                loaded.host: rules_of(loaded.spec, loaded.fleet.rollout or Rollout())
                for loaded in chosen
                if loaded.spec is not None and loaded.host in variables
            }
            return hosts_in_use(rules, variables, self._sink, wait=wait)


def _words(verdict: Use | RigError) -> str:
    if isinstance(verdict, Use):
        return verdict.reason
    return f"nobody knows whether it is in use: {verdict.what}"


__all__ = ["UseGate", "Verdict", "hosts_in_use"]
