"""What is wanted against what is observed and recorded: actions with reasons, drift, release ids."""

from llamarig.compare.action import ORDER, Action, Kind
from llamarig.compare.learn import learn
from llamarig.compare.probe_list import probe_list
from llamarig.compare.whole import compare, restarts

__all__ = ["ORDER", "Action", "Kind", "compare", "learn", "probe_list", "restarts"]
