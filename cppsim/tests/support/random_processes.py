"""Names of `cppsim.testing` for tests that still take them from here."""

from cppsim.testing.processes import follow_processes as follow_processes
from cppsim.testing.processes import random_clocked as random_clocked
from cppsim.testing.processes import random_counters as random_counters
