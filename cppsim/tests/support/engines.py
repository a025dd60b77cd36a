"""Names of `cppsim.testing` for tests that still take them from here."""

from cppsim.testing.executors import Bench as Bench
from cppsim.testing.executors import fast_forwarding as fast_forwarding
from cppsim.testing.executors import on_engine as on_engine
from cppsim.testing.executors import same_on as same_on
