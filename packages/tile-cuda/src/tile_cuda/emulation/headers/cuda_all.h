// CUDA C++ on the emulator's engine: everything that a text may use without an #include.
#pragma once
#include "simt.h"

#include "cuda_language.h"
#include "cuda_vectors.h"
#include "cuda_math.h"
#include "ptx_registers.h"
#include "ptx_numbers.h"
#include "ptx_memory.h"
#include "ptx_matrix.h"
#include "ptx_mma.h"
#include "ptx_mma_names.h"
#include "ptx_copy.h"
#include "ptx_convert.h"
#include "ptx_threads.h"
#include "ptx_integer.h"
#include "cuda_threads.h"
#include "cuda_atomics.h"
