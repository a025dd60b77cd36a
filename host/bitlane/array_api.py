"""The name under which users import the namespace of the array API, `bitlane.api.array_api`."""

import sys
from typing import TYPE_CHECKING

from .api import array_api

if TYPE_CHECKING:
    from .api.array_api import *
else:
    sys.modules[__name__] = array_api
