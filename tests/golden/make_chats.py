"""Makes chats/chats.json: chats, and what jinja2 makes of them by chats/*.jinja, templates of known models.

Run: python make_chats.py (jinja2 3.1.6), which reads chats/*.jinja and writes chats/chats.json beside it.
The environment is that of transformers' apply_chat_template without strftime_now, which is another text each
day.
"""

import json
import pathlib

from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import CallBlock
from jinja2.sandbox import ImmutableSandboxedEnvironment


FOLDER = pathlib.Path(__file__).parent / "chats"
NAMES = [
    "chatml", "qwen2.5", "qwen3", "llama2", "llama3", "llama3.1", "mistral",
    "mistral3", "gemma", "gemma3", "phi3", "zephyr", "generation", "parts",
]
TEMPLATES = {name: (FOLDER / f"{name}.jinja").read_bytes().decode() for name in NAMES}


def say(role, content, **more):
    return {"role": role, "content": content, **more}


CALL = {
    "id": "abcdefghi",
    "type": "function",
    "function": {"name": "add", "arguments": {"z": 1, "a": [2.5, 'é\n"']}},
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Adds.",
            "parameters": {
                "type": "object",
                "properties": {"z": {"type": "number"}, "a": {"type": "array", "items": {}}},
                "required": ["z"],
            },
        },
    }
]
CHATS = [
    {"messages": [say("user", "Hello there"), say("assistant", "Good day")]},
    {
        "messages": [
            say("system", "Be brief."),
            say("user", " Why?\n"),
            say("assistant", "  So. \n"),
            say("user", "And then"),
            say("assistant", "<think>\nhm\n</think>\n\nDone é 你好"),
        ]
    },
    {"messages": [say("user", "no answer")]},
    {"messages": [say("user", "a"), say("user", "b")]},
    {"messages": [say("user", "\u3000wide\u00a0"), say("assistant", "\u2003x\u001f")]},
    {
        "messages": [
            say("user", "1 + 2"),
            say("assistant", "", tool_calls=[CALL]),
            say("tool", "3", tool_call_id="abcdefghi"),
            say("assistant", "It is 3"),
        ],
        "tools": TOOLS,
    },
    {
        "messages": [
            say("user", [{"type": "text", "text": "parts "}]),
            say("assistant", [{"type": "text", "text": " of it"}]),
        ]
    },
]


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


def raise_exception(message):
    raise TemplateError(message)


def main():
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = lambda x, ensure_ascii=False, indent=None: json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent
    )
    environment.globals["raise_exception"] = raise_exception
    rows = []
    for name, source in TEMPLATES.items():
        template = environment.from_string(source)
        for chat in CHATS:
            try:
                text = template.render(
                    messages=chat["messages"],
                    tools=chat.get("tools"),
                    documents=None,
                    add_generation_prompt=False,
                    bos_token="<s>",
                    eos_token="</s>",
                )
            except Exception as error:
                text = None
            rows.append({"template": name, "chat": CHATS.index(chat), "text": text})
    out = {"chats": CHATS, "texts": rows}
    path = pathlib.Path(__file__).resolve().parent / "chats/chats.json"
    path.write_text(json.dumps(out, ensure_ascii=False, indent=0) + "\n")


if __name__ == "__main__":
    main()
