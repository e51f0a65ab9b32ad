"""Summary of the comparisons with the golden numbers."""

import collections


def pytest_terminal_summary(terminalreporter):
    totals = collections.defaultdict(lambda: [0, 0, 0.0, 0.0])
    # The figures exist after the teardown of the fixture.
    for report in terminalreporter.stats.get("", []):
        for kind, figures in report.user_properties:
            if kind == "golden":
                file, arrays, numbers, absolute, relative = figures
                total = totals[file]
                total[0] += arrays
                total[1] += numbers
                total[2] = max(total[2], absolute)
                total[3] = max(total[3], relative)
    if not totals:
        return
    terminalreporter.section("golden numbers of the authors' program")
    terminalreporter.line(
        f"{'file':32}{'arrays':>8}{'numbers':>9}"
        f"{'largest error':>15}{'relative':>10}"
    )
    for file, (arrays, numbers, absolute, relative) in sorted(totals.items()):
        terminalreporter.line(
            f"{file:32}{arrays:8}{numbers:9}{absolute:15.1e}{relative:10.1e}"
        )
    whole = [t for file, t in totals.items() if "float32" not in file]
    terminalreporter.line(
        f"{'all in float64':32}{sum(t[0] for t in whole):8}"
        f"{sum(t[1] for t in whole):9}"
        f"{max((t[2] for t in whole), default=0):15.1e}"
        f"{max((t[3] for t in whole), default=0):10.1e}"
    )
    skipped = [
        report.nodeid.split("::")[-1]
        for report in terminalreporter.stats.get("skipped", [])
        if "tests/golden" in report.nodeid
    ] + [
        text
        for report in terminalreporter.stats.get("", [])
        for kind, text in report.user_properties
        if kind == "golden_skip" and report.when == "teardown"
    ]
    terminalreporter.line(f"{len(skipped)} cases skipped as defects")
    for name in sorted(skipped):
        terminalreporter.line(f"  {name}")
