"""What a compiled kernel and the runtime that launches it agree on: parameters, texts with their facts, adapters."""
