# SPDX-License-Identifier: Apache-2.0
"""Decide on the controller what goes from a host, have it removed, and hold what is left against what was to stay."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from ansible.plugins.action import ActionBase

from llamarig.compare.gc import agreed, differs, refuse, sweep
from llamarig.compare.load import wanted_from_json
from llamarig.compare.text import printable
from llamarig.compare.view import View, view_of
from llamarig.converge.way_back import held_by
from llamarig.errors import RigError


class ActionModule(ActionBase):
    """Arguments: ``wanted`` and ``observed``, and

    - ``state: listed`` (the default) lists and decides: ``gone``, ``kept``, ``unknown``, and the ``listing`` itself.
      ``run`` is the run whose lock does not count, ``ignore_lock`` lets nobody's count; ``build_cache``: the compiler
      cache goes too; ``agreed``: nothing else goes than what is named there, each as ``KIND PATH``.
    - ``state: absent`` removes ``gone`` of ``decision``, lists again and proves: ``observed`` is from before.
    - ``state: proven`` with ``decision`` and ``removed`` of the steps before, ``observed`` from before, ``now`` from
      after.
    """

    _requires_connection = True
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = self._task.args
        self._variables = task_vars or {}
        step = {"listed": self._listed, "absent": self._absent, "proven": self._proven}[
            arguments.get("state", "listed")
        ]
        try:
            wanted = wanted_from_json(arguments["wanted"])
            return {**result, "changed": False, **step(view_of(wanted, arguments["observed"]))}
        except RigError as error:
            return {**result, "failed": True, "msg": str(error)}

    def _module(self, view: View, **more: Any) -> dict[str, Any]:
        homes = {str(PurePosixPath(model.path).parents[1]) for model in view.wanted.models}
        asked = {"models": sorted(homes), "users": [user.name for user in view.wanted.users], **more}
        answer: dict[str, Any] = self._execute_module("rig_gc", module_args=asked, task_vars=self._variables)
        answer.pop("invocation", None)
        return answer

    def _listed(self, view: View) -> dict[str, Any]:
        arguments = self._task.args
        # The removal itself searches once more.
        answer = self._module(view, state="listed", search=not arguments.get("run"))
        if "listing" not in answer:
            return {**answer, "failed": True}
        refuse(view, answer["listing"])
        lock = view.part("lock")
        ours = bool(arguments.get("run")) and lock.get("run") == arguments.get("run")
        busy = "" if ours or arguments.get("ignore_lock") else held_by(view.observed)
        plan = sweep(view.wanted, answer["listing"], busy=busy, build_cache=bool(arguments.get("build_cache")))
        plan = agreed(plan, arguments.get("agreed"))
        return {"listing": answer["listing"], "busy": busy, **plan.to_json()}

    def _absent(self, view: View) -> dict[str, Any]:
        things = [{key: each[key] for key in ("kind", "path", "id")} for each in self._task.args["decision"]["gone"]]
        return self._module(view, state="absent", things=things)

    def _proven(self, view: View) -> dict[str, Any]:
        arguments = self._task.args
        answer = self._module(view, state="listed", search=False)
        if "listing" not in answer:
            return {**answer, "failed": True}
        removed, left = arguments["removed"]["removed"], arguments["removed"]["left"]
        now = view_of(view.wanted, arguments["now"])
        keys = [(each["kind"], each["path"]) for each in removed]
        wrong = differs(arguments["decision"]["listing"], answer["listing"], keys, view, now)
        reasons = {(each["kind"], each["path"]): each["reason"] for each in arguments["decision"]["gone"]}
        for each in removed:
            each["reason"] = reasons.get((each["kind"], each["path"]), "")
        told = {"removed": removed, "left": left, "differs": wrong}
        if not wrong:
            return told
        lines = "\n".join(printable(each, 600) for each in wrong)
        fix = f"run `llamarig verify {view.wanted.host}` and `llamarig drift {view.wanted.host}`"
        return {**told, "failed": True, "msg": f"after the removal not all is as it should be\n{lines}\nfix: {fix}"}
