"""The tasks that the scripted upstream gives to an agent, and what must hold after each."""

import base64
import json
import struct
import zlib
from typing import NamedTuple

from agents import Agent, Place, names
from stage import Ended

from interlingua.simulator import (
    Simulator,
    Turn,
    custom_call,
    signed,
    text,
    thinking,
    tool_call,
    usage,
    use_tools,
)
from interlingua.spec.content import Image, Thinking, ToolResult

ANSWER = "All of it is done: FORTY-TWO."
_WRITTEN = "written by the agent"
_TURNS = 8


class Found(NamedTuple):
    """The result of one feature."""

    feature: str
    result: str
    note: str = ""


def judge(feature, problem, note=""):
    """A result: passed unless there is a problem."""
    return Found(feature, "fail" if problem else "pass", problem or note)


class Ran(NamedTuple):
    """What a run left."""

    ended: Ended
    simulator: Simulator
    place: Place
    asked: int
    """How many answers the agent has asked the gateway for."""

    @property
    def steps(self):
        """The requests of the agent's loop, as the upstream decoded them, with their bodies."""
        return [
            (each.request, json.dumps(each.call.body))
            for each in self.simulator.script.received
            if each.request is not None and each.request.tools
        ]

    @property
    def answer_problem(self):
        """Why the answer was not shown; empty if it was."""
        if self.ended.code is not None and ANSWER in self.ended.output:
            return ""
        return f"the answer was not shown; {self.end}"

    @property
    def end(self):
        """How the agent ended, with the last words of its output."""
        how = "killed" if self.ended.code is None else f"exit {self.ended.code}"
        return f"{how}: {tail(self.ended.output)}"


def tail(output):
    """The end of an output, in one line."""
    return " ".join(output.split())[-160:]


def results_of(request):
    """The results of tools in the whole history."""
    return [part for m in request.messages for part in m.content if isinstance(part, ToolResult)]


def _said(request):
    """The texts of all results."""
    return [_text_of(part) for part in results_of(request)]


def _text_of(part):
    if isinstance(part.content, str):
        return part.content
    if part.parts is not None:
        return "".join(getattr(each, "text", None) or "" for each in part.parts)
    return json.dumps(part.content)


class Task:
    """A script in steps; the next one is chosen by the results that a request has."""

    def __init__(self, agent: Agent, upstream: str, place: Place):
        self.agent, self.upstream, self.place = agent, upstream, place
        self.work = place.work
        self.prepare()

    def prepare(self):
        """Write the files of the task."""

    def step(self, request, done):
        """The turn after so many results."""
        raise NotImplementedError

    def judge(self, ran: Ran):
        """The results of the run."""
        raise NotImplementedError

    def __call__(self, request):
        """The turn for a request; what is no step of the loop gets a short answer."""
        agent = self.agent
        parts = (*agent.read(request, "x").parts, *agent.write(request, "x", "").parts)
        if not names(request) & {part.name for part in parts}:
            return self.aside(request)
        return self.step(request, len(results_of(request)))

    def aside(self, request):
        """The turn for a request that is no step of the loop, such as one for a title."""
        return use_tools(request) if request.response_format else text("A short title")


class Work(Task):
    """Two files at once, an image, a file to write, more files, the answer; each turn has state."""

    def prepare(self):
        self.states = [
            base64.b64encode(f"state {number} of {self.agent.name}".encode()).decode()
            for number in range(_TURNS)
        ]
        self.reached = 0
        for number in range(_TURNS):
            self._file(number).write_text(f"content-of-file-{number}\n")
        (self.work / "notes.txt").write_text("content-of-the-notes\n")
        (self.work / "picture.png").write_bytes(_picture())

    def _file(self, number):
        return self.work / f"file{number}.txt"

    def step(self, request, done):
        number = max(0, done - 1)  # the first turn has two calls
        self.reached = max(self.reached, number)
        if number >= _TURNS:
            return text(ANSWER)
        return self._with_state(self._calls(request, number), number)

    def _calls(self, request, number):
        agent = self.agent
        if number == 0:
            notes = agent.read(request, self.work / "notes.txt")
            return notes + agent.read(request, self._file(0))
        if number == 1:
            return (agent.look or agent.read)(request, self.work / "picture.png")
        if number == 2:
            return agent.write(request, self.work / "out.txt", _WRITTEN)
        return agent.read(request, self._file(number))

    def _with_state(self, calls: Turn, number):
        state = self.states[number]
        thought = "" if number % 2 else f"Thought {number}."  # vendors often show no text
        if self.upstream == "Gemini":  # signs the first call of an answer
            return signed(Turn(parts=calls.parts[:1]), state) + Turn(parts=calls.parts[1:])
        if self.upstream == "Chat":  # OpenRouter's form, the only one with a signature
            detail = {"type": "reasoning.encrypted", "data": state, "index": 0}
            if thought:
                detail = {"type": "reasoning.text", "text": thought, "signature": state, "index": 0}
            extra = {"openai_chat": {"~fields": ["reasoning"], "reasoning_details": [detail]}}
            return Turn(parts=(Thinking(text=thought, extra=extra),)) + calls
        return thinking(thought, signature=state) + calls

    def judge(self, ran):
        if not ran.steps:
            yield judge("text", f"no request reached the upstream; {ran.end}")
            return
        last, body = ran.steps[-1]
        said = json.dumps(_said(last))
        yield judge("text", ran.answer_problem)
        is_read = "content-of-the-notes" in said
        out = self.work / "out.txt"
        is_written = out.exists() and out.read_text().strip() == _WRITTEN
        is_done = is_read and is_written
        yield judge("tool loop", "" if is_done else f"read: {is_read}, written: {is_written}")
        has_both = is_read and "content-of-file-0" in said
        yield judge("parallel calls", "" if has_both else "not both results came back")
        images = [part for m in last.messages for part in m.content if isinstance(part, Image)]
        images += [p for r in results_of(last) for p in r.parts or () if isinstance(p, Image)]
        yield judge("image in a tool result", "" if images else "no image reached the upstream")
        yield judge("eight turns", "" if self.reached >= _TURNS else f"{self.reached} turns")
        sent = self.states[: self.reached]
        lost = [number for number, state in enumerate(sent) if state not in body]
        yield judge(
            "state returned", f"lost in turns {lost} of {len(sent)}" if lost or not sent else ""
        )


def _picture():
    """A small PNG."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    row = b"".join(bytes((x * 4, 99, 99)) for x in range(64))
    head = struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)
    data = zlib.compress((b"\x00" + row) * 64)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


class Patch(Task):
    """`apply_patch`, a tool whose only argument is a text with a grammar."""

    TEXT = "*** Begin Patch\n*** Add File: patched.txt\n+patched by the agent\n*** End Patch\n"

    def step(self, request, done):
        if done:
            return text(ANSWER)
        (tool,) = [each for each in request.tools if getattr(each, "name", "") == "apply_patch"]
        if self.upstream == "Responses":
            return custom_call("apply_patch", self.TEXT)
        (field,) = tool.parameters["properties"]  # other dialects have functions only
        return tool_call("apply_patch", {field: self.TEXT})

    def judge(self, ran):
        patched = self.work / "patched.txt"
        is_patched = patched.exists() and patched.read_text() == "patched by the agent\n"
        yield judge("apply_patch", ran.answer_problem if is_patched else f"no file; {ran.end}")


class CodeMode(Task):
    """Tools in an item of the input, the first of which runs code that calls the others."""

    CODE = "const ran = await tools.exec_command({cmd: 'cat notes.txt'}); text(ran.output);"

    def prepare(self):
        self.said = ""
        (self.work / "notes.txt").write_text("content-of-the-notes\n")

    def __call__(self, request):
        """The call of the tool, then the answer."""
        if results_of(request):
            self.said = json.dumps(_said(request))
            return text(ANSWER)
        offered = [name for name in names(request) if name.endswith("exec")]
        return tool_call(offered[0], {"input": self.CODE}) if offered else text("no tools")

    def judge(self, ran):
        is_read = "content-of-the-notes" in self.said
        yield judge("code mode", ran.answer_problem if is_read else f"nothing ran; {ran.end}")


class Deferred(Task):
    """A tool that is found by a search, offered after it, and called."""

    def prepare(self):
        self.offered = []

    def step(self, request, done):
        self.offered.append(names(request))
        if done == 0:
            return self.agent.search(request)
        return self.agent.found(request) if done == 1 else text(ANSWER)

    def judge(self, ran):
        if len(self.offered) < 3:
            yield judge("deferred tools", f"{len(self.offered)} turns; {ran.end}")
            return
        name = self.agent.found(ran.steps[-1][0]).parts[0].name
        problem = "" if name in self.offered[1] else f"{name} was not offered after the search"
        yield judge("deferred tools", problem or ran.answer_problem)


class Compaction(Task):
    """The context is nearly full: the agent asks for a summary and goes on with it."""

    FEATURE = "compaction"
    SUMMARY = "SUMMARY-OF-THE-TALK: the notes were read."
    WORDS = ("summar", "compact", "handoff", "checkpoint", "snapshot")

    def prepare(self):
        self.is_asked = False
        self.is_used = False
        for number in range(6):
            (self.work / f"file{number}.txt").write_text(f"{number} " + "word " * 4000)

    def __call__(self, request):
        """The summary, where it is asked for; the answer after it."""
        whole = json.dumps([message.text for message in request.messages])
        if "SUMMARY-OF-THE-TALK" in whole:
            self.is_used = True
            return text(ANSWER)
        last = request.messages[-1]
        asked = "".join(getattr(part, "text", "") for part in last.content[-1:]).lower()
        is_about = last.role == "user" and any(word in asked for word in self.WORDS)
        has_work = results_of(request) or "word word" in whole
        if has_work and (is_about or not request.tools):
            self.is_asked = True
            return text(f"<state_snapshot>{self.SUMMARY}</state_snapshot>")
        return super().__call__(request)

    def step(self, request, done):
        if done >= 6:
            return text(ANSWER)
        call = self.agent.read(request, self.work / f"file{done}.txt")
        return call + (usage(195_000, 50) if done else usage(20_000, 50))

    def judge(self, ran):
        if not self.is_asked:
            yield judge(self.FEATURE, f"no summary was asked for; {ran.end}")
            return
        problem = "" if self.is_used else f"the summary did not come back; {ran.end}"
        yield judge(self.FEATURE, problem or ran.answer_problem)


class ServerCompaction(Compaction):
    """The same, where the agent leaves it to the server of its own provider."""

    FEATURE = "compaction by the gateway"
