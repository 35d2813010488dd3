"""What any stack can be given fits the variables of a function."""

import json
import re
from typing import Any

import pytest

from rejoinder.per_account import OWN_TIMES
from rejoinder.protocol.timing import BOUNDS
from rejoinder.settings import TEXTS
from stack import functions, template

LIMIT_BYTES = 4_096
"""AWS Lambda Developer Guide, "Lambda quotas": all variables of a function together. Measured is their JSON, quotes and
escapes included: the refusal shows it ("String measured:", github-aws-runners/terraform-aws-github-runner #3594)."""

STACK = "s" * 128
"""AWS CloudFormation User Guide, "CloudFormation quotas"."""

NAME_LENGTHS = {
    "AWS::DynamoDB::Table": 255,
    "AWS::IAM::Role": 64,
    "AWS::Scheduler::ScheduleGroup": 64,
    "AWS::Serverless::Function": 64,
    "AWS::SNS::Topic": 256,
    "AWS::SQS::Queue": 80,
}
"""The longest name of each, by its service's API reference; CloudFormation cuts what it makes up to that."""

PLACE = "ap-southeast-1:123456789012"
WIDEST = "\N{PILE OF POO}"
"""Four bytes in UTF-8, as much as a character has."""

ASCII_ONLY = frozenset({"Bot", "PerAccount"})
"""Their pattern allows nothing else."""


def longest(value: Any) -> str:
    """The longest that a variable can be."""
    match value:
        case {"Ref": "AWS::StackName"}:
            return STACK
        case {"Ref": str(name)} if name in template()["Parameters"]:
            return longest_parameter(name)
        case {"Ref": str(name)}:
            made = longest_name(name)
            queue = template()["Resources"][name]["Type"] == "AWS::SQS::Queue"
            return f"https://sqs.{PLACE.replace(':', '.amazonaws.com.cn/')}/{made}" if queue else made
        case {"Fn::GetAtt": [name, _]}:
            return f"arn:aws-us-gov:scheduler:{PLACE}:function:{longest_name(name)}"
        case {"Fn::Sub": str(text)}:
            return re.sub(r"\$\{([\w:]+)\}", lambda match: longest({"Ref": match[1]}), text)
        case _:
            pytest.fail(f"how long can {value} be?")


def longest_name(resource: str) -> str:
    """A physical name as CloudFormation makes it up."""
    limit = NAME_LENGTHS[template()["Resources"][resource]["Type"]]
    return f"{STACK}-{resource}-{'R' * 14}"[:limit]


def longest_parameter(name: str) -> str:
    """The longest that the template lets through."""
    parameter = template()["Parameters"][name]
    if "AllowedValues" in parameter:
        return max(map(str, parameter["AllowedValues"]), key=len)
    if parameter["Type"] == "Number":
        return str(parameter["MaxValue"])
    return str(("x" if name in ASCII_ONLY else WIDEST) * parameter["MaxLength"])


@pytest.mark.parametrize("function", ["ingest", "generate", "sweep"])
def test_the_longest_of_everything_fits(function: str) -> None:
    variables = {name: longest(value) for name, value in functions()[function]["Environment"].items()}
    measured = json.dumps(variables, ensure_ascii=False, separators=(",", ":")).encode()
    assert len(measured) <= LIMIT_BYTES


@pytest.mark.parametrize("name", ["Bot", "PerAccount"])
@pytest.mark.parametrize("more", ["é", '"', " ", "\n"])
def test_what_is_counted_as_one_byte_is_one(name: str, more: str) -> None:
    pattern = template()["Parameters"][name]["AllowedPattern"]
    usual = {"Bot": "bot:reply", "PerAccount": "ssm:/rejoinder/my-bot/per-account:7"}[name]
    assert re.fullmatch(pattern, usual)
    for place in range(len(usual) + 1):
        assert not re.fullmatch(pattern, usual[:place] + more + usual[place:])


def test_what_accounts_have_of_their_own_has_room_where_it_is_referred_to() -> None:
    """Twenty accounts, each with everything of its own, at its longest."""
    parameter = template()["Parameters"]["PerAccount"]
    assert len(f"ssm:/rejoinder/{STACK}/per-account:100") <= parameter["MaxLength"]
    own = {"bot": "sales:reply_in_the_language_of_the_customer", **{name: BOUNDS[name][1] for name in OWN_TIMES}}
    text = json.dumps({f"whatsapp:10000000000000{number:02}": own for number in range(20)})
    assert re.fullmatch(TEXTS["PER_ACCOUNT"][1], text)
