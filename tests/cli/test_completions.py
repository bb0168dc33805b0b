"""The shells' completions offer each command the options that its --help tells, and no others."""
import re
import subprocess

import paths
import program
import pytest

COMMANDS = ["capture", "symbolize", "onephase", "addr2line", "cache"]
FOLDER = paths.TOP / "completions"


def told(command):
    """The long options of `stacker COMMAND --help`."""
    found = set(re.findall(r"^ +(?:-\w, +)?(--[a-z0-9-]+)", program.run(command, "--help").out, re.MULTILINE))
    assert "--help" in found
    return found


def bash(*words):
    """What bash offers for the last word."""
    script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _stacker; ' \
             'printf "%s\\n" "${COMPREPLY[@]}"'
    command = ["bash", "-c", script, "bash", FOLDER / "stacker.bash", paths.STACKER, *words]
    return set(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout.split())


def zsh(command):
    """The options that _stacker names for the command: its branch, and the lists that the branch uses."""
    text = (FOLDER / "_stacker").read_text()
    lists = dict(re.findall(r"^(\w+)=\(\n(.*?)^\)", text, re.MULTILINE | re.DOTALL))
    branch = re.search(rf"^\t{command}(?:\|\S+)?\)\n(.*?)^\t\t;;", text[text.index("\nrest)"):], re.MULTILINE | re.DOTALL)[1]
    for name in re.findall(r"\$(\w+)", branch):
        branch += lists[name]
    return set(re.findall(r"['{,*](--[a-z0-9-]+)[=\[}]", branch))


def fish(command):
    """The options of stacker.fish whose condition holds for the command."""
    text = (FOLDER / "stacker.fish").read_text()
    conditions = dict(re.findall(r'^set -l (\w+) "(.*)"$', text, re.MULTILINE))
    found = set()
    for condition, option in re.findall(r'^complete -c stacker (?:-n ("[^"]*"|\$\w+) )?.*?-l ([a-z0-9-]+)', text, re.MULTILINE):
        condition = conditions[condition[1:]] if condition.startswith("$") else condition.strip('"')
        negated, _, commands = condition.replace("$commands", " ".join(COMMANDS)).partition("__fish_seen_subcommand_from")
        if not condition or (command in commands.split()) != ("not" in negated):
            found.add(f"--{option}")
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_options(command):
    want = told(command)
    assert bash(command, "--") == want
    assert zsh(command) == want
    assert fish(command) == want


@pytest.mark.parametrize("words", [["1"], ["-p", "1"], ["--method", "bpf"], ["--pid", "=", "1"]], ids=" ".join)
def test_without_a_command(words):
    assert bash(*words, "--") == told("onephase")


def test_what_begins_without_a_command():
    assert told("onephase") <= bash("--") and set(COMMANDS) <= bash("")


@pytest.mark.parametrize("words", [["-p", ""], ["--pid", ""], ["--pid", "="], ["capture", "--pid", "="]], ids=" ".join)
def test_processes(words):
    offered = bash(*words)
    assert offered and all(word.isdigit() for word in offered)
