"""What is watched, from when on it is an alarm, and whom it tells; and what operating.md says of it."""

import re
from typing import Any

import pytest

from rejoinder.observe.happenings import GAUGES, HAPPENINGS
from rejoinder.observe.powertools import NAMESPACE
from stack import ROOT, Tree, resources, template

OURS = {"service": {"Ref": "AWS::StackName"}}
MINUTES_5 = 300

Watch = tuple[str, str, dict[str, Tree], str, int, int, Any, str]


def depth(queue: str) -> Watch:
    """Anything at all in a queue of what was given up, within a minute."""
    watched = {"QueueName": {"Fn::GetAtt": [queue, "QueueName"]}}
    return ("AWS/SQS", "ApproximateNumberOfMessagesVisible", watched, "Maximum", 60, 1, 1, "notBreaching")


def happened(name: str, threshold: int = 1) -> Watch:
    """So many happenings within five minutes."""
    return (NAMESPACE, name, OURS, "Sum", MINUTES_5, 1, threshold, "notBreaching")


def raised(function: str) -> Watch:
    """One failed invocation within five minutes."""
    return ("AWS/Lambda", "Errors", {"FunctionName": {"Ref": function}}, "Sum", MINUTES_5, 1, 1, "notBreaching")


ALARMS: dict[str, Watch] = {
    "DeadLetterAlarm": depth("DeadLetterQueue"),
    "UntakenAlarm": depth("UntakenQueue"),
    # the oldest of any sweep; one late sweep is no alarm, and a sweep that reports nothing is one
    "UnansweredAlarm": (
        *(NAMESPACE, "oldest_ms", OURS, "Maximum", MINUTES_5, 2),
        *({"Ref": "UnansweredAlarmMs"}, "breaching"),
    ),
    "HandoffAlarm": happened("handoff_unheard"),
    "HeldAlarm": happened("held"),
    "EffectInDoubtAlarm": happened("effect_in_doubt"),
    "MisconfiguredAlarm": happened("misconfigured"),
    "FallbackAlarm": happened("fallback"),
    "OverflowAlarm": happened("overflowed"),
    "UnavailableAlarm": happened("unavailable", threshold=5),
    "EscapedAlarm": happened("escaped"),
    "IngestErrorAlarm": raised("IngestFunction"),
    "GenerateErrorAlarm": raised("GenerateFunction"),
    "SweepErrorAlarm": raised("SweepFunction"),
}
"""Namespace, metric, what of, statistic, period in seconds, periods, threshold, and what missing values mean."""

PAGE = (ROOT / "docs" / "operating.md").read_text()


def test_the_alarms_are_these() -> None:
    assert resources("AWS::CloudWatch::Alarm").keys() == ALARMS.keys()
    ours = {metric for namespace, metric, *_ in ALARMS.values() if namespace == NAMESPACE}
    assert ours <= HAPPENINGS.keys() | GAUGES.keys()


@pytest.mark.parametrize("name", ALARMS)
def test_each_alarm_watches_what_it_is_for(name: str) -> None:
    alarm = template()["Resources"][name]["Properties"]
    namespace, metric, watched, statistic, period_s, periods, threshold, missing = ALARMS[name]
    assert (alarm["Namespace"], alarm["MetricName"]) == (namespace, metric)
    assert {entry["Name"]: entry["Value"] for entry in alarm["Dimensions"]} == watched
    assert (alarm["Statistic"], alarm["Period"], alarm["EvaluationPeriods"]) == (statistic, period_s, periods)
    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (threshold, "GreaterThanOrEqualToThreshold")
    assert alarm["TreatMissingData"] == missing
    told = {"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}
    assert alarm["AlarmActions"] == alarm["OKActions"] == told


def test_an_alarm_without_a_topic_is_none_that_fails() -> None:
    set_by = {"HasAlarmTopic": "AlarmTopicArn", "HasWhatsAppTopic": "WhatsAppTopicArn", "HasSmsTopic": "SmsTopicArn"}
    for condition, parameter in set_by.items():
        empty = {"Fn::Equals": [{"Ref": parameter}, ""]}
        assert template()["Conditions"][condition] == {"Fn::Not": [empty]}
        assert template()["Parameters"][parameter]["Default"] == ""


def test_the_page_says_what_to_do_at_each_alarm() -> None:
    assert set(re.findall(r"`(\w+Alarm)`", PAGE)) == ALARMS.keys()


def test_what_the_pages_commands_need_is_an_output() -> None:
    """`<…>` is an output of the stack."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"<([A-Z][A-Za-z]+)>", page.read_text())}
    assert {"DeadLetterQueueArn", "WakeUpQueueArn", "UntakenQueueUrl", "IngestFunctionName"} <= named
    assert named <= template()["Outputs"].keys()


@pytest.mark.parametrize(
    ("output", "value"),
    [
        ("WakeUpQueueArn", {"Fn::GetAtt": ["WakeUpQueue", "Arn"]}),
        ("DeadLetterQueueArn", {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]}),
        ("UntakenQueueUrl", {"Ref": "UntakenQueue"}),
    ],
)
def test_what_was_given_up_can_be_brought_again_by_the_outputs(output: str, value: Tree) -> None:
    described = template()["Outputs"][output]
    assert described["Value"] == value
    assert described.get("Condition") == ("HasTopic" if output == "UntakenQueueUrl" else None)
