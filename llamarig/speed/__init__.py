"""How fast a server answers, from what a pass must read and compute and from measured runs."""

from __future__ import annotations

from llamarig.speed.limits import Limits, limits, limits_on
from llamarig.speed.predict import Speed, predict
from llamarig.speed.rates import Rates, rates_of
from llamarig.speed.work import Work, work_of

__all__ = ["Limits", "Rates", "Speed", "Work", "limits", "limits_on", "predict", "rates_of", "work_of"]
