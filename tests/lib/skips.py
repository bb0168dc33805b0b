"""The last lines of a run: every test that was skipped, by its reason, with how many they are."""
import collections
import os

import pytest


def reason_of(report):
    """Where a test was skipped and why, as pytest has it: (path, line, "Skipped: why")."""
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)


def rows(reports):
    """[reason, count, files], the most frequent reason first."""
    counts, files = collections.Counter(), collections.defaultdict(set)
    for report in reports:
        reason = reason_of(report)
        counts[reason] += 1
        files[reason].add(os.path.basename(report.nodeid.split("::")[0]))
    return [(reason, count, sorted(files[reason])) for reason, count in counts.most_common()]


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.write_line(f"skipped: {len(skipped)}")
    for reason, count, files in rows(skipped):
        terminalreporter.write_line(f"  {count:4}  {reason} ({', '.join(files)})")
