"""`template.yaml` as plain dictionaries, its short forms of functions (`!Ref`, `!Sub`, …) in their long form."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent

Tree = dict[str, Any]


class _Loader(yaml.SafeLoader):
    """Reads CloudFormation's tags."""


def _long_form(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> Tree:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
        if tag == "GetAtt":
            value = value.split(".")
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    return {tag if tag in {"Ref", "Condition"} else f"Fn::{tag}": value}


_Loader.add_multi_constructor("!", _long_form)


@cache
def template() -> Tree:
    """Load it."""
    loaded: Tree = yaml.load((ROOT / "template.yaml").read_text(), _Loader)  # noqa: S506  # a SafeLoader's child
    return loaded


def resources(kind: str) -> dict[str, Tree]:
    """The resources of a type, by their logical names."""
    return {name: entry for name, entry in template()["Resources"].items() if entry["Type"] == kind}


def functions() -> dict[str, Tree]:
    """The properties of each function, by the name of its folder, the globals merged in."""
    found: dict[str, Tree] = {}
    shared: Tree = template()["Globals"]["Function"]
    for entry in resources("AWS::Serverless::Function").values():
        own: Tree = entry["Properties"]
        environment = shared["Environment"]["Variables"] | own.get("Environment", {}).get("Variables", {})
        layers = shared["Layers"] + own.get("Layers", [])
        folder = Path(own["CodeUri"]).name
        found[folder] = shared | own | {"Environment": environment, "Layers": layers}
    return found


def default_environment(folder: str) -> dict[str, str]:
    """The variables of a function as a stack with every default would set them."""
    return {name: resolved(value) for name, value in functions()[folder]["Environment"].items()}


def resolved(value: Any) -> str:
    """Give a value as CloudFormation would, parameters at their defaults; resources as something of their form."""
    match value:
        case {"Ref": name}:
            return _reference(name)
        case {"Fn::GetAtt": [name, *_]}:
            return f"arn:aws:service:eu-central-1:123456789012:{name}"
        case {"Fn::Sub": text}:
            return re.sub(r"\$\{([\w:]+)\}", lambda match: _reference(match[1]), text)
        case _:
            return str(value)


def _reference(name: str) -> str:
    if name in template()["Parameters"]:
        return str(template()["Parameters"][name]["Default"])
    if name == "AWS::StackName":
        return "rejoinder-dev"
    if template()["Resources"][name]["Type"] == "AWS::SQS::Queue":
        return f"https://sqs.eu-central-1.amazonaws.com/123456789012/{name}"
    return name


BOT_POLICY = {"Fn::If": ["HasBotPolicy", {"Ref": "BotPolicyArn"}, {"Ref": "AWS::NoValue"}]}
"""What the user's own bot is allowed, beside what the code needs."""


def statements(folder: str) -> Iterator[Tree]:
    """The policy statements of a function, actions and resources as lists."""
    for policy in functions()[folder]["Policies"]:
        if policy == BOT_POLICY:
            continue
        assert isinstance(policy, Mapping), f"{folder}: a managed policy or a SAM policy template is wider than needed"
        for statement in policy["Statement"]:
            yield statement | {name: _listed(statement[name]) for name in ("Action", "Resource")}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
