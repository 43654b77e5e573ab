"""Loading and launching: ``api`` is the driver, ``driver`` the runtime adapter, ``launch`` the path of one call."""
