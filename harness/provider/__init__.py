"""A provider that follows a script: real wire formats, streamed and not, no model behind it."""

from secondtake.harness.provider.certificate import Identity, make_identity
from secondtake.harness.provider.script import (
    CutOff,
    ErrorEvent,
    Failure,
    HowCut,
    Reply,
    Scene,
    Script,
    Stop,
    ToolCall,
    Turn,
    read_script,
)
from secondtake.harness.provider.server import Pacer, Provider, Seen, no_pace, real_pace
from secondtake.harness.provider.wire import Call

__all__ = [
    "Call",
    "CutOff",
    "ErrorEvent",
    "Failure",
    "HowCut",
    "Identity",
    "Pacer",
    "Provider",
    "Reply",
    "Scene",
    "Script",
    "Seen",
    "Stop",
    "ToolCall",
    "Turn",
    "make_identity",
    "no_pace",
    "read_script",
    "real_pace",
]
