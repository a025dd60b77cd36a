"""What ends a campaign before it has begun: a failure of the circuit, and no bad input."""

from bitlane.errors import BitlaneError

__all__ = ["JobFailed"]


class JobFailed(BitlaneError):
    """A job that nothing is done to goes wrong. One line that names the job, and says how."""
