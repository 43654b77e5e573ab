"""Number formats and elementary functions.

=================  ====================================================================
``rules``          the numeric rules of the language (documentation)
``formats``        bit layouts as data
``codecs``         NumPy encode and decode, 4-bit packing
``exprs``          the same conversions as tirx expressions (imports TVM)
``math``           elementary functions as tirx expressions (imports TVM)
``standard_math``  shorter ones of levels other than ``"strict"`` (imports TVM)
=================  ====================================================================
"""
