"""Packaging: `pip install .[train]`."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
VERSION = re.search(
    r'__version__ = "(.+)"',
    (HERE / "luong_keras" / "__init__.py").read_text(encoding="utf-8"),
).group(1)


def without_relative_links(text):
    """Return the README without relative images and links."""
    text = re.sub(r"^!\[[^]]*\]\((?!https?:)[^)]*\)\n", "", text, flags=re.M)
    return re.sub(r"\[([^]]*)\]\((?!https?:)[^)]*\)", r"\1", text)


# The layers need Keras and one of its backends; everything else is an extra.
TRAIN = [
    "tensorflow>=2.18",
    "tensorflow-datasets>=4.9",
    "importlib_resources",  # undeclared need of tensorflow-datasets
    "tensorboard",
    "protobuf>=4.21",  # TensorFlow brings it; reads SentencePiece models
    "sentencepiece>=0.2",
    "lxml>=5",  # reads TMX
    # Reads `.zst`; the standard library does so since Python 3.14.
    "backports.zstd>=1; python_version < '3.14'",
    "sacrebleu>=2.4",
    "sacremoses>=0.1",
    "regex",  # scripts; sacremoses brings it too
    "loky>=3.4",  # processes that prepare the text
    "pydantic>=2.7",
    "pyyaml>=6",
    "tyro>=1.0.15",
    "matplotlib>=3.9",
    "jinja2>=3.1",  # the pages of `report`
]
# Subwords inside the graph. It needs TensorFlow of the same minor version. pip
# would replace an installed TensorFlow, so it is a separate extra. It has no
# wheels for Windows; 2.21.0 cannot be imported.
TEXT = "tensorflow-text>=2.18,!=2.21.0; platform_system != 'Windows'"
JAX = "jax>=0.5"
TORCH = "torch>=2.6"  # read by `make test-torch` too
# The server's protocol. It needs TensorFlow of the same minor version.
SERVING_API = "tensorflow-serving-api>=2.18"
# The workflow in examples/reproduction.
REPRODUCTION = ["snakemake>=9", "scipy>=1.15"]
# `make docs`.
DOCS = [
    *("sphinx>=8.2", "furo", "myst-nb>=1.3", "sphinx-copybutton"),
    "latex2mathml>=3.77",
    "scipy",  # in a notebook
]
# `luong-keras ask`.
CLIENT = ["luong-keras-client>=0.3.0", "tyro>=1.0.15"]

setup(
    name="luong-keras",
    version=VERSION,
    description="Luong attention, input feeding and beam search for Keras",
    long_description=without_relative_links(
        (HERE / "README.md").read_text(encoding="utf-8")
    ),
    long_description_content_type="text/markdown",
    license_expression="Apache-2.0",
    license_files=["LICENSE"],
    keywords=[
        "attention",
        "beam search",
        "encoder-decoder",
        "input feeding",
        "keras",
        "machine translation",
        "sequence to sequence",
    ],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Programming Language :: Python :: 3.14",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
        "Typing :: Typed",
    ],
    project_urls={"Paper": "https://arxiv.org/abs/1508.04025"},
    python_requires=">=3.11",
    py_modules=["luong_keras_command"],
    packages=find_packages(include=["luong_keras", "luong_keras.*"]),
    package_data={
        "luong_keras": [
            "py.typed",
            "**/*.pyi",
            "data/phrasebook.json.bz2",
            "report/templates/*",
            "serving/warmup.txtpb",
        ]
    },
    install_requires=[
        "keras>=3.10",
        "filelock>=3.13",
        "lazy_loader>=0.4",
        "numpy>=1.26",
    ],
    entry_points={
        "console_scripts": ["luong-keras = luong_keras_command:main"]
    },
    extras_require={
        "train": TRAIN,
        "text": [TEXT],
        "gpu": ["tensorflow[and-cuda]>=2.18"],
        "jax": [JAX],
        "torch": [TORCH],
        "client": CLIENT,
        "reproduction": [*TRAIN, TEXT, *REPRODUCTION],
        "docs": DOCS,
        "dev": [
            *TRAIN,
            *REPRODUCTION,
            *DOCS,
            # The client comes from export/client: see the Makefile.
            TEXT,
            JAX,
            SERVING_API,
            "grpcio>=1.68",
            # `model.export(path, format="onnx")`
            "tf2onnx>=1.16",
            "onnxruntime>=1.20",
            # Sources of text: users install them, the tests need them.
            "pandas>=2.2",
            "datasets>=3",
            # Tests of the output of notebooks.
            "ipykernel>=6.29",
            "nbclient>=0.10",
            "pytest>=8",
            "pytest-xdist>=3.5",
            "requests>=2.32",
            "trustme>=1.2",
            "build>=1.2",
            "setuptools>=77",
            "twine>=6",
            "jedi>=0.19.2",
            "mypy>=1.16",
            "hypothesis>=6.100",
            "kubernetes-validate>=1.31",
            "check-jsonschema>=0.29",
            "playwright>=1.50",
            "axe-playwright-python>=0.1.4",
            "ruff>=0.12",
            "codespell>=2.4",
            "pre-commit>=4",
            "pydot>=3",
        ],
    },
)
