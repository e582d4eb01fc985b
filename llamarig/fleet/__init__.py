"""Waves, gates and the journal of a rollout (not built yet)."""
