// Containers of plain data over malloc. The engine uses no C++ runtime library: with the ziglang wheel, the first link
// against one would build it from source for about a minute.
#pragma once
#include <stdlib.h>
#include <string.h>

namespace simt {

// Ends the process with a report; there is nothing to go on with.
[[noreturn]] void out_of_memory();

inline void* allocate(size_t bytes) {
  void* p = malloc(bytes ? bytes : 1);
  if (!p) out_of_memory();
  return p;
}

// A vector of trivially copyable values.
template <class T>
struct Vec {
  T* data = nullptr;
  size_t size = 0, room = 0;

  T& operator[](size_t i) { return data[i]; }
  const T& operator[](size_t i) const { return data[i]; }
  T* begin() { return data; }
  T* end() { return data + size; }
  bool empty() const { return size == 0; }
  T& last() { return data[size - 1]; }

  void reserve(size_t n) {
    if (n <= room) return;
    size_t fresh = room * 2 < n ? n : room * 2;
    T* moved = (T*)realloc((void*)data, fresh * sizeof(T));
    if (!moved) out_of_memory();
    data = moved, room = fresh;
  }
  void push(const T& value) {
    T copy = value;  // it may live in `data`
    reserve(size + 1);
    memcpy((void*)(data + size++), &copy, sizeof(T));
  }
  void assign(size_t n, const T& value) {
    size = 0;
    reserve(n);
    for (size_t i = 0; i < n; i++) push(value);
  }
  void erase(size_t i) {
    memmove((void*)(data + i), data + i + 1, (size - i - 1) * sizeof(T));
    size--;
  }
  void clear() { size = 0; }
};

}  // namespace simt
