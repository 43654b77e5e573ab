// Words of the language that C++ does not have. Spaces of addresses vanish: what they forbid, `tools/metal_lint` finds.
#pragma once

#define kernel
#define device
#define thread
#define threadgroup
#define constant const  // `prepare` leaves out the second const of `const constant`
#define double metal_has_no_double

// What <string.h> brings.
#define memcpy metal_has_no_memcpy
#define memmove metal_has_no_memmove
#define memset metal_has_no_memset
#define memcmp metal_has_no_memcmp
