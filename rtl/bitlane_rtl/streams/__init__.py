"""What flows between the stages, and the queues that it waits in. No arithmetic on payloads."""
