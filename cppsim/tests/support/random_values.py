"""Names of `cppsim.testing` for tests that still take them from here."""

from cppsim.testing.values import narrow_values as narrow_values
from cppsim.testing.values import random_expression as random_expression
from cppsim.testing.values import random_number as random_number
