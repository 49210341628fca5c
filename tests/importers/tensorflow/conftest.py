"""SavedModels, and a file that shows whether anything in them was run."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import tensorflow as tf

    from tests.importers.tensorflow.saved_models import Model

    folder = tmp_path_factory.mktemp("saved")
    model = Model()
    tf.saved_model.save(model, str(folder), signatures=model.__call__)
    return folder


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SavedModel of TensorFlow 1."""
    import tensorflow as tf

    v1 = tf.compat.v1
    folder = tmp_path_factory.mktemp("saved") / "older"
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, (None, 4), name="images")
        w = v1.get_variable("w", initializer=np.eye(4, dtype=np.float32) * 2, use_resource=True)
        b = v1.get_variable("b", initializer=np.ones(4, np.float32), use_resource=True, trainable=False)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            v1.saved_model.simple_save(session, str(folder), {"x": x}, {"y": tf.matmul(x, w) + b, "double": x * 2})
    return folder


@pytest.fixture
def folder(genuine: Path, tmp_path: Path) -> Path:
    """A separate SavedModel for each test, which may change it."""
    return Path(shutil.copytree(genuine, tmp_path / "model"))


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """A file that is created if anything in a model is run."""
    return tmp_path / "it_ran"
