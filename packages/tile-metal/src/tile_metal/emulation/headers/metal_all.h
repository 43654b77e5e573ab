// MSL on the emulator's engine: everything that a text may use.
#pragma once
#include "simt.h"

#include "metal_floats.h"
#include "metal_types.h"
#include "metal_vectors.h"
#include "metal_math.h"
#include "metal_integers.h"
#include "metal_barriers.h"
#include "metal_simdgroup.h"
#include "metal_matrix.h"
#include "metal_atomics.h"
#ifdef METAL_TENSOR_OPS
#include "metal_tensor_ops.h"
#endif
#include "metal_launch.h"
#include "metal_words.h"  // last: it makes macros of common words
