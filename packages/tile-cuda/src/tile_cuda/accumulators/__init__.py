"""Accumulators: initialization, promotion, subtiling, and accumulators in tensor memory."""
