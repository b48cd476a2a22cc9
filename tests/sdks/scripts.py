"""What the scripted provider says in each scene, as one model and as another."""

from __future__ import annotations

from secondtake.harness.provider import CutOff, ErrorEvent, Failure, Reply, Scene, Script, Stop, ToolCall

CONVERSATIONS = ("talk", "tools", "retried", "length")
"""The four conversations: text alone; tool calls in parallel, then one that fails, then text; 429 and then text; an answer too long."""

SCENES = (
    *CONVERSATIONS,
    *(f"{name}-streamed" for name in CONVERSATIONS),
    "refused",
    "broken-streamed",
    "cut-streamed",
    "left",
    "ended",
    "parallel",
    "counted",
    "listed",
    "fetched",
)
"""Every scene that a program plays, in order."""

LONG = "All of this is said in many small pieces, so that there is something to leave, to cut and to break in the middle of it. "


def turns(name: str, voice: str) -> tuple[Reply | Failure, ...]:
    """The model's turns in a scene. `voice` tells models apart: in texts, and in which tools are called."""
    slow = Failure(429, "slow down")
    match name.removesuffix("-streamed"):
        case "tools" if voice == "first":
            return (
                Reply("I will look. Naïvely.", (ToolCall("run", {"command": "ls"}), ToolCall("read_file", {"path": "README.md"}))),
                Reply(tools=(ToolCall("run", {"command": "false"}),)),
                Reply("It is as first thought."),
            )
        case "tools":
            return (
                Reply(f"The {voice} model looks.", (ToolCall("run", {"command": "pwd"}), ToolCall("run", {"command": "ls -l"}))),
                Reply(f"It is as the {voice} model thought."),
            )
        case "retried":
            return (Reply(f"At last, says the {voice} model.", first=(slow,)),)
        case "length":
            return (Reply(f"{LONG} By the {voice} model", stop=Stop.LENGTH),)
        case "refused":
            return (Failure(400, "prompt is too long"),)
        case "broken":
            return (Reply(LONG, broken=ErrorEvent(5, Failure(503, "busy"))),)
        case "cut":
            return (Reply(LONG, broken=CutOff(5)),)
        case _:
            return (Reply(f"{LONG}{name.removesuffix('-streamed')}, said by the {voice} model."),)


def script(first: str, second: str = "", *, served: str = "", second_served: str = "") -> Script:
    """A script for the model that is recorded and, if given, for another. `served`: what answers name, where not what is asked."""
    voices = {first: "first", **({second: "second"} if second else {})}
    names = [name for name in SCENES if name not in {"parallel", "counted", "listed", "fetched"}]
    names += ["count", *(f"parallel-{n}" for n in range(4))]
    return Script(
        tuple(
            Scene(turns(name, voice), model, task, served=served if voice == "first" else second_served)
            for model, voice in voices.items()
            for name, task in ((name, f"Please: {name}.") for name in names)
        )
    )
