// HIP on the emulator's engine: everything that a text may use.
#pragma once
#include "simt.h"

#include "rocm_floats.h"
#include "rocm_language.h"
#include "rocm_threads.h"
#include "rocm_atomics.h"
#include "rocm_matrix.h"
