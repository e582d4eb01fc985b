"""How a plan is shown: on a terminal, away from one, and as a page."""
