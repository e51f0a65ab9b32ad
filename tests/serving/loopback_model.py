"""A model of the loopback server: its folder and its loaded versions."""

import sys
from pathlib import Path

from google.protobuf import text_format
from google.protobuf.message import DecodeError
from tensorflow_serving.apis import get_model_status_pb2
from tensorflow_serving.config import model_server_config_pb2

from tests.serving.loopback_error import TensorFlowError
from tests.serving.loopback_version import (
    INVALID_ARGUMENT,
    NOT_FOUND,
    ModelVersion,
    Settings,
)

Status = get_model_status_pb2.ModelVersionStatus


class ServedModel:
    """The served versions of a model.

    `poll` loads and unloads versions as the folder changes; meanwhile any
    thread may call the other methods.

    Args:
        name: Name of the model in requests.
        base_path: Folder of the versions.
        config: File with a `ModelServerConfig`; the entry of this name has the
            version policy and labels. Its base path is ignored.
        settings: `Settings` of the versions.
    """

    def __init__(self, name, base_path, config=None, settings=None):
        self.name, self.settings = name, settings or Settings()
        self._base_path, self._config_path = Path(base_path), config
        self._config = model_server_config_pb2.ModelConfig()
        self._versions = {}  # number -> ModelVersion
        self._states = {}  # number -> Status.State, also of unloaded versions

    @property
    def available(self):
        """True if any version is served."""
        return bool(self._versions)

    def poll(self):
        """Load new versions and unload versions that are no longer selected."""
        try:
            if self._config_path is not None:
                self._config = self._read_config()
            selected = self._selected()
        except (OSError, text_format.ParseError, ValueError) as error:
            # Like the real server, keep serving the previous versions.
            print(error, file=sys.stderr)
            return
        for number, folder in selected.items():
            if number not in self._versions:
                self._load(number, folder)
        # An old version is unloaded after a new one has been loaded.
        if not selected or selected.keys() & self._versions.keys():
            for number in self._states.keys() - selected.keys():
                self._states[number] = Status.END
                rest = self._versions.keys() - {number}
                self._versions = {n: self._versions[n] for n in rest}

    def _load(self, number, folder):
        self._states = {**self._states, number: Status.LOADING}
        try:
            version = ModelVersion(folder, self.settings)
        except (DecodeError, OSError, TensorFlowError, ValueError) as error:
            # The next poll tries again.
            print(f"Version {number} failed: {error}", file=sys.stderr)
            return
        self._versions = {**self._versions, number: version}
        self._states[number] = Status.AVAILABLE

    def _read_config(self):
        text = Path(self._config_path).read_text()
        config = model_server_config_pb2.ModelServerConfig()
        text_format.Parse(text, config)
        for model in config.model_config_list.config:
            if model.name == self.name:
                return model
        raise ValueError(
            f"Expected: a model {self.name!r} in {self._config_path}. "
            "Received: none of this name."
        )

    def _selected(self):
        """Return number -> folder of the selected versions, ascending."""
        folders = self._base_path.iterdir()
        # Other folders are temporary.
        found = {int(x.name): x for x in folders if x.name.isdecimal()}
        policy = self._config.model_version_policy
        choice = policy.WhichOneof("policy_choice")
        if choice == "specific":
            numbers = sorted(found.keys() & set(policy.specific.versions))
        else:
            assert choice != "all", "The double has no such policy."
            numbers = sorted(found)[-max(policy.latest.num_versions, 1) :]
        return {number: found[number] for number in numbers}

    def version(self, spec):
        """Return the version of a `ModelSpec`."""
        if not spec.name:
            message = "ModelSpec has no name specified."
            raise TensorFlowError(INVALID_ARGUMENT, message)
        versions = self._versions if spec.name == self.name else {}
        choice = spec.WhichOneof("version_choice")
        if choice is None:
            request = f"Latest({spec.name})"
            found = versions.get(max(versions, default=None))
        else:
            number = spec.version.value
            if choice == "version_label":
                number = self._labelled(spec)
            request = f"Specific({spec.name}, {number})"
            found = versions.get(number)
        if found is None:
            message = f"Servable not found for request: {request}"
            raise TensorFlowError(NOT_FOUND, message)
        return found

    def _labelled(self, spec):
        labels = self._config.version_labels
        if spec.name != self.name or spec.version_label not in labels:
            raise TensorFlowError(
                INVALID_ARGUMENT,
                f"Unrecognized servable version label: {spec.version_label}",
            )
        return labels[spec.version_label]

    def status(self, spec):
        """Return the states of the versions of a `ModelSpec`."""
        states = dict(self._states) if spec.name == self.name else {}
        if spec.HasField("version"):
            number = spec.version.value
            if number not in states:
                raise TensorFlowError(
                    NOT_FOUND,
                    f"Could not find version {number} of model {spec.name}",
                )
            states = {number: states[number]}
        if not states:
            message = f"Could not find any versions of model {spec.name}"
            raise TensorFlowError(NOT_FOUND, message)
        response = get_model_status_pb2.GetModelStatusResponse()
        for number in sorted(states, reverse=True):
            status = response.model_version_status.add(
                version=number, state=states[number]
            )
            status.status.SetInParent()  # OK
        return response
