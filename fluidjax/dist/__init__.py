"""Programs on many devices and hosts: plans, and passes that insert communication. Nothing is there yet."""
