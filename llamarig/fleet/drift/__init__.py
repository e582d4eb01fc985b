"""Drift of a fleet: what differs on each host, since when, from which record, and what many have in common."""
