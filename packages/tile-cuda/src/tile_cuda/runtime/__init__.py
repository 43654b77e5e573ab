"""Loading and launching: ``api`` is the driver, ``driver`` the runtime adapter, ``launch`` the way of one call."""
