"""Write configuration.yaml, with ConfigMaps of the files of `export`.

    python export/kubernetes/write_configuration.py

Run it after each change of a *.config, the proxy's or the page's files.
"""

from pathlib import Path

HERE = Path(__file__).parent
EXPORT = HERE.parent
# Name of a ConfigMap -> its files, all in one folder.
MAPS = {
    "translator-configuration": [
        "models.config",
        "batching.config",
        "monitoring.config",
    ],
    "translator-proxy": ["proxy/nginx.conf"],
    "translator-page": sorted(
        f"demo/{path.name}" for path in (EXPORT / "demo").iterdir()
    ),
}
HEADER = (
    "# Written by write_configuration.py: change the files, not this one.\n"
)


def configuration() -> str:
    """Return the text of configuration.yaml."""
    return HEADER + "---\n".join(
        _config_map(name, files) for name, files in MAPS.items()
    )


def _config_map(name: str, files: list[str]) -> str:
    lines = [
        "apiVersion: v1",
        "kind: ConfigMap",
        "metadata:",
        f"  name: {name}",
        "data:",
    ]
    for file in files:
        text = (EXPORT / file).read_text(encoding="utf-8")
        lines.append(f"  {Path(file).name}: |")
        lines += [f"    {line}" if line else "" for line in text.splitlines()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (HERE / "configuration.yaml").write_text(configuration(), encoding="utf-8")
