// What programs written by program.py call: operations wider than a word, and storage.
// Values are arrays of 64-bit words, the least significant first, with zeros above their bits.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace wide {

constexpr size_t words(size_t bits) { return (bits + 63) / 64; }

template <size_t Bits> inline void trim(uint64_t *result) {
  if (Bits % 64) result[words(Bits) - 1] &= ~uint64_t(0) >> (64 - Bits % 64) % 64;
}

template <size_t Bits> inline void add(uint64_t *result, const uint64_t *a, const uint64_t *b) {
  unsigned __int128 sum = 0;
  for (size_t i = 0; i < words(Bits); i++) {
    sum += a[i];
    sum += b[i];
    result[i] = uint64_t(sum);
    sum >>= 64;
  }
  trim<Bits>(result);
}

template <size_t Bits>
inline void subtract(uint64_t *result, const uint64_t *a, const uint64_t *b) {
  uint64_t borrow = 0;
  for (size_t i = 0; i < words(Bits); i++) {
    unsigned __int128 difference = (unsigned __int128)a[i] - b[i] - borrow;
    result[i] = uint64_t(difference);
    borrow = uint64_t(difference >> 64) & 1;
  }
  trim<Bits>(result);
}

template <size_t Bits> inline void negate(uint64_t *result, const uint64_t *a) {
  const uint64_t zero[words(Bits)] = {};
  subtract<Bits>(result, zero, a);
}

template <size_t Bits>
inline void multiply(uint64_t *result, const uint64_t *a, const uint64_t *b) {
  for (size_t i = 0; i < words(Bits); i++) result[i] = 0;
  for (size_t i = 0; i < words(Bits); i++) {
    unsigned __int128 carry = 0;
    for (size_t j = 0; i + j < words(Bits); j++) {
      carry += (unsigned __int128)a[i] * b[j] + result[i + j];
      result[i + j] = uint64_t(carry);
      carry >>= 64;
    }
  }
  trim<Bits>(result);
}

template <size_t Bits> inline uint64_t less(const uint64_t *a, const uint64_t *b) {
  for (size_t i = words(Bits); i--;)
    if (a[i] != b[i]) return a[i] < b[i];
  return 0;
}

template <size_t Bits> inline uint64_t less_equal(const uint64_t *a, const uint64_t *b) {
  return !less<Bits>(b, a);
}

template <size_t Bits> inline uint64_t less_signed(const uint64_t *a, const uint64_t *b) {
  constexpr size_t top = words(Bits) - 1, bit = (Bits - 1) % 64;
  const uint64_t sign_a = a[top] >> bit & 1, sign_b = b[top] >> bit & 1;
  return sign_a != sign_b ? sign_a : less<Bits>(a, b);
}

template <size_t Bits> inline uint64_t less_equal_signed(const uint64_t *a, const uint64_t *b) {
  return !less_signed<Bits>(b, a);
}

// Amounts of more than a word are larger than any value is wide, unless their upper words are 0.
template <size_t Bits> inline size_t amount(const uint64_t *shift) {
  for (size_t i = 1; i < words(Bits); i++)
    if (shift[i]) return SIZE_MAX;
  return shift[0];
}

template <size_t Bits, size_t ShiftBits = Bits>
inline void left(uint64_t *result, const uint64_t *a, const uint64_t *shift) {
  const size_t by = std::min<size_t>(amount<ShiftBits>(shift), Bits), skip = by / 64, in = by % 64;
  for (size_t i = words(Bits); i--;) {
    const uint64_t high = i >= skip ? a[i - skip] << in : 0;
    result[i] = high | (in && i > skip ? a[i - skip - 1] >> (64 - in) : 0);
  }
  trim<Bits>(result);
}

template <size_t Bits, size_t ShiftBits = Bits>
inline void right(uint64_t *result, const uint64_t *a, const uint64_t *shift) {
  const size_t by = std::min<size_t>(amount<ShiftBits>(shift), Bits), skip = by / 64, in = by % 64;
  for (size_t i = 0; i < words(Bits); i++) {
    const uint64_t low = i + skip < words(Bits) ? a[i + skip] >> in : 0;
    result[i] = low | (in && i + skip + 1 < words(Bits) ? a[i + skip + 1] << (64 - in) : 0);
  }
}

template <size_t Bits, size_t ShiftBits = Bits>
inline void right_signed(uint64_t *result, const uint64_t *a, const uint64_t *shift) {
  constexpr size_t top = words(Bits) - 1;
  right<Bits, ShiftBits>(result, a, shift);
  if (!(a[top] >> (Bits - 1) % 64 & 1)) return;
  // Ones from where the sign bit has gone to the top.
  const size_t by = std::min<size_t>(amount<ShiftBits>(shift), Bits);
  for (size_t bit = Bits - by; bit < Bits; bit++) result[bit / 64] |= uint64_t(1) << bit % 64;
}

} // namespace wide
