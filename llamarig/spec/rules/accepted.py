"""What the user asked for against the rule, with a reason: every check shows it."""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.spec.rules.base import Broken, View


def keyless(view: View) -> Iterator[Broken]:
    """A service without keys, and why."""
    for name, service in view.spec.services.items():
        if service.listen.keyless is not None:
            yield Broken(
                ("services", name, "listen", "keyless"),
                f"`{name}` serves without keys: {service.listen.keyless.reason}",
                "remove `keyless` when that no longer holds",
                rests_on=(("services", name, "listen", "keyless", "reason"),),
                note=True,
            )


def margin(view: View) -> Iterator[Broken]:
    """A service that may leave less memory free than its margin, and why."""
    for name, service in view.spec.services.items():
        if service.accept_margin is not None:
            yield Broken(
                ("services", name, "accept-margin"),
                f"`{name}` may leave less than {service.margin_mib} MiB free: {service.accept_margin.reason}",
                "remove `accept-margin` when that no longer holds",
                rests_on=(("services", name, "accept-margin", "reason"),),
                note=True,
            )


RULES = (keyless, margin)
