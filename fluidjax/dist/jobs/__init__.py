"""The processes of a job: who they are, how they meet, are watched, and end together."""
