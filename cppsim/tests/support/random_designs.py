"""Names of `cppsim.testing` for tests that still take them from here."""

from cppsim.testing.designs import RandomDesign as RandomDesign
from cppsim.testing.designs import random_circuit as random_circuit
from cppsim.testing.designs import random_expressions as random_expressions
from cppsim.testing.designs import random_machine as random_machine
from cppsim.testing.designs import random_system as random_system
from cppsim.testing.designs import trace as trace
from cppsim.testing.designs import trace_all as trace_all
