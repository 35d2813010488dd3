"""The template and the code say the same: settings, ranges, the table's shape, and what protocol.md asks of a stack."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from rejoinder.gateway import PREFIX
from rejoinder.protocol.timing import BOUNDS, DAY_MS, LONGEST_WAKE_UP_MS, Timing
from rejoinder.settings import CHOICES, NUMBERS, PLACES, TEXTS, Function, Settings, env_name, names
from rejoinder.stores.dynamodb.schema import TTL_ATTRIBUTE, table_definition
from rejoinder.wiring import SWEEP_MARGIN_MS
from stack import BOT_POLICY, ROOT, default_environment, functions, resources, statements, template

FUNCTIONS: tuple[Function, ...] = ("ingest", "generate", "sweep")
PARAMETERS = template()["Parameters"]
IN_SECONDS = {"INGEST_TIMEOUT_MS", "GENERATE_TIMEOUT_MS", "VISIBILITY_MS"}
"""Resources want these in seconds, and CloudFormation cannot divide."""


def parameter_of(variable: str) -> str:
    """The parameter of a setting: CamelCase of the same words."""
    name = "".join(word.capitalize() for word in variable.split("_"))
    return name.removesuffix("Ms") + "S" if variable in IN_SECONDS else name


def unit_ms(variable: str) -> int:
    """What one of the parameter is, in the unit of `Timing`."""
    return DAY_MS if variable == "RETENTION_DAYS" else 1_000 if variable in IN_SECONDS else 1


def test_one_python_version_everywhere() -> None:
    version = (ROOT / ".python-version").read_text().strip()
    assert {function["Runtime"] for function in functions().values()} == {f"python{version}"}
    for layer in resources("AWS::Serverless::LayerVersion").values():
        assert layer["Metadata"]["BuildMethod"] == f"python{version}"
        assert layer["Properties"]["CompatibleRuntimes"] == [f"python{version}"]
    assert f'requires-python = ">={version}"' in (ROOT / "pyproject.toml").read_text()


def test_the_functions_are_those_of_the_folder() -> None:
    assert set(functions()) == set(FUNCTIONS) == {path.name for path in (ROOT / "functions").iterdir()}
    assert {function["Handler"] for function in functions().values()} == {"app.handler"}


def test_the_user_s_bot_is_a_layer_of_the_generator_alone() -> None:
    assert [folder for folder in FUNCTIONS if {"Ref": "BotLayer"} in functions()[folder]["Layers"]] == ["generate"]


def test_what_the_bot_is_allowed_beside_is_the_generator_s_alone_and_nothing_by_default() -> None:
    assert [folder for folder in FUNCTIONS if BOT_POLICY in functions()[folder]["Policies"]] == ["generate"]
    assert PARAMETERS["BotPolicyArn"]["Default"] == ""


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_variable_is_a_setting_and_every_setting_a_variable(function: Function) -> None:
    variables = functions()[function]["Environment"]
    needless = {name for name, (_, _, needed_by) in PLACES.items() if function not in needed_by} - {"ACCOUNTS"}
    assert set(variables) == names() - needless
    assert all(name in variables for name, (_, _, needed_by) in PLACES.items() if function in needed_by)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_defaults_of_the_template_are_those_of_the_code(function: Function) -> None:
    settings = Settings.from_environment(default_environment(function), function)
    assert settings.timing == Timing()
    plain = Settings.from_environment({})
    for name in ("policy", "wake_lane", "bot", "generation_ms", "send_budget_ms", "log_level"):
        assert getattr(settings, name) == getattr(plain, name)
    assert settings.warnings() == []


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_each_parameter_allows_what_the_protocol_does(name: str) -> None:
    variable = env_name(name)
    parameter = PARAMETERS[parameter_of(variable)]
    low, high = BOUNDS[name]
    tighter = {  # by a relation that no other value of a parameter could mend
        "RETENTION_DAYS": LONGEST_WAKE_UP_MS + DAY_MS,
        "VISIBILITY_MS": 6 * BOUNDS["generate_timeout_ms"][0],
    }
    assert parameter["Type"] == "Number"
    assert parameter["MinValue"] * unit_ms(variable) == tighter.get(variable, low)
    assert parameter["MaxValue"] * unit_ms(variable) == high


def test_each_other_parameter_allows_what_the_settings_do() -> None:
    for variable, (default, low, high) in NUMBERS.items():
        parameter = PARAMETERS[parameter_of(variable)]
        assert (parameter["Default"], parameter["MinValue"], parameter["MaxValue"]) == (default, low, high)
    for variable, words in CHOICES.items():
        parameter = PARAMETERS[parameter_of(variable)]
        assert (parameter["Default"], parameter["AllowedValues"]) == (words[0], list(words))
    for variable in ("FALLBACK_REPLY", "MOMENT_REPLY"):
        longest = PARAMETERS[parameter_of(variable)]["MaxLength"]
        assert re.fullmatch(TEXTS[variable][1], "я" * longest)
        assert not re.fullmatch(TEXTS[variable][1], "я" * (longest + 1))
    longest = PARAMETERS["Bot"]["MaxLength"]
    long = ("b" * (longest - 6) + ":reply", "b" * (longest - 5) + ":reply")
    for bot in ("bot:reply", "shop.desk:answer_1", "bot", ":reply", "bot.reply", "1bot:reply", "bot:re-ply", *long):
        by_template = re.fullmatch(PARAMETERS["Bot"]["AllowedPattern"], bot) and len(bot) <= longest
        assert bool(by_template) == bool(re.fullmatch(TEXTS["BOT"][1], bot)), bot


def test_each_variable_comes_from_the_parameter_of_its_name() -> None:
    deployed = set(PLACES) | {"SERVICE_NAME"}
    for variable, value in functions()["ingest"]["Environment"].items():
        if variable in IN_SECONDS:
            assert value == {"Fn::Sub": f"${{{parameter_of(variable)}}}000"}
        elif variable not in deployed:
            assert value == {"Ref": parameter_of(variable)}


def test_the_time_outs_that_the_protocol_counts_on_are_the_real_ones() -> None:
    assert functions()["ingest"]["Timeout"] == {"Ref": "IngestTimeoutS"}
    assert functions()["generate"]["Timeout"] == {"Ref": "GenerateTimeoutS"}
    queue = template()["Resources"]["WakeUpQueue"]["Properties"]
    assert queue["VisibilityTimeout"] == {"Ref": "VisibilityS"}
    assert PARAMETERS["VisibilityS"]["Default"] >= 6 * PARAMETERS["GenerateTimeoutS"]["Default"]
    # API Gateway gives up after 30 s (Amazon API Gateway quotas, HTTP API), and nobody would hear the answer
    assert PARAMETERS["IngestTimeoutS"]["MaxValue"] < 30


def test_the_queues_keep_a_wake_up_as_long_as_the_protocol_reckons() -> None:
    queues = resources("AWS::SQS::Queue")
    seconds = [queues[name]["Properties"]["MessageRetentionPeriod"] for name in ("WakeUpQueue", "DeadLetterQueue")]
    assert sum(seconds) * 1_000 == LONGEST_WAKE_UP_MS
    redrive = template()["Resources"]["WakeUpQueue"]["Properties"]["RedrivePolicy"]
    # a function that is throttled or cannot start for once must not cost a wake-up: AWS Lambda Developer Guide, "Using
    # Lambda with Amazon SQS", asks for five receives at the least
    assert redrive == {"deadLetterTargetArn": {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]}, "maxReceiveCount": 5}


def test_what_waits_in_a_queue_is_encrypted() -> None:
    assert {queue["Properties"]["SqsManagedSseEnabled"] for queue in resources("AWS::SQS::Queue").values()} == {True}


def test_the_table_is_as_the_store_describes_it_and_outlives_the_stack() -> None:
    table = template()["Resources"]["Table"]
    described = {name: value for name, value in table_definition("any").items() if name != "TableName"}
    properties = table["Properties"]
    assert {name: properties[name] for name in described} == described
    assert properties["TimeToLiveSpecification"] == {"AttributeName": TTL_ATTRIBUTE, "Enabled": True}
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Retain", "Retain")


def test_wake_ups_come_one_at_a_time_and_only_what_failed_comes_back() -> None:
    (mapping,) = resources("AWS::Lambda::EventSourceMapping").values()
    assert mapping["Properties"]["BatchSize"] == 1
    assert mapping["Properties"]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_the_generator_may_wake_itself_and_its_failed_invocations_are_dead_letters() -> None:
    assert [folder for folder in FUNCTIONS if functions()[folder].get("RecursiveLoop") == "Allow"] == ["generate"]
    invocation = functions()["generate"]["EventInvokeConfig"]
    assert invocation["MaximumRetryAttempts"] == 2
    destination = invocation["DestinationConfig"]["OnFailure"]
    assert destination == {"Type": "SQS", "Destination": {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]}}


def test_the_sweep_comes_each_five_minutes_and_has_its_time() -> None:
    """One at a time, most of it for looking; the next one is its second attempt."""
    sweep = functions()["sweep"]
    (event,) = sweep["Events"].values()
    assert event["Properties"]["Schedule"] == "rate(5 minutes)"
    assert 10 * SWEEP_MARGIN_MS <= sweep["Timeout"] * 1_000 < 5 * 60_000
    assert sweep["EventInvokeConfig"] == {"MaximumRetryAttempts": 0}


def test_a_schedule_wakes_the_generator_or_becomes_a_dead_letter() -> None:
    """Nothing but Scheduler, on behalf of this AWS account, takes the role; it may do these two things."""
    found = template()["Resources"]
    (trusted,) = found["ScheduleRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trusted == {
        "Effect": "Allow",
        "Principal": {"Service": "scheduler.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
    }
    policy = found["ScheduleRolePolicy"]["Properties"]
    assert policy["Roles"] == [{"Ref": "ScheduleRole"}]
    allowed = [(entry["Effect"], entry["Action"], entry["Resource"]) for entry in policy["PolicyDocument"]["Statement"]]
    assert allowed == [
        ("Allow", "lambda:InvokeFunction", {"Fn::GetAtt": ["GenerateFunction", "Arn"]}),
        ("Allow", "sqs:SendMessage", {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]}),
    ]


def test_functions_and_layers_are_of_one_architecture() -> None:
    chosen = {"Ref": "Architecture"}
    assert all(function["Architectures"] == [chosen] for function in functions().values())
    for layer in resources("AWS::Serverless::LayerVersion").values():
        assert layer["Metadata"]["BuildArchitecture"] == chosen
        assert layer["Properties"]["CompatibleArchitectures"] == [chosen]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_has_the_memory_that_its_start_was_measured_with(function: Function) -> None:
    assert functions()[function]["MemorySize"] == 512


def test_the_sweep_reads_no_account_s_secret() -> None:
    """But the one parameter that says what accounts have of their own."""
    (reading,) = [entry for entry in statements("sweep") if "ssm:GetParameter" in entry["Action"]]
    arn = "arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter/rejoinder/${AWS::StackName}/per-account"
    assert (reading["Action"], reading["Resource"]) == (["ssm:GetParameter"], [{"Fn::Sub": arn}])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_permission_is_wider_than_one_resource_or_this_stack_s_prefix(function: Function) -> None:
    for statement in statements(function):
        assert all("*" not in action for action in statement["Action"]), statement
        for resource in statement["Resource"]:
            match resource:
                case {"Fn::GetAtt": _}:
                    pass
                case {"Fn::Sub": text}:
                    stars = text.count("*")
                    mine = "${ScheduleGroup}/*" in text or "/rejoinder/${AWS::StackName}/*" in text
                    assert stars == 0 or (stars == 1 and mine), text
                case _:
                    pytest.fail(f"{function} may {statement['Action']} on {resource}")


def test_a_role_is_passed_to_scheduler_alone() -> None:
    for function in FUNCTIONS:
        passing = [statement for statement in statements(function) if "iam:PassRole" in statement["Action"]]
        assert [statement["Condition"] for statement in passing] == [
            {"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}}
        ]


def test_logs_are_kept_for_a_while_and_not_for_ever() -> None:
    logs = resources("AWS::Logs::LogGroup")
    assert {function["LoggingConfig"]["LogGroup"]["Ref"] for function in functions().values()} == set(logs)
    assert all(log["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"} for log in logs.values())


def test_no_resource_has_a_fixed_name() -> None:
    """Two stacks live in one account."""
    fixed = {
        "BucketName",
        "FunctionName",
        "GroupName",
        "LayerName",
        "LogGroupName",
        "QueueName",
        "RoleName",
        "TableName",
    }
    fixed |= {"AlarmName", "PolicyName", "Name"}
    for name, resource in template()["Resources"].items():
        for key, value in resource.get("Properties", {}).items():
            inline = resource["Type"] == "AWS::IAM::Policy" and key == "PolicyName"  # lives inside its role
            assert key not in fixed or inline or isinstance(value, dict), f"{name}.{key}"


@pytest.mark.parametrize(
    ("prefix", "action"), [("WhatsApp", "social-messaging:SendWhatsAppMessage"), ("Sms", "sms-voice:SendTextMessage")]
)
def test_a_topic_adds_itself_and_what_is_answered_from(prefix: str, action: str) -> None:
    """By one parameter each: without it none of this is there. Only that topic may invoke ingest as SNS."""
    mine = {name: entry for name, entry in template()["Resources"].items() if name.startswith(prefix)}
    assert {entry["Condition"] for entry in mine.values()} == {f"Has{prefix}Topic"}
    permission = mine[f"{prefix}Permission"]["Properties"]
    assert (permission["Principal"], permission["SourceArn"]) == ("sns.amazonaws.com", {"Ref": f"{prefix}TopicArn"})
    assert permission["FunctionName"] == {"Ref": "IngestFunction"}
    assert mine[f"{prefix}Subscription"]["Properties"]["TopicArn"] == permission["SourceArn"]
    (sending,) = mine[f"{prefix}SendPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    assert (sending["Action"], sending["Resource"]) == (action, {"Ref": f"{prefix}NumberArns"})


def test_what_is_not_taken_of_any_topic_is_kept() -> None:
    assert template()["Conditions"]["HasTopic"] == {
        "Fn::Or": [{"Condition": "HasWhatsAppTopic"}, {"Condition": "HasSmsTopic"}]
    }
    found = template()["Resources"]
    names = ("TopicInvocations", "UntakenQueue", "UntakenPolicy", "UntakenAlarm")
    assert {found[name]["Condition"] for name in names} == {"HasTopic"}
    invocations = found["TopicInvocations"]["Properties"]
    kept = {"Fn::GetAtt": ["UntakenQueue", "Arn"]}
    assert invocations["FunctionName"] == {"Ref": "IngestFunction"}
    assert invocations["DestinationConfig"] == {"OnFailure": {"Destination": kept}}
    (keeping,) = found["UntakenPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    assert (keeping["Action"], keeping["Resource"]) == ("sqs:SendMessage", kept)


def test_the_webhooks_route_and_address_are_those_that_the_code_reads() -> None:
    assert template()["Outputs"]["WebhookUrl"]["Value"] == {"Fn::Sub": "${Api.ApiEndpoint}" + PREFIX.rstrip("/")}
    paths = {event["Properties"]["Path"] for event in functions()["ingest"]["Events"].values()}
    assert paths == {PREFIX + "{channel}/{account}", PREFIX + "{channel}", "/health"}


def references(tree: Any) -> Iterator[str]:
    """Every name that the tree refers to."""
    match tree:
        case {"Ref": str(name)}:
            yield name
        case {"Fn::GetAtt": [name, *_]}:
            yield name
        case {"Fn::Sub": str(text)}:
            yield from re.findall(r"\$\{(\w+)", text)
        case dict():
            for value in tree.values():
                yield from references(value)
        case list():
            for value in tree:
                yield from references(value)


def test_deploying_asks_nothing_and_its_words_are_of_the_deployment_alone() -> None:
    """`sam build` knows no `--stack-name`; `sam deploy --guided` asks of each route without authentication."""
    words = "--stack-name my-bot"
    done = subprocess.run(  # the commands alone are printed
        ["make", "--dry-run", "deploy", f"ARGS={words}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    sam = [line.partition("/bin/sam ")[2] for line in done.stdout.splitlines() if "/bin/sam " in line]
    assert sam == ["build", f"deploy {words}"]
    defaults = tomllib.loads((ROOT / "samconfig.toml").read_text())["default"]["deploy"]["parameters"]
    assert (defaults["confirm_changeset"], defaults["resolve_s3"]) == (False, True)
    assert defaults["capabilities"] == "CAPABILITY_IAM"


def test_no_parameter_is_without_use() -> None:
    used = set(references(template()["Resources"])) | set(references(template()["Globals"]))
    used |= set(references(template()["Conditions"]))
    assert set(PARAMETERS) <= used
