"""Rollouts over a fleet: waves, gates, a journal that survives the controller."""
