"""Names of `cppsim.testing` for tests that still take them from here."""

from cppsim.testing.testbenches import close as close
from cppsim.testing.testbenches import follow as follow
