"""The two kinds of models, of which each closes what a test has made."""

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
