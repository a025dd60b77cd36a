// Memories of an instance: `stride` elements lie between one element of it and the next.

namespace batch {

template <class T> struct Column {
  T *first;
  uint64_t stride;
  T &operator[](uint64_t element) const { return first[element * stride]; }
};

// Rows of several words.
template <class T, uint32_t Words> struct Rows {
  T *first;
  uint64_t stride;
  Column<T> operator[](uint64_t row) const { return {first + row * Words * stride, stride}; }
};

// The first element of instance `at` of `of`, in an array from byte `offset` of an instance on.
template <class T> inline T *first_of(uint8_t *rows, uint64_t offset, uint64_t of, uint64_t at) {
  return reinterpret_cast<T *>(rows + offset * of) + at;
}

} // namespace batch
