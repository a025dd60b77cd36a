"""A maker of each kind of model; the models of a test are closed at its end."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from cppsim import Model, ReferenceModel
from cppsim.circuits import AnyModel


@pytest.fixture(params=[ReferenceModel, Model])
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., AnyModel]]:
    with ExitStack() as made:

        def maker(*arguments: object, **options: object) -> AnyModel:
            model: AnyModel = request.param(*arguments, **options)
            made.callback(model.close)
            return model

        yield maker
