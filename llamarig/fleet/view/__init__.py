"""A rollout as people see it: live on a terminal, in lines elsewhere, and as one page. All of it reads the state."""

from llamarig.fleet.view.page import page
from llamarig.fleet.view.terminal import RolloutView

__all__ = ["RolloutView", "page"]
