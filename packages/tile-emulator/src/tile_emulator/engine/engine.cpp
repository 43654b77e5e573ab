// The engine as one translation unit, so that it takes one run of the compiler.
#include "launch.cpp"
#include "fiber.cpp"
#include "clock.cpp"
#include "sync.cpp"
#include "async.cpp"
#include "memory.cpp"
#include "report.cpp"
#include "hooks.cpp"
