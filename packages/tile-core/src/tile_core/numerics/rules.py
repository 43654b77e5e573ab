"""The numeric rules of the language, which every target follows.

Tests and documentation cite this page.

Conversion to a float type
    One rounding, to nearest, ties to even, directly from the source type (float64 and integers to tfloat32 or float8
    round once, not through float32). A Python number is rounded once too, from all its digits. Values that do not fit:

    ===================  =====================  ============  ==========  ======================================
    target               finite overflow        infinity      NaN         zeros
    ===================  =====================  ============  ==========  ======================================
    float16, bfloat16    infinity               infinity      NaN         signed
    tfloat32             infinity               infinity      NaN         signed
    float8_e5m2          infinity (0x7C)        infinity      NaN (0x7E)  signed
    float8_e4m3fn        NaN (0x7F)             NaN           NaN         signed
    float8_e4m3fnuz      NaN (0x80)             NaN           NaN         unsigned (-0 and underflow give 0x00)
    float8_e5m2fnuz      NaN (0x80)             NaN           NaN         unsigned
    float4_e2m1fn        largest value (6)      6, signed     -0          signed
    float8_e8m0fnu       NaN (0xFF)             NaN           NaN         none: 0 and negatives give NaN
    ===================  =====================  ============  ==========  ======================================

    These are the results of ml_dtypes (which rounds float64 twice; the language does not). e8m0 has only powers of
    two: a tie goes up (3 becomes 4), and a positive value below 2^-127 becomes 2^-127, and one between 2^-127 and
    2^-126 becomes 2^-126. float4 has no NaN: a NaN becomes -0, as a positive one does in ml_dtypes. The sign and the
    payload of a NaN mean nothing: instructions of GPUs drop both, so no result may depend on them.

Conversion of a float to an integer type
    Towards zero; a value out of range saturates to the nearest limit, infinities too; NaN becomes 0. This holds on
    every target and everywhere (``T.cast``, stores, copies). To ``bool`` everything but zero is true, NaN too.

Saturating conversion (``saturate=True``)
    Finite overflow becomes the largest finite value of the same sign. Infinities and NaN are not affected: they
    follow the table.

Conversion with a named rounding (``T.cast(x, dtype, round=, sat=, rbits=)``)
    Of the two neighbours of a number in the type, the one that ``round`` names: ``"rz"`` towards zero, ``"ru"`` up,
    ``"rd"`` down; ``"rs"`` the one away from zero if ``floor(f * 2**32) + rbits >= 2**32`` for the fraction ``f`` of
    their distance by which the magnitude is above the smaller one. Beyond the largest number the next one would be one
    more last place away: being rounded to it is finite overflow; not being rounded away from zero gives the largest.
    With ``sat=True`` finite overflow and infinities become the largest finite value of the same sign, NaN stays NaN.
    Positive numbers below 2^-127 become it in e8m0 in every direction.

Arithmetic
    Types of 8 or fewer bits are stored and converted, never computed with. bfloat16 arithmetic is done in float32 and
    rounded after every operation. 4-bit integers wrap.

max and min
    ``max(a, b)`` and ``min(a, b)`` return the number when one side is NaN, and NaN only when both are (IEEE 754-2019
    maximumNumber, minimumNumber). With ``nan_propagate=True`` any NaN wins (maximum, minimum). In both forms
    -0 is less than +0. The operand order never matters.

clamp
    ``clamp(x, lo, hi)`` is the smaller of ``hi`` and the larger of ``lo`` and ``x``, as ``numpy.clip`` computes it:
    with ``lo > hi`` every number becomes ``hi``. ``clamp(NaN, lo, hi)`` is NaN, and a limit that is NaN is none. A
    value that is equal to a limit is unchanged: ``clamp(-0, 0, 3)`` is -0.

Elementary functions on float32
    Within the table of ``tile_core.numerics.bounds``; where the core expands them within 2 units in the last place over
    all inputs, subnormal ones included (sigmoid: 3). Special values are those of C99 Annex F. float16 and bfloat16 are
    computed in float32 and rounded once. Integer results of ``exp2``, ``exp10`` and ``pow`` that are representable are
    exact where the core expands them.

4-bit storage
    A tensor in global memory packs two elements per byte along the last dimension, the lower index in the low nibble.
    An odd last dimension leaves the high nibble of the last byte of a row unused. Scratch buffers hold one element per
    byte, in the low nibble (int4 sign-extended).
"""
