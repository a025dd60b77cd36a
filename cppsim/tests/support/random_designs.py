"""Names of `cppsim.testing` for tests that still take them from here."""

from cppsim.testing import RandomDesign as RandomDesign
from cppsim.testing import random_circuit as random_circuit
from cppsim.testing import random_expressions as random_expressions
from cppsim.testing import random_machine as random_machine
from cppsim.testing import random_system as random_system
