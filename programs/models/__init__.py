"""Language models: how a name becomes one, how calls reach it, are cached, retried and metered."""
