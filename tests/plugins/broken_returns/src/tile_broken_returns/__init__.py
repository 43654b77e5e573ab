"""A backend whose hooks return rubbish."""
