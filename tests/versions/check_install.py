"""Check of a planned installation into an existing environment.

    pip install --dry-run --report REPORT ".[train]"
    python tests/versions/check_install.py REPORT

Fails if the version of an installed package would change, or if more than 20
packages or 40 MB would be added. With `--bare` added packages do not count.
"""

import importlib.metadata
import json
import sys
import urllib.request

MAX_PACKAGES = 20
MAX_BYTES = 40e6


def normalized(name):
    return name.lower().replace("_", "-").replace(".", "-")


def size_of(package):
    """Return the size in bytes of a wheel that pip would download."""
    request = urllib.request.Request(
        package["download_info"]["url"], method="HEAD"
    )
    with urllib.request.urlopen(request) as response:
        return int(response.headers["Content-Length"])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        planned = json.load(file)["install"]
    present = {
        normalized(each.name): each.version
        for each in importlib.metadata.distributions()
    }
    moved, added, total = [], [], 0
    for package in planned:
        name = normalized(package["metadata"]["name"])
        version = package["metadata"]["version"]
        if name == "luong-keras":
            continue
        if name in present:
            moved.append(f"{name} {present[name]} -> {version}")
        else:
            size = size_of(package)
            added.append(f"{name} {version} ({size / 1e6:.1f} MB)")
            total += size
    print(f"Added: {len(added)} packages, {total / 1e6:.1f} MB")
    print("\n".join(f"  {line}" for line in sorted(added)))
    print(f"Moved: {', '.join(moved) or 'none'}")
    too_much = len(added) > MAX_PACKAGES or total > MAX_BYTES
    if moved or (too_much and "--bare" not in sys.argv):
        sys.exit(
            f"Expected: no package moved, at most {MAX_PACKAGES} packages "
            f"and {MAX_BYTES / 1e6:.0f} MB added."
        )


if __name__ == "__main__":
    main()
