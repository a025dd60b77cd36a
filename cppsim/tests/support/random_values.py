"""Names of `cppsim.testing` for tests that still take them from here."""

from cppsim.testing import random_number as random_number
