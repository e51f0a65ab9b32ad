"""Messages of TensorFlow Serving that tensorflow-serving-api does not publish.

They are only read as text, where the numbers of fields do not matter.
"""

from pathlib import Path

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    text_format,
    wrappers_pb2,
)

INTEGER, BOOLEAN = ".google.protobuf.Int64Value", ".google.protobuf.BoolValue"
# Message -> field -> type (session_bundle_config.proto and
# monitoring_config.proto, 2.20.0).
UNPUBLISHED = {
    "BatchingParameters": {
        "max_batch_size": INTEGER,
        "batch_timeout_micros": INTEGER,
        "max_enqueued_batches": INTEGER,
        "num_batch_threads": INTEGER,
        "enable_large_batch_splitting": BOOLEAN,
    },
    "PrometheusConfig": {"enable": "bool", "path": "string"},
    "MonitoringConfig": {"prometheus_config": ".test.PrometheusConfig"},
}
SCALARS = {
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
}


def unpublished(name):
    """Create an empty message of `UNPUBLISHED`."""
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{name}.proto",
        package="test",
        syntax="proto3",
        dependency=["google/protobuf/wrappers.proto"],
    )
    for message_name, fields in UNPUBLISHED.items():
        message = file.message_type.add(name=message_name)
        for number, (field, kind) in enumerate(fields.items(), start=1):
            added = message.field.add(name=field, number=number, label=1)
            if kind in SCALARS:
                added.type = SCALARS[kind]
            else:
                added.type_name = kind
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(
        pool.FindMessageTypeByName(f"test.{name}")
    )()


def read_text(path, message):
    """Fill a message from a text file and return it.

    Raises:
        OSError, google.protobuf.text_format.ParseError: If the file is
            missing or not such a message.
    """
    return text_format.Parse(Path(path).read_text(), message)
