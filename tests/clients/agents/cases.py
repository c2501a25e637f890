"""Which agent runs on which upstream with which task."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import faults
from agents import AGENTS, Agent, Place
from stage import UPSTREAMS, Clock, run_program
from tasks import CodeMode, Compaction, Deferred, Patch, Ran, ServerCompaction, Work

from interlingua.simulator import Simulator

_PROMPT = "Please do the task of the file notes.txt."
_SECONDS = 150


_MAIN = {"opencode": "Chat", "pi": "Chat"}
"""The dialect in which an agent that speaks several meets most faults."""


class Case(NamedTuple):
    """One run of an agent: a task, or a fault of the upstream."""

    agent: Agent
    upstream: str
    kind: Any

    @property
    def group(self):
        return "faults" if isinstance(self.kind, faults.Fault) else self.kind.__name__.lower()

    def row(self, pinned, found):
        """A result as it is written."""
        return {
            "client": f"{self.agent.name} ({self.agent.dialect})",
            "version": pinned[self.agent.package],
            "upstream": self.upstream,
            "feature": found.feature,
            "result": found.result,
            "note": found.note,
        }

    def run(self, stage, folder: Path, environment, keep):
        """The results of this run."""
        is_fault = self.group == "faults"
        stage.renew(self.upstream, is_fresh=is_fault)
        gateway = stage.gateway(self.upstream)
        place = Place(folder / "home", folder / "work", gateway.tap.url, gateway.key, self.group)
        place.home.mkdir()
        place.work.mkdir()
        task = None if is_fault else self.kind(self.agent, self.upstream, place)
        simulator = Simulator(task or self.kind.script())
        stage.show(simulator)
        start = self.agent.start(place, _PROMPT)
        clock = Clock(gateway.tap, faults.SECONDS if is_fault else _SECONDS, _SECONDS)
        ended = run_program(
            start.arguments,
            folder=place.work,
            environment={**environment, "HOME": str(place.home), **start.environment},
            is_over=clock.is_over,
        )
        ran = Ran(ended, simulator, place, gateway.tap.asked)
        if keep:
            self._keep(Path(keep), ran, gateway)
        found = [self.kind.judge(ran)] if task is None else list(task.judge(ran))
        return [self._limited(each) for each in found]

    def _limited(self, found):
        """The result; what the agent cannot have is no failure."""
        reason = self.agent.limits.get(found.feature)
        if reason is None or found.result == "pass":
            return found
        return found._replace(result="not applicable", note=reason)

    def _keep(self, folder, ran, gateway):
        what = self.kind.name if self.group == "faults" else self.group
        name = f"{self.agent.name}-{self.agent.dialect}-{self.upstream}-{what}"
        target = folder / name.replace(" ", "")
        target.mkdir(parents=True, exist_ok=True)
        (target / "output").write_text(f"{ran.ended.code}\n{ran.ended.output}")
        for number, (sent, got) in enumerate(gateway.tap.traffic):
            (target / f"{number}.sent").write_bytes(sent)
            (target / f"{number}.got").write_bytes(got)
        for each in ran.simulator.script.received:
            file = target / f"upstream{each.number}.json"
            fields = {"path": each.call.path, "status": each.status, "body": each.call.body}
            file.write_text(json.dumps({**fields, "error": repr(each.error)}, indent=1))


def choose(options):
    """The runs that the options ask for."""
    return [
        case
        for case in _all()
        if (not options.client or case.agent.name in options.client)
        and (not options.dialect or case.agent.dialect in options.dialect)
        and (not options.upstream or case.upstream in options.upstream)
        and (not options.group or case.group in options.group)
    ]


def _all():
    for agent in AGENTS:
        for upstream in UPSTREAMS:
            yield Case(agent, upstream, Work)
            if agent.is_codex:
                yield Case(agent, upstream, Patch)
            if agent.is_codex and upstream != agent.dialect:
                yield Case(agent, upstream, CodeMode)
                yield Case(agent, upstream, ServerCompaction)
            # In Codex's own dialect what it finds has a namespace, which the script cannot name.
            is_named = agent.dialect != "Responses" or upstream != "Responses"
            if agent.search is not None and is_named:
                yield Case(agent, upstream, Deferred)
        other = "Messages" if agent.dialect != "Messages" else "Responses"
        yield Case(agent, other, Compaction)
        for fault in faults.FAULTS:
            if fault.is_for_all or agent.dialect == _MAIN.get(agent.name, agent.dialect):
                yield Case(agent, other, fault)
